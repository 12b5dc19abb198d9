"""The report of a study: a folder with its tables, its figures, and one page for people to read."""

from crossfade.report._text import class_text as class_text
from crossfade.report._write import require_jinja as require_jinja
from crossfade.report._write import write_report

__all__ = ["write_report"]
