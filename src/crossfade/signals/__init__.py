"""From recordings to features: EEG and ECG of one person, cut into labelled windows.

A file is opened by :mod:`~crossfade.signals.recordings` (XDF, MATLAB, and every format of MNE),
which names its channels as people do and reads them in microvolts. Labels come from the name of the
file, from its annotations or from a table (`_labels`), and mark segments of time.
:mod:`~crossfade.signals.windows` cuts those into windows of equal length.

Of each window, :mod:`~crossfade.signals.eeg` computes band powers, their shares, the logarithms of
both, or the tangent vector of the channels' covariance; :mod:`~crossfade.signals.ecg` finds the
beats by Hamilton's rules and computes the heart-rate variability. `_extract` does all of this for
one recording and says what is wrong with it (gaps, flat or clipped channels, an ECG without a
heartbeat). `_online` does it for a running stream, by the same code and with the past alone
(`_causal`). `_collect` does it for many files in parallel, and returns the table that
:func:`crossfade.read_tasks` reads: one row for each window, one task for each person or session.
"""
