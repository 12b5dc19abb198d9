"""Recordings of the paper's three studies in, tasks out."""

from crossfade.datasets._eegmat import read_eegmat
from crossfade.datasets._matb import make_matb_like, read_matb
from crossfade.datasets._mental_math import load_mental_math
from crossfade.datasets._wesad import read_wesad

__all__ = ["load_mental_math", "make_matb_like", "read_eegmat", "read_matb", "read_wesad"]

for _name in __all__:
    globals()[_name].__module__ = __name__
