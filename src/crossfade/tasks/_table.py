"""Tables of tasks, with one row for each window (``docs/task-table.md``)."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._atomic import write_whole
from crossfade._validate import check_choice
from crossfade.exceptions import DroppedWindowsWarning
from crossfade.tasks._task import Task

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are not features.
RESERVED = ("task", "label", "group", "start")
FORMATS = (".csv", ".parquet")
#: What a CSV file may have in the place of a number that is missing.
BLANK = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"]


def frame_of(tasks: Sequence[Task]) -> pd.DataFrame:
    """Table of tasks: `task`, `label`, `group` and `start` where there are any, then features."""
    import pandas as pd

    if not tasks:
        raise ValueError("There is no task to make a table of.")
    names = tasks[0].feature_names
    columns = names or tuple(f"x{place}" for place in range(np.shape(tasks[0].X)[1]))
    clash = [name for name in columns if name in RESERVED]
    if clash:
        raise ValueError(
            f"A feature must not be called {clash[0]!r}: that column is not a feature."
        )
    parts = []
    for place, task in enumerate(tasks):
        part = pd.DataFrame(np.asarray(task.X), columns=list(columns))
        if any(other.start is not None for other in tasks):
            part.insert(0, "start", np.nan if task.start is None else np.asarray(task.start))
        if any(other.group is not None for other in tasks):
            part.insert(0, "group", task.group)
        part.insert(0, "label", np.asarray(task.y))
        part.insert(0, "task", task.name if task.name is not None else f"task {place + 1}")
        parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    doubled = frame["task"].drop_duplicates()
    if len(doubled) != len(tasks):
        raise ValueError("Tasks must have different names to be written to one table.")
    return frame


def tasks_of(
    frame: pd.DataFrame, missing: str = "drop", where: str = "the table", first_row: int = 0
) -> list[Task]:
    """Tasks of a table, in the order in which they first appear.

    Parameters
    ----------
    frame : DataFrame
        Columns `task`, `label`, optional `group` and `start`, then features.
    missing : {"drop", "error"}
        What to do with rows in which a feature is missing.
    where : str
        What to call the table in messages.
    first_row : int
        What to call its first row.

    Returns
    -------
    list of Task
        The tasks.
    """
    check_choice("missing", missing, ("drop", "error"))
    features = _check_columns(frame, where)
    if not len(frame):
        raise ValueError(f"{where} has no rows.")
    for column in ("task", "label"):
        _refuse(frame[column].isna(), frame, column, where, first_row, "is empty")
    values = np.column_stack([numbers_of(frame, name, where, first_row) for name in features])
    absent = np.isnan(values)
    rows = absent.any(1)
    if rows.any():
        counts = ", ".join(
            f"{name} ({count})"
            for name, count in zip(features, absent.sum(0), strict=True)
            if count
        )
        if missing == "error":
            raise ValueError(
                f"{where}: features are missing in {rows.sum()} of {len(rows)} rows: {counts}. "
                "Fill them, or pass missing='drop'."
            )
        whole = frame["task"].astype(str)
        lost = [name for name in dict.fromkeys(whole) if name not in set(whole[~rows])]
        if rows.all():
            raise ValueError(f"{where}: features are missing in every row: {counts}.")
        also = f" Nothing is left of {', '.join(map(repr, lost))}." if lost else ""
        warnings.warn(
            f"{where}: {rows.sum()} of {len(rows)} rows were dropped, since features are missing: "
            f"{counts}.{also}",
            DroppedWindowsWarning,
            stacklevel=4,
        )
    start = numbers_of(frame, "start", where, first_row) if "start" in frame else None
    tasks = []
    for name, indices in frame.groupby("task", sort=False, observed=True).indices.items():
        kept = np.sort(indices)[~rows[np.sort(indices)]]
        if not kept.size:
            continue
        group = _group_of(frame, name, np.sort(indices), where, first_row)
        tasks.append(
            Task(
                values[kept],
                np.array(frame["label"].iloc[kept].tolist()),
                name=str(name),
                group=group,
                feature_names=features,
                start=None if start is None or np.isnan(start[kept]).any() else start[kept],
            )
        )
    return tasks


def read_table(path: str | os.PathLike[str], missing: str = "drop") -> list[Task]:
    """Tasks of a CSV or Parquet file."""
    # The first row of a CSV file is its second line.
    first_row = 2 if suffix_of(path) == ".csv" else 0
    return tasks_of(read_frame(path), missing, str(path), first_row)


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Table of a CSV or Parquet file, as it stands there."""
    import pandas as pd

    suffix = suffix_of(path)
    content = Path(path).read_bytes()
    try:
        if suffix == ".parquet":
            return pd.read_parquet(io.BytesIO(content))
        header = pd.read_csv(io.BytesIO(content), header=None, nrows=1, dtype=str)
        doubled = header.iloc[0][header.iloc[0].duplicated()]
        if len(doubled):
            raise ValueError(f"column {doubled.iloc[0]!r} stands there twice")
        # Text is text: a participant may be called NA. Numbers that are missing are found later.
        text = dict.fromkeys(("task", "label", "group"), str)
        blank = {name: BLANK for name in header.iloc[0] if name not in text}
        frame = pd.read_csv(io.BytesIO(content), dtype=text, keep_default_na=False, na_values=blank)
        for name in text.keys() & set(frame.columns):
            frame[name] = frame[name].where(frame[name] != "", None)
        if "label" in frame:
            frame["label"] = _typed(frame["label"])
        return frame
    except ImportError as reason:
        raise _no_parquet() from reason
    except (ValueError, OSError) as reason:
        raise ValueError(f"{path} cannot be read as a table: {reason}.") from reason


def write_frame(path: str | os.PathLike[str], frame: pd.DataFrame) -> None:
    """Write a table to a CSV or Parquet file, whole or not at all."""
    content = io.BytesIO()
    if suffix_of(path) == ".csv":
        content.write(frame.to_csv(index=False).encode())
    else:
        try:
            frame.to_parquet(content, index=False)
        except ImportError as reason:
            raise _no_parquet() from reason
    write_whole(path, content.getvalue())


def _typed(labels: pd.Series[str]) -> pd.Series[Any]:
    """Labels as whole numbers, numbers or booleans if all of them are written so."""
    for pattern, kind in (
        (r"0|-?[1-9]\d{0,17}", int),
        (r"-?\d+\.\d+", float),
        ("True|False", lambda text: text == "True"),
    ):
        if labels.notna().all() and labels.str.fullmatch(pattern).all():
            return labels.map(kind)
    return labels


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuse a table that could not be written."""
    if suffix_of(path) == ".parquet" and find_spec("pyarrow") is None:
        raise _no_parquet()


def _no_parquet() -> ImportError:
    return ImportError("Parquet needs pyarrow. Install crossfade[tables], or use a .csv file.")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Ending of a table's name; refuses other formats."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"A table of tasks ends in .csv or .parquet; got {os.fspath(path)!r}.")
    return suffix


def _check_columns(frame: pd.DataFrame, where: str) -> list[str]:
    names = [str(name) for name in frame.columns]
    for needed in ("task", "label"):
        if needed not in names:
            raise ValueError(f"{where} has no column {needed!r}; its columns are {names[:10]}.")
    features = [name for name in names if name not in RESERVED]
    if not features:
        raise ValueError(f"{where} has no feature: every column but {RESERVED} is one.")
    if len(set(names)) != len(names):
        raise ValueError(f"{where} has a column twice; its columns are {names[:10]}.")
    return features


def numbers_of(frame: pd.DataFrame, column: str, where: str, first_row: int) -> Any:
    """Column as floats with NaN for what is missing; refuses text and infinity."""
    import pandas as pd

    raw = frame[column]
    numbers = pd.to_numeric(raw, errors="coerce").astype(float)
    _refuse(numbers.isna() & raw.notna(), frame, column, where, first_row, "is not a number")
    _refuse(numbers.abs() == np.inf, frame, column, where, first_row, "is infinite")
    return numbers.to_numpy()


def _refuse(
    bad: Any, frame: pd.DataFrame, column: str, where: str, first_row: int, why: str
) -> None:
    if bad.any():
        place = int(bad.to_numpy().argmax())
        found = "" if why == "is empty" else f" {str(frame[column].iloc[place])!r}"
        raise ValueError(f"{where}, row {place + first_row}, column {column!r}:{found} {why}.")


def _group_of(
    frame: pd.DataFrame, name: Any, indices: Any, where: str, first_row: int
) -> str | None:
    if "group" not in frame:
        return None
    groups = frame["group"].iloc[indices]
    known = groups.dropna().unique()
    if len(known) > 1:
        place = int(indices[(groups == known[1]).to_numpy().argmax()])
        raise ValueError(
            f"{where}, row {place + first_row}, column 'group': task {name!r} is in {known[0]!r} "
            f"before and in {known[1]!r} here. A task belongs to one group."
        )
    return str(known[0]) if len(known) else None
