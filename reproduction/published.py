"""The paper's numbers, from the tables in ``reference/``."""

from pathlib import Path

import pandas as pd

_FOLDER = Path(__file__).parent / "reference"


def reference(name: str) -> pd.DataFrame:
    """Table of numbers that the paper or its authors report."""
    return pd.read_csv(_FOLDER / f"{name}.csv")


def statistics_of(study: str) -> pd.DataFrame:
    """All numbers of "matb", "mental-math" or "wesad"."""
    table = reference("applications")
    return table[table["study"] == study]


def further(source: str, statistic: str) -> pd.DataFrame:
    """Numbers of Mental Math from the "text", or from the "authors"' own run."""
    table = reference("further")
    return table[(table["source"] == source) & (table["statistic"] == statistic)]
