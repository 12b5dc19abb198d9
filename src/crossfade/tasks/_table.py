"""Tables of tasks, with one row for each window (``docs/task-table.md``)."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Hashable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crossfade._files import read_whole, write_whole
from crossfade._validate import check_choice
from crossfade.exceptions import DroppedWindowsWarning, TableWarning
from crossfade.tasks._check import check_frame
from crossfade.tasks._columns import RESERVED, Columns, Table, refuse_twice
from crossfade.tasks._parquet import frame_of_parquet, no_parquet, parquet_of
from crossfade.tasks._recipe import Recipe
from crossfade.tasks._task import Task

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".parquet")
#: Bytes of the largest table that is read at once.
_LARGEST = 16 << 30
#: What a CSV file may have instead of a number that is missing.
BLANK = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"]


def frame_of(tasks: Sequence[Task], class_names: Mapping[Any, str] | None = None) -> pd.DataFrame:
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
    return with_names(frame, class_names or {})


def with_names(frame: pd.DataFrame, class_names: Mapping[Any, str]) -> pd.DataFrame:
    """The table, which now carries names of its classes, into Parquet too."""
    if class_names:
        # As pairs: keys of JSON are text, and labels need not be.
        frame.attrs["class_names"] = [list(pair) for pair in class_names.items()]
    return frame


def with_recipe(frame: pd.DataFrame, recipe: Recipe | None) -> pd.DataFrame:
    """The table, which now carries how its features were made, into Parquet too."""
    if recipe is not None:
        frame.attrs["recipe"] = recipe.to_dict()
    return frame


def recipe_of(frame: pd.DataFrame, where: str) -> Recipe | None:
    """How the features of a table were made, if it carries that."""
    said = frame.attrs.get("recipe")
    try:
        return None if said is None else Recipe.from_dict(said)
    except (TypeError, ValueError) as reason:
        raise ValueError(
            f"{where} describes how it was made in a way that cannot be read: {reason}"
        ) from reason


def frame_of_arrays(
    X: ArrayLike, y: ArrayLike, groups: ArrayLike, feature_names: Sequence[str] | None
) -> pd.DataFrame:
    """Table of windows, labels and people; masked values are missing."""
    import pandas as pd

    names = feature_names
    if names is None:
        names = getattr(X, "columns", None)
    values = np.ma.asarray(X) if np.ma.isMaskedArray(X) else np.asarray(X)
    if values.ndim != 2:
        raise ValueError(
            f"X must be of shape (n_samples, n_features); got an array of shape {values.shape}."
        )
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    columns = [f"x{place}" for place in range(values.shape[1])] if names is None else list(names)
    if len(columns) != values.shape[1]:
        raise ValueError(f"X has {values.shape[1]} features but {len(columns)} feature names.")
    frame = pd.DataFrame(values, columns=[str(name) for name in columns])
    for place, (kind, given) in enumerate((("task", groups), ("label", y))):
        column = np.ma.asarray(given) if np.ma.isMaskedArray(given) else np.asarray(given)
        if column.shape != (len(frame),):
            called = "groups" if kind == "task" else "y"
            raise ValueError(
                f"{called} must have one entry for each of {len(frame)} rows; got an array of "
                f"shape {column.shape}."
            )
        if kind in frame:
            raise ValueError(f"A feature must not be called {kind!r}. Rename it.")
        frame.insert(place, kind, column.tolist())
    return frame


def recognised(table: Table, columns: Columns, stacklevel: int, **needed: Any) -> Table:
    """The table with our names for its columns; warns of, or refuses, what would mislead."""
    table = columns.of(table, **needed)
    for name in ("task", "label", "group"):
        if name in table.frame and table.frame[name].dtype == object:
            odd = table.frame[name].map(lambda one: not isinstance(one, Hashable)).astype(bool)
            _refuse(table, odd, name, "is neither text nor a number")
    # Sizes that are no features of anything are refused by the tasks themselves.
    with np.errstate(over="ignore", invalid="ignore"):
        findings = check_frame(table.frame, table.features, columns.named)
    refused = [f"{one.text} {one.remedy}" for one in findings if one.refused]
    if refused:
        raise ValueError(f"{table.where}: {' '.join(refused)}")
    for one in findings:
        warnings.warn(
            f"{table.where}: {one.text} {one.remedy}", TableWarning, stacklevel=stacklevel + 1
        )
    return table


def tasks_of(
    table: Table, missing: str = "drop", columns: Columns | None = None, stacklevel: int = 3
) -> list[Task]:
    """Tasks of a table, in the order in which they first appear; refuses what would mislead."""
    check_choice("missing", missing, ("drop", "error"))
    return split(recognised(table, columns or Columns(), stacklevel + 1), missing, stacklevel + 1)


def split(table: Table, missing: str = "drop", stacklevel: int = 3) -> list[Task]:
    """Tasks of a table with our names for its columns."""
    frame, where, features = table.frame, table.where, table.features
    for column in ("task", "label"):
        _refuse(table, frame[column].isna(), column, "is empty")
    values = np.column_stack([numbers_of(table, name) for name in features])
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
            stacklevel=stacklevel,
        )
    start = numbers_of(table, "start") if "start" in frame else None
    recipe = recipe_of(frame, where)
    tasks = []
    for name, indices in frame.groupby("task", sort=False, observed=True).indices.items():
        kept = np.sort(indices)[~rows[np.sort(indices)]]
        if not kept.size:
            continue
        group = _group_of(table, name, np.sort(indices))
        tasks.append(
            Task(
                values[kept],
                np.array(frame["label"].iloc[kept].tolist()),
                name=str(name),
                group=group,
                feature_names=features,
                start=None if start is None or np.isnan(start[kept]).any() else start[kept],
                recipe=recipe,
            )
        )
    return tasks


def as_pandas(frame: Any) -> pd.DataFrame:
    """A pandas, polars or arrow table as one of pandas."""
    import narwhals as nw
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    refuse_twice(getattr(frame, "column_names", ()), "the table")
    try:
        table: Any = nw.from_native(frame, eager_only=True)
    except TypeError as reason:
        raise TypeError(
            f"frame must be a pandas, polars or arrow table; got {type(frame).__name__}."
        ) from reason
    return pd.DataFrame({name: table[name].to_numpy() for name in table.columns})


def open_table(path: str | os.PathLike[str], columns: Columns | None = None) -> Table:
    """Table of a CSV or Parquet file, as it stands there; "-" is standard input."""
    columns = columns or Columns()
    if os.fspath(path) == "-":
        where, suffix = "standard input", None
        content = sys.stdin.buffer.read()
    else:
        # A pipe, as of <(...), has no name that says what it holds.
        where, suffix = str(path), suffix_of(path) if _is_file(path) else None
        content = read_whole(path, _LARGEST, pipes=True)
    if suffix is None:
        suffix = ".parquet" if content[:4] == b"PAR1" else ".csv"
    if suffix == ".parquet":
        return Table(frame_of_parquet(where, content), where, 0)
    try:
        # The first row of a CSV file is its second line.
        return Table(_from_csv(content, columns), where, 2)
    except (ValueError, OSError) as reason:
        raise ValueError(f"{where} cannot be read as a table: {reason}.") from reason


def _is_file(path: str | os.PathLike[str]) -> bool:
    return not Path(path).exists() or Path(path).is_file()


def _from_csv(content: bytes, columns: Columns) -> pd.DataFrame:
    import pandas as pd

    try:
        header = pd.read_csv(io.BytesIO(content), header=None, nrows=2, dtype=str).iloc[0]
    except UnicodeDecodeError as reason:
        raise ValueError("it is not UTF-8 text; save it as CSV in UTF-8") from reason
    except pd.errors.ParserError as reason:
        # Else pandas would make an index of the first column, or drop the last.
        first = content.partition(b"\n")[0].decode("utf-8-sig", "replace")
        mark = next((one for one in ";\t|" if one in first and "," not in first), None)
        if mark is not None:
            raise ValueError(
                f"its columns are separated by {mark!r}, and there are commas in its rows; save it "
                "with commas between columns and decimal points, or pass "
                f"pandas.read_csv(..., sep={mark!r}, decimal=',') to TaskSet.from_frame"
            ) from reason
        raise ValueError(
            "its rows have more fields than its header; give every column a name, or remove "
            "the comma at the end of the rows"
        ) from reason
    doubled = header[header.duplicated()].dropna()
    if len(doubled):
        raise ValueError(f"column {doubled.iloc[0]!r} stands there twice; rename or remove one")
    # Text is text: a participant may be called NA. Numbers that are missing are found later.
    text = dict.fromkeys(columns.text, str)
    names = (f"Unnamed: {place}" if pd.isna(name) else name for place, name in enumerate(header))
    # Bit by bit what was written, which is pandas' default since 3.1: a digest knows a task by it.
    is_exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    frame = pd.read_csv(
        io.BytesIO(content),
        dtype=text,
        index_col=False,
        keep_default_na=False,
        na_values={name: BLANK for name in names if name not in text},
        float_precision=None if is_exact else "round_trip",
    )
    for name in text.keys() & set(frame.columns):
        frame[name] = frame[name].where(frame[name] != "", None)
    if columns.label in frame:
        frame[columns.label] = _typed(frame[columns.label])
    return frame


def write_frame(path: str | os.PathLike[str], frame: pd.DataFrame) -> None:
    """Write a table to a CSV or Parquet file, whole or not at all."""
    is_csv = suffix_of(path) == ".csv"
    write_whole(path, frame.to_csv(index=False).encode() if is_csv else parquet_of(frame))


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
        raise no_parquet()


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Ending of a table's name; refuses other formats."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"A table of tasks ends in .csv or .parquet; got {os.fspath(path)!r}.")
    return suffix


def numbers_of(table: Table, column: str) -> Any:
    """Column as floats with NaN for what is missing; refuses text and infinity."""
    import pandas as pd

    raw = table.frame[column]
    if raw.dtype.kind == "c":
        raise ValueError(f"{table.where}, column {column!r}: numbers are complex. Take real ones.")
    try:
        numbers = pd.to_numeric(raw, errors="coerce").astype(float)
    except OverflowError:
        numbers = raw.map(_as_double).astype(float)
    _refuse(table, numbers.isna() & raw.notna(), column, "is not a number")
    _refuse(table, numbers.abs() == np.inf, column, "is infinite")
    return numbers.to_numpy()


def _as_double(number: Any) -> float:
    """A whole number that no double can hold is infinite, and what is no number NaN."""
    try:
        return float(number)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        return np.nan


def _refuse(table: Table, bad: Any, column: str, why: str) -> None:
    if not bad.any():
        return
    place = int(bad.to_numpy().argmax())
    value = str(table.frame[column].iloc[place])
    called = table.called.get(column, column)
    found, also = f": {value!r}", ""
    if why == "is empty":
        found, also = "", " Fill it, or remove the row."
    elif re.fullmatch(r"\s*-?\d+,\d+\s*", value):
        also = " It has a decimal comma: save the table with decimal points."
    elif why == "is not a number" and column not in RESERVED:
        also = (
            f" If {column!r} is no feature, leave it out with --drop {shlex.quote(column)} "
            f"(drop=[{column!r}])."
        )
    raise ValueError(
        f"{table.where}, row {place + table.first_row}, column {called!r}{found} {why}.{also}"
    )


def _group_of(table: Table, name: Any, indices: Any) -> str | None:
    if "group" not in table.frame:
        return None
    groups = table.frame["group"].iloc[indices]
    known = groups.dropna().unique()
    if len(known) > 1:
        place = int(indices[(groups == known[1]).to_numpy().argmax()])
        group, task = (table.called.get(kind, kind) for kind in ("group", "task"))
        raise ValueError(
            f"{table.where}, row {place + table.first_row}, column {group!r}: task {name!r} is in "
            f"{known[0]!r} before and in {known[1]!r} here. A task belongs to one group. If names "
            f"of tasks start anew in each group, name both columns: --task {group},{task} "
            f"(task=[{group!r}, {task!r}])."
        )
    return str(known[0]) if len(known) else None
