"""Tables of tasks, with one row for each window (``docs/tables.md``)."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crossfade._files import read_whole, write_whole
from crossfade._validate import check_choice
from crossfade.exceptions import DroppedWindowsWarning, TableWarning
from crossfade.tasks._check import check_frame
from crossfade.tasks._columns import RESERVED, Columns, Table, as_numbers, refuse_twice
from crossfade.tasks._parquet import frame_of_parquet, parquet_of
from crossfade.tasks._recipe import Recipe, recipe_misfits
from crossfade.tasks._task import Task, common_recipe

if TYPE_CHECKING:
    import pandas as pd

#: Bytes of the largest table that is read at once.
_LARGEST = 16 << 30
#: Texts that a CSV file may have instead of a missing number.
_BLANK = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"]


# -- from tasks to a table -------------------------------------------------------------------------


def frame_of(tasks: Sequence[Task], class_names: Mapping[Any, str]) -> pd.DataFrame:
    """Table of tasks: `task`, `label`, `group` and `start` where there are any, then features."""
    import pandas as pd

    names = [one.name if one.name is not None else f"task {i + 1}" for i, one in enumerate(tasks)]
    if not names or len(set(names)) < len(names):
        raise ValueError("A table needs one task or more, all with different names.")
    n_features = np.shape(tasks[0].X)[1]
    columns = list(tasks[0].feature_names or (f"x{place}" for place in range(n_features)))
    has_start = any(task.start is not None for task in tasks)
    has_group = any(task.group is not None for task in tasks)
    parts = []
    for name, task in zip(names, tasks, strict=True):
        part = pd.DataFrame(np.asarray(task.X), columns=columns)
        if has_start:
            part.insert(0, "start", np.nan if task.start is None else np.asarray(task.start))
        if has_group:
            part.insert(0, "group", task.group)
        part.insert(0, "label", np.asarray(task.y))
        part.insert(0, "task", name)
        parts.append(part)
    recipe = common_recipe([task.recipe for task in tasks])
    return with_about(pd.concat(parts, ignore_index=True), class_names, recipe)


def with_about(
    frame: pd.DataFrame,
    class_names: Mapping[Any, str] | None = None,
    recipe: Recipe | None = None,
) -> pd.DataFrame:
    """The table, which now carries names of its classes and its recipe, into Parquet too."""
    if class_names:
        # As pairs: keys of JSON are text, and labels need not be.
        frame.attrs["class_names"] = [list(pair) for pair in class_names.items()]
    if recipe is not None:
        frame.attrs["recipe"] = recipe.to_dict()
    return frame


def recipe_of(frame: pd.DataFrame, where: str) -> Recipe | None:
    """How the features of a table were made, if it carries that."""
    said = frame.attrs.get("recipe")
    try:
        return None if said is None else Recipe.from_dict(said)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"{where} has a recipe that cannot be read: {reason}") from reason


def frame_of_arrays(
    X: ArrayLike, y: ArrayLike, groups: ArrayLike, feature_names: Sequence[str] | None
) -> pd.DataFrame:
    """Table of windows, labels and people; masked values are missing."""
    import pandas as pd

    names = getattr(X, "columns", None) if feature_names is None else feature_names
    values = np.ma.asarray(X) if np.ma.isMaskedArray(X) else np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features); got {values.shape}.")
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    columns = [f"x{place}" for place in range(values.shape[-1])] if names is None else names
    frame = pd.DataFrame(values, columns=[str(name) for name in columns])
    for place, (kind, called, given) in enumerate((("task", "groups", groups), ("label", "y", y))):
        column = np.ma.asarray(given) if np.ma.isMaskedArray(given) else np.asarray(given)
        if column.shape != (len(frame),):
            raise ValueError(
                f"{called} must have one entry for each of {len(frame)} rows; got shape "
                f"{column.shape}."
            )
        frame.insert(place, kind, column.tolist())
    return frame


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


# -- from a table to tasks -------------------------------------------------------------------------


def tasks_of(table: Table, columns: Columns, missing: str = "drop") -> list[Task]:
    """Tasks of a table, in the order in which they first appear; refuses what would mislead."""
    check_choice("missing", missing, ("drop", "error"))
    table = columns.of(table)
    for name in ("task", "label", "group"):
        if name in table.frame and table.frame[name].dtype == object:
            odd = table.frame[name].map(lambda one: not isinstance(one, Hashable)).astype(bool)
            _refuse(table, odd, name, "is neither text nor a number")
    # Sizes that no number can hold are refused by the tasks themselves.
    with np.errstate(over="ignore", invalid="ignore"):
        findings = check_frame(table.frame, table.features, columns.named)
    refused = [one.text for one in findings if one.refused]
    if refused:
        raise ValueError(f"{table.where}: {' '.join(refused)}")
    for one in findings:
        warnings.warn(f"{table.where}: {one.text}", TableWarning, stacklevel=3)
    return _split(table, missing)


def _split(table: Table, missing: str) -> list[Task]:
    """Tasks of a table with our names for its columns."""
    frame = table.frame
    for column in ("task", "label"):
        _refuse(table, frame[column].isna(), column, "is empty")
    values = np.column_stack([numbers_of(table, name) for name in table.features])
    whole = ~np.isnan(values).any(1)
    if not whole.all():
        _report_missing(table, values, missing)
    start = numbers_of(table, "start") if "start" in frame else None
    recipe = recipe_of(frame, table.where)
    labels = frame["label"].to_numpy(dtype=object)
    tasks = []
    for name, places in frame.groupby("task", sort=False, observed=True).indices.items():
        rows = np.sort(places)
        kept = rows[whole[rows]]
        group = _group_of(table, name, rows)
        if not kept.size:
            continue
        begin = None if start is None or np.isnan(start[kept]).any() else start[kept]
        label = np.array(labels[kept].tolist())
        tasks.append(Task(values[kept], label, str(name), group, table.features, begin, recipe))
    return tasks


def _report_missing(table: Table, values: Any, missing: str) -> None:
    """Warn of rows in which features are missing, or refuse them."""
    absent = np.isnan(values)
    rows = absent.any(1)
    each = zip(table.features, absent.sum(0), strict=True)
    counts = ", ".join(f"{name} ({count})" for name, count in each if count)
    if rows.all() or missing == "error":
        raise ValueError(
            f"{table.where}: features are missing in {rows.sum()} of {rows.size} rows: {counts}. "
            "Fill them, or leave these columns out."
        )
    names = table.frame["task"].astype(str).to_numpy()
    lost = [name for name in dict.fromkeys(names) if name not in set(names[~rows])]
    also = f" Nothing is left of {', '.join(map(repr, lost))}." if lost else ""
    warnings.warn(
        f"{table.where}: {rows.sum()} of {rows.size} rows were dropped, since features are "
        f"missing: {counts}.{also}",
        DroppedWindowsWarning,
        stacklevel=5,
    )


def numbers_of(table: Table, column: str) -> Any:
    """Column as floats, with NaN where a value is missing; refuses text and infinity."""
    import pandas as pd

    raw = table.frame[column]
    values = as_numbers(raw)
    if values is None:
        numbers = pd.to_numeric(raw, errors="coerce")
        _refuse(table, numbers.isna() & raw.notna(), column, "is not a number")
        raise ValueError(f"{table.where}, column {column!r} must hold real numbers.")
    _refuse(table, pd.Series(np.isnan(values) & raw.notna().to_numpy()), column, "is infinite")
    return values


def _refuse(table: Table, bad: Any, column: str, why: str) -> None:
    """Refuse a table at the first bad row, if there is one."""
    if not bad.any():
        return
    place = int(bad.to_numpy().argmax())
    found = "" if why == "is empty" else f": {str(table.frame[column].iloc[place])!r}"
    also = f" Leave it out with --drop {column!r}, or mend it." if column in table.features else ""
    where = f"{table.where}, row {place + table.first_row}"
    raise ValueError(f"{where}, column {table.called.get(column, column)!r}{found} {why}.{also}")


def _group_of(table: Table, name: Any, rows: Any) -> str | None:
    """Group of a task, which must be the same in all its rows."""
    if "group" not in table.frame:
        return None
    groups = table.frame["group"].iloc[rows]
    known = groups.dropna().unique()
    if len(known) > 1:
        row = int(rows[(groups == known[1]).to_numpy().argmax()]) + table.first_row
        group, task = (table.called.get(kind, kind) for kind in ("group", "task"))
        raise ValueError(
            f"{table.where}, row {row}, column {group!r}: task {name!r} is in {known[0]!r} before "
            f"and in {known[1]!r} here. If names of tasks start anew in each group, name both "
            f"columns: --task {group},{task} (task=[{group!r}, {task!r}])."
        )
    return str(known[0]) if len(known) else None


# -- files -----------------------------------------------------------------------------------------


def open_table(path: str | os.PathLike[str], columns: Columns | None = None) -> Table:
    """Table of a CSV or Parquet file, unchanged; "-" is standard input."""
    if os.fspath(path) == "-":
        where, suffix = "standard input", None
        content = sys.stdin.buffer.read()
    else:
        # A pipe, as of <(...), has no name that says what it holds.
        is_pipe = Path(path).exists() and not Path(path).is_file()
        where, suffix = str(path), None if is_pipe else suffix_of(path)
        content = read_whole(path, _LARGEST, pipes=True)
    if suffix is None:
        suffix = ".parquet" if content[:4] == b"PAR1" else ".csv"
    if suffix == ".parquet":
        return Table(frame_of_parquet(where, content), where, 0)
    try:
        # The first row of a CSV file is its second line.
        return Table(_from_csv(content, columns or Columns()), where, 2)
    except (ValueError, OSError) as reason:
        raise ValueError(f"{where} cannot be read as a table: {reason}.") from reason


def _from_csv(content: bytes, columns: Columns) -> pd.DataFrame:
    """Table of a CSV file, bit by bit as it was written."""
    import pandas as pd

    try:
        header = pd.read_csv(io.BytesIO(content), header=None, nrows=2, dtype=str).iloc[0]
    except pd.errors.ParserError as reason:
        # Otherwise pandas would make an index of the first column.
        raise ValueError(
            "its rows have more fields than its header; save it with commas between columns, "
            "decimal points, and a name for every column"
        ) from reason
    doubled = header[header.duplicated()].dropna()
    if len(doubled):
        raise ValueError(f"it has the column {doubled.iloc[0]!r} twice; rename or remove one")
    # Text is text: a participant may be called NA. Numbers that are missing are found later.
    text = dict.fromkeys(columns.text, str)
    names = (f"Unnamed: {place}" if pd.isna(name) else name for place, name in enumerate(header))
    # The default of pandas since 3.1; before, its parser is off in the last bit.
    is_exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    frame = pd.read_csv(
        io.BytesIO(content),
        dtype=text,
        index_col=False,
        keep_default_na=False,
        na_values={name: _BLANK for name in names if name not in text},
        float_precision=None if is_exact else "round_trip",
    )
    for name in text.keys() & set(frame.columns):
        frame[name] = frame[name].where(frame[name] != "", None)
    if columns.label in frame:
        frame[columns.label] = _typed(frame[columns.label])
    return frame


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


def write_frame(path: str | os.PathLike[str], frame: pd.DataFrame) -> None:
    """Write a table to a CSV or Parquet file, whole or not at all."""
    is_csv = suffix_of(path) == ".csv"
    write_whole(path, frame.to_csv(index=False).encode() if is_csv else parquet_of(frame))


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Ending of a table's name; refuses other formats."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ValueError(f"A table of tasks ends in .csv or .parquet; got {os.fspath(path)!r}.")
    return suffix


class WindowsOf(NamedTuple):
    """Windows of a table: features in the order asked for, labels, and the other columns."""

    X: pd.DataFrame
    labels: pd.Series[Any] | None
    others: pd.DataFrame


def read_windows(
    path: str | os.PathLike[str],
    label: str,
    names: Sequence[str] | None,
    classes: Sequence[Any] | None,
    class_names: Sequence[str] | None,
    recipe: Recipe | None,
) -> WindowsOf:
    """Read windows; `names` are the features to take, by default all columns that can be one."""
    import pandas as pd

    table = open_table(path, Columns(label=label))
    frame = table.frame
    if names is None:
        names = [str(name) for name in frame if name not in (*RESERVED, label)]
    missing = [name for name in names if name not in frame]
    if missing:
        raise ValueError(f"{table.where} lacks the features {', '.join(missing)}.")
    wrong = recipe_misfits(recipe_of(frame, table.where), recipe)
    if wrong:
        raise ValueError(f"{table.where}: {' '.join(wrong)}")
    X = pd.DataFrame({name: numbers_of(table, name) for name in names}, frame.index)
    others = frame[[name for name in frame if name not in names]]
    labels = _as_classes(frame[label], classes, class_names) if label in frame else None
    return WindowsOf(X, labels, others)


def _as_classes(
    labels: pd.Series[Any], classes: Sequence[Any] | None, class_names: Sequence[str] | None
) -> pd.Series[Any]:
    """Labels as the classes they mean: names of classes, and numbers that a gap made fractions."""
    import pandas as pd

    meant: dict[str, Any] = dict(zip(class_names or (), classes or (), strict=False))
    for one in classes or ():
        meant[str(one)] = one
        if isinstance(one, int):
            meant[f"{one}.0"] = one
    values = [None if one != one else meant.get(str(one), one) for one in labels.tolist()]
    return pd.Series(values, labels.index, dtype=object)
