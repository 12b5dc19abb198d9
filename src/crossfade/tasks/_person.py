"""Windows of one person from a table, for a prior or a rule whose features have names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade.tasks._columns import RESERVED, Columns
from crossfade.tasks._recipe import Recipe, recipe_misfits
from crossfade.tasks._table import numbers_of, open_table, recipe_of

if TYPE_CHECKING:
    import pandas as pd


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
