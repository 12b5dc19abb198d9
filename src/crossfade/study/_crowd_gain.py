"""What more people in the crowd would bring.

What a crowd of J people knows of a newcomer is an average over J, whose error falls as 1 / J, and
so does, to first order, what it costs in accuracy:

.. math:: A(J) = a - b / J

fitted to the mean accuracies by least squares. The fit is linear in them, so that the interval is
that of resampled people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import RandomState
from crossfade._validate import check_integer
from crossfade.study._resampling import cells, limits, resampled_means

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: Columns of the table.
GAINS = [
    *("method", "budget", "n_labelled", "n_people", "n_sources", "accuracy", "last", "more"),
    *("gain", "low", "high", "limit"),
]


def crowd_gain(
    by_sources: pd.DataFrame, more: int = 10, *, random_state: RandomState = 0
) -> pd.DataFrame:
    """Table of :meth:`crossfade.study.StudyResult.crowd_gain`."""
    import pandas as pd

    more = check_integer("more", more, 1)
    lines: list[dict[str, Any]] = []
    for method, budget, part in cells(by_sources):
        sizes, curves, groups = _curves(part)
        if not len(curves) or sizes.size < 2:
            continue
        # First as it is, then as it would be with other people.
        means = np.vstack([curves.mean(0), resampled_means(curves, groups, random_state)])
        limit, slope = _fitted(sizes, means)
        largest = sizes[-1]
        gains = slope * (1.0 / largest - 1.0 / (largest + more))
        low, high = limits(gains[1:], np.unique(groups).size)
        lines.append(
            {
                "method": method,
                "budget": budget,
                "n_labelled": part["n_labelled"].median(),
                "n_people": np.unique(groups).size,
                "n_sources": int(largest),
                "accuracy": means[0, -1],
                "last": means[0, -1] - means[0, -2],
                "more": more,
                "gain": gains[0],
                "low": float(low),
                "high": float(high),
                "limit": limit[0],
            }
        )
    return pd.DataFrame(lines, columns=GAINS)


def crowd_curve(by_sources: pd.DataFrame, *, random_state: RandomState = 0) -> pd.DataFrame:
    """Mean accuracy for each method, budget and size of the crowd, and the fitted curve there.

    All sizes of a method and budget are of the same tasks.
    """
    import pandas as pd

    columns = ["method", "budget", "n_sources", "n_tasks", "mean", "low", "high", "fitted"]
    tables = []
    for method, budget, part in cells(by_sources):
        sizes, curves, groups = _curves(part)
        if not len(curves):
            continue
        low, high = limits(resampled_means(curves, groups, random_state), np.unique(groups).size)
        mean = curves.mean(0)
        limit, slope = _fitted(sizes, mean[None]) if sizes.size > 1 else (mean, np.zeros(1))
        tables.append(
            pd.DataFrame(
                {
                    "method": method,
                    "budget": budget,
                    "n_sources": sizes.astype(int),
                    "n_tasks": len(curves),
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "fitted": limit[0] - slope[0] / sizes,
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def _curves(part: pd.DataFrame) -> tuple[Array, Array, NDArray[Any]]:
    """Sizes (n_sizes,), accuracies (n_tasks, n_sizes) of tasks with all sizes, and their groups."""
    wide = part.pivot(index=["task", "group"], columns="n_sources", values="balanced_accuracy")
    # A size with which a method always fails, as one person for a covariance, is left out.
    wide = wide.dropna(axis="columns", how="all").dropna().sort_index(axis=1)
    sizes = wide.columns.to_numpy(dtype=np.float64)
    return sizes, wide.to_numpy(dtype=np.float64), wide.index.get_level_values("group").to_numpy()


def _fitted(sizes: Array, means: Array) -> tuple[Array, Array]:
    """Limits a and slopes b (n_curves,) of a - b / J for curves (n_curves, n_sizes)."""
    x = 1.0 / sizes
    centred = x - x.mean()
    slope = -means @ centred / (centred @ centred)
    return means.mean(1) + slope * x.mean(), slope
