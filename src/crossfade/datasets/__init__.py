"""The data of the paper's three studies, each as a set of tasks.

=============  ======================================  ================================
study          one task                                features of a window
=============  ======================================  ================================
Mental Math    a person at rest and at arithmetic      EEG, 9 shares of bands, 2.5 s
WESAD          a person at baseline and under stress   ECG, 3 of the heart, 15 s
MATB-II        a session at low and at high load       EEG, 24 shares of bands, 10 s
=============  ======================================  ================================

:func:`~crossfade.load_mental_math` needs no recordings: its features ship with the package, as
shares and as log powers.
:func:`read_eegmat`, :func:`read_wesad` and :func:`read_matb`
compute features from a folder of recordings with :mod:`crossfade.signals`; each says what it
assumes where the paper is silent. :func:`make_matb_like` simulates the third, whose recordings
are not public. `_live_demo` has one person's filtered signal, and a prior of the others. Pickles of
WESAD are read by `_safe_pickle`, which runs nothing that they hold.
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
