"""Beats of an ECG by Hamilton's rules (2002)."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import check_finite
from crossfade.signals._check import check_rate
from crossfade.signals._hamilton import MIN_SFREQ, find_beats

__all__ = ["hamilton"]

Indices = NDArray[np.int64]

_log = logging.getLogger("crossfade")


def hamilton(signal: ArrayLike, *, sfreq: float) -> Indices:
    """Find the beats of an ECG by the rules of Hamilton (2002).

    The signal is filtered to 8 to 16 Hz, differentiated, rectified and averaged over 80 ms. Of the
    peaks of that,

    1. those within 200 ms of a larger one are ignored;
    2. those where the signal only rises or only falls are shifts of the baseline;
    3. those within 360 ms of a beat and less than half as steep are its T wave;
    4. those above a threshold are beats: noise + 0.3125 (beats - noise), where "beats" is the
       median of the last eight;
    5. if for one and a half of the usual interval there was none, the largest peak since that is
       above half the threshold, and at least 360 ms after the last beat, is a beat.

    The first level of the beats is the median of the largest values in each of the first eight
    seconds. A beat is placed on the signal without hum and baseline, at the extreme within 100 ms:
    the upper one, or the lower one where that is by far the larger in most beats, or in this one.

    It departs from the paper in four ways. Filters have no delay. Noise is measured between the
    peaks (twice the level that eight seconds stay under for three tenths of the time), because
    peaks classified as noise mislead where every third beat is small. Half of the threshold is
    counted from the noise. After three seconds without a beat, the level of the beats is estimated
    again from the next eight seconds, so that detection resumes after an artefact.

    Parameters
    ----------
    signal : array-like of shape (n_samples,)
        One lead, a second or longer, in any unit and of either polarity.
    sfreq : float
        Samples per second, 50 or more; 250 or more place beats more accurately.

    Returns
    -------
    ndarray of shape (n_beats,), dtype int64
        Samples at which the beats are, increasing; none for a flat signal. The rules also find
        peaks in noise: the log has a warning if the beats are no larger than those.

    References
    ----------
    P. Hamilton, Open source ECG analysis. Computers in Cardiology 29, 101-104 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.signals.ecg import hamilton
    >>> time = np.arange(1000) / 100
    >>> beats = np.exp(-0.5 * ((time[:, None] - [1, 2, 3, 4.1, 5, 6, 7, 8.2, 9]) / 0.01) ** 2)
    >>> hamilton(beats.sum(1), sfreq=100)
    array([100, 200, 300, 410, 500, 600, 700, 820, 900])
    """
    rate = check_rate(sfreq, MIN_SFREQ)
    array = check_finite("signal", signal, 1)
    if array.ndim > 1 or array.size < round(rate):
        raise ValueError(f"signal must be one lead of a second or more; got shape {array.shape}.")
    found = find_beats(array, rate)
    if not found.stand_out:
        _log.warning(
            "The %d beats found hardly stand out from the noise; is this channel an ECG?",
            found.at.size,
        )
    return found.at
