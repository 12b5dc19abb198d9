"""The data of the paper's three studies, each as a set of tasks.

=============  ======================================  ================================
study          one task                                features of a window
=============  ======================================  ================================
Mental Math    a person at rest and at arithmetic      EEG, 9 shares of bands, 2.5 s
WESAD          a person at baseline and under stress   ECG, 3 of the heart, 15 s
MATB-II        a session at low and at high load       EEG, 24 shares of bands, 10 s
=============  ======================================  ================================

The features of Mental Math ship with the package (:func:`~crossfade.load_mental_math`); the others
are computed from a folder of recordings. :func:`make_matb_like` simulates MATB-II, which is not
public.
"""

from crossfade.datasets._eegmat import collect_eegmat, load_mental_math, read_eegmat
from crossfade.datasets._live_demo import load_live_demo
from crossfade.datasets._matb import collect_matb, make_matb_like, read_matb
from crossfade.datasets._safe_pickle import load_arrays
from crossfade.datasets._wesad import collect_wesad, read_wesad

__all__ = ["load_mental_math", "make_matb_like", "read_eegmat", "read_matb", "read_wesad"]

#: From a folder of recordings to a table, by the name of the study.
COLLECTORS = {"eegmat": collect_eegmat, "wesad": collect_wesad, "matb": collect_matb}

for _name in __all__:
    globals()[_name].__module__ = __name__
