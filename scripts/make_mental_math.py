"""Make the tables that crossfade.load_mental_math reads from the EDF files of eegmat 1.0.0.

Usage: python scripts/make_mental_math.py FOLDER
"""

import sys

from crossfade._files import write_whole
from crossfade.datasets import read_eegmat
from crossfade.datasets._eegmat import TABLES

#: Decimals of the features. Shares keep all: rounded ones would not sum to one.
DECIMALS = {"shares": None, "log-powers": 4}


def table(folder, features="shares"):
    """Features of all windows, as they ship."""
    tasks = read_eegmat(folder, features=features, n_jobs=2)
    frame = tasks.to_frame()
    if DECIMALS[features] is not None:
        names = list(tasks.feature_names)
        frame[names] = frame[names].round(DECIMALS[features])
    return frame


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for features, path in TABLES.items():
        write_whole(path, table(sys.argv[1], features).to_csv(index=False).encode())
        print(f"Written: {path}")
