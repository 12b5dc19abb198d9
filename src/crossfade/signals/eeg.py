"""Features of EEG windows: band powers, shares, their logarithms, and tangent vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import check_extra
from crossfade.signals.windows import check_rate

__all__ = ["BandPower", "tangent_vectors", "window_covariances"]


_AT_ONCE = 32
#: Power below this part of a channel's mean square is rounding: an amplitude of 1e-12.
_ROUNDING = 1e-24

Bands = Mapping[str, tuple[float, float]]
#: The bands of the paper, in Hz; both ends belong to a band.
BANDS: Bands = {"theta": (4.0, 8.0), "alpha": (8.0, 12.0), "beta": (12.0, 20.0)}


class BandPower(TransformerMixin, BaseEstimator):
    """Power of each channel in frequency bands: absolute or relative, with or without logarithm.

    The power p_b of band b is that of the periodogram (no taper, mean removed), summed over the
    frequencies from the lower to the upper end of the band, both included. The features of a
    channel with B bands are

    ============  =========  ============================  =======================================
    `relative`    `log`      feature                       name in ``crossfade features``
    ============  =========  ============================  =======================================
    True          False      p_b / (p_1 + ... + p_B)       shares; those of a channel sum to one
    False         False      p_b                           powers
    False         True       log p_b                       log-powers
    True          True       log p_b - mean of log p       clr, centred log-ratios; those of a
                                                           channel sum to zero
    ============  =========  ============================  =======================================

    Powers have long tails, which suit linear rules badly; their logarithms are nearly normal.
    Powers and log powers keep the amplitude of the signal, which also depends on the electrodes,
    the amplifier and the muscles. Where the classes are separate recordings, amplitude alone may
    tell them apart; shares and centred log-ratios do not depend on it.

    Parameters
    ----------
    sfreq : float
        Samples per second.
    bands : mapping of str to (float, float) or None, default=None
        Name, lower and upper end in Hz; None is theta 4 to 8, alpha 8 to 12, beta 12 to 20 Hz.
    relative : bool, default=True
        Compare the bands of a channel: shares instead of powers, and with `log` centred log-ratios
        instead of log powers.
    ch_names : sequence of str or None, default=None
        Names of the channels; None is ch1, ch2, ...
    log : bool, default=False
        Take natural logarithms. Power below 1e-24 of the channel's mean square is rounding and
        counts as zero: its logarithm is NaN, and so are all centred log-ratios of that channel.

    Attributes
    ----------
    n_channels_ : int
        Number of channels seen in fit.

    References
    ----------
    J. Aitchison, The statistical analysis of compositional data. Journal of the Royal Statistical
    Society B 44, 139-177 (1982).

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade.signals.eeg import BandPower
    >>> time = np.arange(500) / 100.0
    >>> windows = np.sin(2 * np.pi * 10.0 * time)[None, None, :]
    >>> power = BandPower(100.0, ch_names=["Pz"]).fit(windows)
    >>> power.get_feature_names_out()
    array(['Pz_theta', 'Pz_alpha', 'Pz_beta'], dtype=object)
    >>> power.transform(windows).round(3)
    array([[0., 1., 0.]])
    """

    def __init__(
        self,
        sfreq: float,
        bands: Bands | None = None,
        relative: bool = True,
        ch_names: Sequence[str] | None = None,
        log: bool = False,
    ) -> None:
        self.sfreq = sfreq
        self.bands = bands
        self.relative = relative
        self.ch_names = ch_names
        self.log = log

    def fit(self, X: ArrayLike, y: object = None) -> BandPower:
        """Check the parameters against windows; nothing is learnt from them.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_channels, n_samples)
            Windows.
        y : object, default=None
            Not used.

        Returns
        -------
        BandPower
            The transformer itself.
        """
        windows = _windows(X)
        if len(self._bins(windows.shape[2])) == 1 and self.relative and self.log:
            raise ValueError("Centred log-ratios need two bands. Pass relative=False, or add one.")
        self.n_channels_ = windows.shape[1]
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Compute the features of windows.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_channels, n_samples)
            Windows. The features of a window that holds NaN, or has no power in any band, are NaN.

        Returns
        -------
        ndarray of shape (n_windows, n_channels * n_bands)
            All bands of the first channel, then of the second, and so on.
        """
        from scipy.signal import periodogram

        check_is_fitted(self)
        windows = _windows(X)
        if windows.shape[1] != self.n_channels_:
            raise ValueError(f"X must have {self.n_channels_} channels; got {windows.shape[1]}.")
        bins = self._bins(windows.shape[2])
        power = np.empty((*windows.shape[:2], len(bins)))
        # In parts: the spectrum of a long recording at once would take several times its memory.
        for first in range(0, len(windows), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            _, density = periodogram(windows[part], fs=self.sfreq, axis=-1)
            power[part] = density @ bins.T * (self.sfreq / windows.shape[2])
            if self.log:
                least = _ROUNDING * np.square(windows[part]).mean(-1, keepdims=True)
                power[part] = np.log(np.where(power[part] > least, power[part], np.nan))
        if self.relative and self.log:
            power -= power.mean(-1, keepdims=True)
        elif self.relative:
            total = power.sum(-1, keepdims=True)
            power = power / np.where(total > 0.0, total, np.nan)
        return power.reshape(len(windows), -1)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the features, such as ``Fz_theta``.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        ndarray of str
            One name for each column.
        """
        check_is_fitted(self)
        names = self.ch_names
        if names is None:
            names = [f"ch{place + 1}" for place in range(self.n_channels_)]
        bands = BANDS if self.bands is None else self.bands
        return np.array([f"{name}_{band}" for name in names for band in bands], dtype=object)

    def _bins(self, n_samples: int) -> Array:
        """Rows of zeros and ones over the frequencies, one for each band."""
        rate = check_rate(self.sfreq)
        bands = BANDS if self.bands is None else self.bands
        frequencies = np.fft.rfftfreq(n_samples, 1.0 / rate)
        # A frequency that is meant to stand on an end may miss it by rounding.
        slack = 1e-9 * rate
        rows = np.zeros((len(bands), frequencies.size))
        for row, (name, ends) in zip(rows, bands.items(), strict=True):
            low, high = check_band(name, ends, rate)
            row[(frequencies >= low - slack) & (frequencies <= high + slack)] = 1.0
            if not row.any():
                raise ValueError(
                    f"Band {name!r} lies between the frequencies of a window, which are "
                    f"{rate / n_samples:g} Hz apart. Take longer windows."
                )
        return rows

    def __sklearn_tags__(self) -> Any:
        """Say that windows have three axes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags


def average_reference(data: Array) -> Array:
    """Subtract the mean over the channels that are not flat; `data` is (n_channels, n_samples)."""
    alive = np.ptp(data, axis=1) > 0.0
    if alive.sum() < 2:
        raise ValueError("An average reference needs two channels that are not flat.")
    return data - data[alive].mean(0)


def band_pass(data: Array, sfreq: float, low: float, high: float) -> Array:
    """Pass a band by MNE's default filter: linear phase, zero delay, Hamming window."""
    check_extra("mne", "eeg", "A band-pass")
    from mne.filter import filter_data

    return filter_data(data, sfreq, low or None, high, verbose="error")


def window_covariances(X: ArrayLike) -> Array:
    """Covariance of the channels in each window, shrunk by OAS so that it has full rank.

    Parameters
    ----------
    X : array-like of shape (n_windows, n_channels, n_samples)
        Windows.

    Returns
    -------
    ndarray of shape (n_windows, n_channels, n_channels)
        The covariances; NaN for a window that holds NaN.
    """
    check_extra("pyriemann", "eeg", "Covariances of windows")
    from pyriemann.estimation import Covariances

    windows = _windows(X)
    fine = np.isfinite(windows).all((1, 2))
    covariances = np.full((len(windows), windows.shape[1], windows.shape[1]), np.nan)
    if fine.any():
        covariances[fine] = Covariances(estimator="oas").transform(windows[fine])
    return covariances


def tangent_vectors(covariances: ArrayLike) -> Array:
    """Covariances of one participant as vectors in the tangent space at their own mean.

    The Riemannian mean M of all windows is moved to the identity. This removes differences between
    people and sessions and needs no label. The vectors are the upper triangles of
    log(M^-1/2 C M^-1/2), with off-diagonal entries times the square root of 2.

    Parameters
    ----------
    covariances : array-like of shape (n_windows, n_channels, n_channels)
        Covariances of all windows of one participant or session.

    Returns
    -------
    ndarray of shape (n_windows, n_channels * (n_channels + 1) / 2)
        The vectors; NaN where the covariance is.

    References
    ----------
    A. Barachant, S. Bonnet, M. Congedo, C. Jutten, Multiclass brain-computer interface
    classification by Riemannian geometry. IEEE Transactions on Biomedical Engineering 59, 920-928
    (2012).

    P. Zanini et al., Transfer learning: a Riemannian geometry framework with applications to
    brain-computer interfaces. IEEE Transactions on Biomedical Engineering 65, 1107-1116 (2018).
    """
    check_extra("pyriemann", "eeg", "A tangent space")
    from pyriemann.tangentspace import TangentSpace

    matrices = np.asarray(covariances, np.float64)
    fine = np.isfinite(matrices).all((1, 2))
    n_channels = matrices.shape[-1]
    vectors = np.full((len(matrices), n_channels * (n_channels + 1) // 2), np.nan)
    if fine.any():
        vectors[fine] = TangentSpace(metric="riemann").fit_transform(matrices[fine])
    return vectors


def _windows(X: ArrayLike) -> Array:
    """Windows (n_windows, n_channels, n_samples) as floats."""
    windows = np.asarray(X, dtype=np.float64)
    if windows.ndim != 3 or 0 in windows.shape:
        raise ValueError(
            f"X must be of shape (n_windows, n_channels, n_samples); got {windows.shape}."
        )
    return windows


def check_band(name: str, ends: Any, sfreq: float) -> tuple[float, float]:
    """Return the ends of a band in Hz, below half the sampling rate."""
    low, high = ends if np.shape(ends) == (2,) else (0.0, 0.0)
    if not 0.0 <= low < high <= sfreq / 2.0:
        raise ValueError(
            f"Band {name!r} must be two rising frequencies up to half of sfreq, {sfreq / 2.0:g} "
            f"Hz; got {ends!r}."
        )
    return low, high
