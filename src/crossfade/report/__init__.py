"""The report of a study: a folder with its tables, its figures, and one page for people to read."""

from crossfade.report._findings import Findings
from crossfade.report._write import write_findings, write_report

__all__ = ["write_report"]
