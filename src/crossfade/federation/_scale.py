"""Tables of what features are divided by, the same at every site to the last bit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from crossfade._files import write_whole
from crossfade._typing import Array
from crossfade._validate import check_finite, check_scale


def write_scale(path: str | os.PathLike[str], names: Sequence[str], scale: Any) -> None:
    """Write a table with the columns ``feature`` and ``scale``, numbers to the last bit.

    Parameters
    ----------
    path : path-like
        CSV file to write.
    names : sequence of str
        Names of the features.
    scale : array-like of shape (n_features,)
        What each is divided by.
    """
    import pandas as pd

    numbers = [repr(float(number)) for number in scale]
    table = pd.DataFrame({"feature": list(names), "scale": numbers})
    write_whole(path, table.to_csv(index=False).encode())


def read_scale(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], Array]:
    """Read the names and scales of features from a table with ``feature`` and ``scale``.

    Parameters
    ----------
    path : path-like
        CSV file, as :func:`write_scale` writes it.

    Returns
    -------
    names : tuple of str
        Names of the features.
    scale : ndarray of shape (n_features,)
        What each is divided by.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str)
    except ValueError as reason:
        raise ValueError(f"{path} is not a table of scales: {reason}.") from reason
    if list(table.columns) != ["feature", "scale"]:
        raise ValueError(
            f"{path} must have the columns feature and scale; found "
            f"{', '.join(map(str, table.columns))}. `crossfade federate scale` writes such a file."
        )
    try:
        # float() reads what repr() wrote to the last bit.
        numbers = [float(text) for text in table["scale"]]
    except ValueError as reason:
        raise ValueError(f"scale in {path} must be numbers: {reason}.") from reason
    scale = check_scale(check_finite(f"scale in {path}", numbers, 1), len(table))
    return tuple(table["feature"]), scale
