"""Windows of equal length, cut from a signal every ``length - overlap`` seconds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossfade._validate import check_number

__all__ = ["cut_windows"]


class Windows(NamedTuple):
    """Windows (n_windows, ..., n_samples), and when each began, in seconds."""

    data: NDArray[Any]
    start: NDArray[np.float64]


def check_rate(sfreq: object, low: float = 0.0) -> float:
    """Return a sampling rate of at least `low`."""
    rate = check_number("sfreq", sfreq, low)
    if not 0.0 < rate < np.inf:
        raise ValueError(f"sfreq must be a positive number of samples per second; got {sfreq!r}.")
    return rate


def cut_windows(signal: ArrayLike, sfreq: float, *, length: float, overlap: float = 0.0) -> Windows:
    """Cut a signal into windows; the last one is moved back so that it ends with the signal.

    Parameters
    ----------
    signal : array-like of shape (..., n_samples)
        One channel, or channels in rows.
    sfreq : float
        Samples per second.
    length : float
        Length of a window, in seconds.
    overlap : float, default=0.0
        How much of a window belongs to the next one too, in seconds.

    Returns
    -------
    data : ndarray of shape (n_windows, ..., n_samples)
        The windows.
    start : ndarray of shape (n_windows,)
        When each began, in seconds from the beginning of the signal.

    Examples
    --------
    >>> from crossfade.signals.windows import cut_windows
    >>> cut_windows(range(11), 1.0, length=4.0).start
    array([0., 4., 7.])
    """
    array = np.asarray(signal)
    rate = check_rate(sfreq)
    n_window = round(check_number("length", length, 0.0) * rate)
    step = n_window - round(check_number("overlap", overlap, 0.0) * rate)
    if step < 1:
        raise ValueError(f"overlap must be shorter than a window; got {overlap} of {length} s.")
    n_samples = array.shape[-1]
    if n_samples < n_window:
        raise ValueError(
            f"The signal is shorter than a window: {n_samples / rate:.4g} s for {length:g} s."
        )
    first = np.arange(0, n_samples - n_window + 1, step)
    if first[-1] + n_window < n_samples:
        first = np.append(first, n_samples - n_window)
    views = np.lib.stride_tricks.sliding_window_view(array, n_window, axis=-1)
    return Windows(np.moveaxis(views, -2, 0)[first], first / rate)
