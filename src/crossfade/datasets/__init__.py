"""Recordings of the paper's three studies in, tasks out."""

from crossfade.datasets.eegmat import read_eegmat
from crossfade.datasets.matb import make_matb_like, read_matb
from crossfade.datasets.mental_math import load_mental_math
from crossfade.datasets.wesad import read_wesad

__all__ = ["load_mental_math", "make_matb_like", "read_eegmat", "read_matb", "read_wesad"]
