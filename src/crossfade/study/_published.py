"""A table of the paper's numbers in, its mean accuracies by our names of methods out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["proportion", "classifier", "value"]
#: Names of the paper's classifiers that are not ours.
_NAMES = {"optimal": "paper"}


def published(reference: pd.DataFrame | None) -> pd.DataFrame:
    """Mean balanced accuracies of the paper, as methods of a study have them.

    Parameters
    ----------
    reference : DataFrame or None
        Values of one study with the columns `proportion`, `classifier` and `value`; with a column
        `statistic`, those that are a mean balanced accuracy.

    Returns
    -------
    DataFrame
        These columns, the paper's "optimal" being our "paper"; no rows of None.
    """
    import pandas as pd

    if reference is None:
        return pd.DataFrame(columns=_COLUMNS)
    missing = [name for name in _COLUMNS if name not in reference]
    if missing:
        raise ValueError(
            f"reference must have the columns {', '.join(_COLUMNS)}; {', '.join(missing)} not "
            f"found among {', '.join(map(str, reference.columns))}."
        )
    if "statistic" in reference:
        reference = reference[reference["statistic"] == "mean_balanced_accuracy"]
    table = reference[_COLUMNS].replace({"classifier": _NAMES})
    twice = table.duplicated(["proportion", "classifier"])
    if twice.any():
        first = table[twice].iloc[0]
        raise ValueError(
            f"reference has several values of {first['classifier']} at {first['proportion']:g}. "
            "Keep those of one study and one statistic."
        )
    return table
