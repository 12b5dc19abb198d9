"""Make the table that crossfade.load_mental_math reads from the EDF files of eegmat 1.0.0.

Usage: python scripts/make_mental_math.py FOLDER
"""

import sys

from crossfade._atomic import write_whole
from crossfade.datasets import read_eegmat
from crossfade.datasets._eegmat import TABLE


def table(folder):
    """Shares of all windows, with all their digits: rounded ones would not sum to one."""
    return read_eegmat(folder, n_jobs=2).to_frame()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_whole(TABLE, table(sys.argv[1]).to_csv(index=False).encode())
    print(f"Written: {TABLE}")
