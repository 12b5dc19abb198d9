"""Writes what a study found to a folder: rows, tables, figures and a page."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from crossfade._files import write_whole
from crossfade._validate import check_choice, check_extra
from crossfade.report._findings import Findings
from crossfade.report._tables import Table, accuracies
from crossfade.study import StudyResult
from crossfade.tasks import Task, write_parquet

#: Formats of figures.
_FORMATS = ("png", "pdf", "svg")


class Written(NamedTuple):
    """A report that was written: its files, the page last, and its table of accuracies."""

    files: list[Path]
    accuracies: Table


def write_report(
    result: StudyResult,
    tasks: Iterable[Task],
    folder: str | os.PathLike[str],
    *,
    title: str | None = None,
    formats: Sequence[str] = ("png",),
    about: Mapping[str, object] | None = None,
    reach: float = 0.75,
    share: float = 0.8,
    notes: Sequence[str] = (),
) -> list[Path]:
    """Write all that a study found: rows, tables, figures and ``report.html``.

    The page needs nothing but itself, and Jinja2 to be written. All files but ``rows``, which has
    the seconds that each split took, are the same whenever they are written; files that are already
    there are left alone. Without matplotlib there are no figures; without pyarrow the rows are in a
    CSV file.

    Parameters
    ----------
    result : StudyResult
        What was found.
    tasks : TaskSet or iterable of Task
        What the study was run on; classes are called by its ``class_names``.
    folder : str or path-like
        Where to; made if need be.
    title : str or None, default=None
        Title of the page.
    formats : sequence of {"png", "pdf", "svg"}, default=("png",)
        Formats of the figures.
    about : mapping of str to object, optional
        What else to say about the run, such as its seed, its kind of splits or its date. The page
        explains the kinds of splits, and ``{"forecasts": "without rehearsal"}``, which belongs to
        ``CalibrationStudy(forecasts=False)``.
    reach, share : float, default=0.75 and 0.8
        The report opens with how many windows a new person needs until this `share` of people
        reaches this balanced accuracy.
    notes : sequence of str, default=()
        What a reader must know first, at the head of the page: what may mislead in the table.

    Returns
    -------
    list of Path
        All files of the report, the page last.

    Examples
    --------
    >>> import tempfile
    >>> from crossfade.report import write_report
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["target", "posterior"], budgets=[2], n_splits=20, random_state=0
    ... )
    >>> written = write_report(study.run(), tasks, tempfile.mkdtemp(), about={"seed": 0})
    >>> written[-1].name
    'report.html'
    """
    check_extra("jinja2", "plots", "A report")
    for one in formats:
        check_choice("formats", one, _FORMATS)
    findings = Findings.of(result, tasks, reach, share, notes)
    return write_findings(findings, folder, title=title, formats=formats, about=about or {}).files


def write_findings(
    findings: Findings,
    folder: str | os.PathLike[str],
    *,
    title: str | None,
    formats: Sequence[str] = ("png",),
    about: Mapping[str, object],
) -> Written:
    """Write a report from what was found."""
    from crossfade.report._page import CONTENTS, page

    rows_name = "rows.csv" if importlib.util.find_spec("pyarrow") is None else "rows.parquet"
    tables = {
        f"{name}.csv": findings.tables[name].to_csv(index=False, float_format="%.6g")
        for name in CONTENTS
    }
    contents = {name: text.encode() for name, text in tables.items()}
    drawings = []
    if importlib.util.find_spec("matplotlib") is not None:
        from crossfade.plots import render
        from crossfade.report._figures import draw

        drawings = draw(findings)
        contents |= {
            f"figures/{one.name}.{kind}": render(one.figure, kind)
            for one in drawings
            for kind in formats
        }
    title = title or f"A calibration study of {findings.count(len(findings.participants))}"
    contents["report.html"] = page(
        findings, drawings, tables, title=title, about=about, rows_name=rows_name
    ).encode()
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    if rows_name == "rows.csv":
        contents = {rows_name: findings.result.rows.to_csv(index=False).encode(), **contents}
    else:
        write_parquet(out / rows_name, findings.result.parts())
    for name, content in contents.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        if not (out / name).is_file() or (out / name).read_bytes() != content:
            write_whole(out / name, content)
    files = [out / name for name in dict.fromkeys([rows_name, *contents])]
    return Written(files, accuracies(findings))
