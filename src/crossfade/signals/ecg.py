"""Beats of an ECG by Hamilton's rules (2002), and heart-rate variability of its windows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from crossfade.signals._hamilton import check_ecg_rate, find_beats
from crossfade.signals._variability import (
    HeartFeatures,
    Intervals,
    check_features,
    clean_intervals,
    count_missing,
    features_of_windows,
    heart_features,
)

__all__ = [
    "HeartFeatures",
    "HeartRateVariability",
    "Intervals",
    "clean_intervals",
    "hamilton",
    "heart_features",
]

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

    It begins with the median of the largest values in each of the first eight seconds. A beat is
    then placed on the signal itself, freed of hum and baseline, at the extreme within 100 ms: the
    upper one, or the lower one where that is by far the larger in most beats, or in this one.

    It departs from the paper in four ways. Filters have no delay. Noise is measured between the
    peaks (twice the level that eight seconds stay under for three tenths of the time) and not on
    peaks classified as noise: where every third beat is small, those would be the only such peaks
    and would raise the threshold above themselves. Half of the threshold is counted from the noise.
    After three seconds without a beat, the level of the beats is estimated again from the eight
    seconds that follow, so that detection resumes after an artefact or a loose electrode.

    Parameters
    ----------
    signal : array-like of shape (n_samples,)
        One lead, a second or longer, in any unit and of either polarity.
    sfreq : float
        Samples per second, 50 or more. Beats are placed to a sample, so 250 or more are better.

    Returns
    -------
    ndarray of shape (n_beats,), dtype int64
        Samples at which the beats are, increasing; none for a flat signal. The rules find peaks in
        noise, too: the log has a warning if those found are no larger.

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
    rate = check_ecg_rate(sfreq)
    found = find_beats(_check_signal(signal, rate), rate)
    if not found.stand_out:
        _log.warning(
            "The %d beats found hardly stand out from the noise; is this channel an ECG?",
            found.at.size,
        )
    return found.at


class HeartRateVariability(TransformerMixin, BaseEstimator):
    """Heart rate variability of windows of an ECG.

    Beats are found in each window by :func:`hamilton`, intervals cleaned by
    :func:`clean_intervals`. Where the whole recording is at hand, finding its beats once and
    :func:`heart_features` is better: a window alone has no past, and loses the intervals at its
    ends.

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
    holds less than one period of 0.04 Hz: its `lf` is computed all the same, as the paper does, and
    says little about so slow a wave.

    What a window has too few beats for is NaN. So is everything of a window whose peaks are no
    larger than those of noise: it holds no heartbeat. The log says in how many windows.

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

    See Also
    --------
    heart_features : The same from the beats of a whole recording.

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
        self._check_windows(X, reset=True)
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
        windows, rate = self._check_windows(X, reset=False)
        values, no_heartbeat, n_dropped = features_of_windows(windows, rate, names)
        missing = count_missing(values[~no_heartbeat], names)
        counts = ", ".join(f"{name} in {n}" for name, n in missing.items() if n)
        if counts or no_heartbeat.any():
            _log.warning(
                "Of %d windows, too few beats: %s; no heartbeat, only noise: %d.",
                len(windows),
                counts or "none",
                no_heartbeat.sum(),
            )
        _log.info("%d intervals dropped in %d windows.", n_dropped.sum(), len(windows))
        return values

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

    def _check_windows(self, X: ArrayLike, *, reset: bool) -> tuple[Array, float]:
        rate = check_ecg_rate(self.sfreq)
        array = np.asarray(X)
        shape = array.shape
        if len(shape) == 3 and shape[1] == 1:
            X = array[:, 0]
        elif len(shape) == 3:
            raise ValueError(
                f"X must be windows of one lead, (n_windows, n_samples); got shape {shape}. Choose "
                "one of the channels."
            )
        windows = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_features=2
        )
        _check_samples("X", windows, rate)
        return windows, rate


def _check_signal(signal: ArrayLike, rate: float) -> Array:
    if np.iscomplexobj(signal):
        raise ValueError("signal must be real numbers; got complex ones.")
    try:
        array = np.asarray(signal, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"signal must be numbers, one for each sample: {reason}.") from reason
    if array.ndim != 1:
        raise ValueError(
            f"signal must have one axis, the samples of one lead; got shape {array.shape}."
        )
    _check_samples("signal", array, rate)
    return array


def _check_samples(name: str, array: Array, rate: float) -> None:
    n_samples = array.shape[-1]
    if n_samples < round(rate):
        raise ValueError(
            f"{name} must last a second or longer; got {n_samples} samples at {rate:g} Hz, which "
            f"are {n_samples / rate:.3g} s."
        )
    n_bad = array.size - int(np.isfinite(array).sum())
    if n_bad:
        raise ValueError(
            f"{name} must be finite; {n_bad} of {array.size} samples are NaN or infinite. Cut them "
            "out, or fill short gaps by interpolation."
        )
