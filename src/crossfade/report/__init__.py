"""The report of a study: a folder with its tables, its figures, and one page for people to read.

`_findings` computes what is said, `_tables` and `_figures` lay it out, `_page` fills
``templates/page.html.j2``, and `_write` writes the folder.
"""

from crossfade.report._findings import Findings
from crossfade.report._write import write_findings, write_report

__all__ = ["write_report"]
