"""Beats of an ECG by Hamilton's rules (2002), and heart-rate variability of its windows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from crossfade._validate import check_finite
from crossfade.signals._check import check_rate
from crossfade.signals._hamilton import MIN_SFREQ, find_beats
from crossfade.signals._variability import check_features, features_of_windows

__all__ = ["HeartRateVariability", "hamilton"]

Array = NDArray[np.float64]
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


class HeartRateVariability(TransformerMixin, BaseEstimator):
    """Heart-rate variability of windows of an ECG.

    Beats are found by :func:`hamilton` in each window alone. An interval between beats counts if it
    lasts from 0.3 to 2 s and is within 30 per cent of the median of the seven such intervals around
    it, or of a neighbour that is.

    ============  ==================================================================  ==========
    feature       what                                                                needs
    ============  ==================================================================  ==========
    pnn20, pnn50  share of differences of successive intervals above 20 or 50 ms      1 pair
    sdnn_ratio    standard deviation of the intervals over their mean                 2 intervals
    rmssd         root of the mean square of those differences, in ms                 1 pair
    rate          beats per minute, 60 over the mean interval                         1 interval
    lf, hf        power in 0.04 to 0.15 and 0.15 to 0.4 Hz, in ms^2                   4 intervals
    lf_hf         their ratio                                                         4 intervals
    ============  ==================================================================  ==========

    Powers are areas under the Lomb-Scargle periodogram of the intervals, less their mean, against
    the times at which they ended; a sine of amplitude a has the power a^2 / 2. A window of 15 s
    holds less than one period of 0.04 Hz: its `lf` says little about so slow a wave.

    A feature is NaN where a window has too few beats for it. All features of a window are NaN if it
    lacks samples, or if its peaks are no larger than those of noise.

    Parameters
    ----------
    sfreq : float
        Samples per second.
    features : sequence of str, default=("pnn20", "sdnn_ratio", "lf_hf")
        Which features, in this order.

    Attributes
    ----------
    n_features_in_ : int
        Number of samples in a window.

    References
    ----------
    Task Force of the European Society of Cardiology and the North American Society of Pacing and
    Electrophysiology, Heart rate variability: standards of measurement, physiological
    interpretation, and clinical use. Circulation 93, 1043-1065 (1996).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.signals.ecg import HeartRateVariability
    >>> time = np.arange(1000) / 100
    >>> beats = np.exp(-0.5 * ((time[:, None] - [1, 2, 3, 4.1, 5, 6, 7, 8.2, 9]) / 0.01) ** 2)
    >>> HeartRateVariability(100, features=["rate", "pnn50"]).fit_transform([beats.sum(1)])
    array([[60.        ,  0.71428571]])
    """

    def __init__(
        self, sfreq: float, features: Sequence[str] = ("pnn20", "sdnn_ratio", "lf_hf")
    ) -> None:
        self.sfreq = sfreq
        self.features = features

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the parameters and the windows; nothing is learnt.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_samples) or (n_windows, 1, n_samples)
            Windows of an ECG.
        y : object, default=None
            Ignored.

        Returns
        -------
        HeartRateVariability
            The transformer itself.
        """
        check_features(self.features)
        self._windows(X, reset=True)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Compute the features of each window.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_samples) or (n_windows, 1, n_samples)
            Windows of an ECG.

        Returns
        -------
        ndarray of shape (n_windows, n_features)
            The features.
        """
        names = check_features(self.features)
        return features_of_windows(self._windows(X, reset=False), self.sfreq, names)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the features.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (n_features,)
            The names, in the order of the columns.
        """
        return np.array(check_features(self.features), dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that nothing is learnt in fit."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _windows(self, X: ArrayLike, *, reset: bool) -> Array:
        """Windows (n_windows, n_samples) of a second or more."""
        rate = check_rate(self.sfreq, MIN_SFREQ)
        array = np.asarray(X)
        if array.ndim == 3 and array.shape[1] == 1:
            array = array[:, 0]
        windows: Array = validate_data(
            self,
            array,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_features=round(rate),
        )
        return windows
