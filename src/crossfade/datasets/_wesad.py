"""WESAD (Schmidt et al. 2018): heart-rate variability at baseline and under stress."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crossfade._typing import Array
from crossfade._validate import check_choice
from crossfade.datasets._safe_pickle import load_arrays
from crossfade.signals import Collected, find_beats, heart_features, process_files
from crossfade.signals.windows import cut_windows
from crossfade.tasks import with_about

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.tasks import TaskSet


#: WESAD has 15 participants (no S1 and S12). The paper has 14; the authors' code leaves out S15.
PARTICIPANTS = tuple(f"S{number}" for number in range(2, 18) if number not in (12, 15))
CLASS_NAMES = {0: "baseline", 1: "stress"}
FEATURES = ("pnn20", "sdnn_ratio", "lf_hf")
BASELINE, STRESS = 1, 2
#: The chest is recorded at 700 Hz, of which every seventh sample is taken.
EVERY, SFREQ = 7, 100.0
LENGTH = 15.0
PAUSE = 3.0


def read_wesad(
    folder: str | os.PathLike[str], *, n_jobs: int = 1, recipe: str = "printed"
) -> TaskSet:
    """Read WESAD, Wearable Stress and Affect Detection (Schmidt et al. 2018).

    The steps are the paper's: ECG of the chest at 100 Hz, Hamilton's detector, windows of 15 s, and
    three features of each window: the share of successive intervals that differ by more than 20 ms,
    the standard deviation of the intervals over their mean, and the ratio of low to high
    frequencies of a Lomb-Scargle spectrum. Label 0 is baseline, 1 is stress.

    Where the text is silent or misprinted, this is assumed. Every seventh sample is taken. The low
    band is 0.04 to 0.15 Hz and the high one 0.15 to 0.4 Hz (the text has 4 to 15 and 15 to 40 Hz).
    Windows are cut from baseline and stress put end to end, the last one moved back to end with
    them, and a window belongs to the condition of most of its samples. This gives 118 windows for
    S2, 76 and 42, as the authors have; each condition on its own would give 77 and 41.

    With the recipe "authors", the windows are the same and the features are those of the paper's
    own run: beats are found in each window alone, and all intervals count; the share is over the
    number of intervals, not of their differences; the standard deviation has n instead of n - 1;
    powers are sums over those of 1,000 frequencies from 0.01 to 1 Hz that lie in a band. The
    spectrum is assumed to be of the intervals less their mean, at the times of the beats that end
    them.

    Parameters
    ----------
    folder : str or path-like
        Where ``S2/S2.pkl`` and the others are, at any depth. Nothing in the pickles is run.
    n_jobs : int, default=1
        Participants that are read at the same time.
    recipe : {"printed", "authors"}, default="printed"
        Features from the paper's text, or as its authors computed them.

    Returns
    -------
    TaskSet
        One task for each of the paper's participants, S2 to S17 without S12 and S15. Those who
        cannot be read, or whose ECG holds no heartbeat, are named in a warning.
    """
    return collect_wesad(folder, n_jobs=n_jobs, recipe=recipe).tasks()


def collect_wesad(
    folder: str | os.PathLike[str],
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
    recipe: str = "printed",
) -> Collected:
    """Table of :func:`read_wesad`, with who could not be read and why."""
    import pandas as pd

    check_choice("recipe", recipe, ("printed", "authors"))
    frames: list[pd.DataFrame] = []
    failures: dict[str, str] = {}
    found = {path.stem: path for path in sorted(Path(folder).rglob("S*.pkl"))}
    paths = [found[name] for name in PARTICIPANTS if name in found]
    if not paths:
        raise ValueError(f"{folder} has no participant of WESAD, such as S2/S2.pkl.")
    read = partial(_read_participant, recipe=recipe)
    for path, outcome in process_files(paths, read, n_jobs, on_progress):
        if isinstance(outcome, str):
            failures[path.stem] = outcome
        else:
            frames.append(outcome)
    whole = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return Collected(with_about(whole, CLASS_NAMES), failures, [])


def _read_participant(path: Path, recipe: str) -> pd.DataFrame:
    """Rows of one participant."""
    import pandas as pd

    ecg, label = (one.ravel() for one in load_arrays(path, ("signal", "chest", "ECG"), ("label",)))
    if ecg.size != label.size:
        raise ValueError(f"It has {ecg.size} samples of the ECG, but {label.size} labels.")
    ecg, label = ecg[::EVERY].astype(np.float64), label[::EVERY]
    if not {BASELINE, STRESS} <= {*label.tolist()}:
        raise ValueError(f"It lacks baseline (1) or stress (2); found {np.unique(label).tolist()}.")
    gaps = ~np.isfinite(ecg)
    time = np.arange(ecg.size)
    ecg[gaps] = np.interp(time[gaps], time[~gaps], ecg[~gaps])

    kept = np.flatnonzero(np.isin(label, (BASELINE, STRESS)))
    samples = cut_windows(kept, SFREQ, length=LENGTH).data
    if recipe == "authors":
        features = np.array(
            [_as_run(find_beats(window, SFREQ).at / SFREQ) for window in ecg[samples]]
        )
    else:
        features = _as_printed(ecg, kept, samples)
    features[gaps[samples].any(1)] = np.nan
    stress = (label[samples] == STRESS).mean(1) > 0.5
    whole = np.isfinite(features).all(1)
    if not (whole & stress).any() or not (whole & ~stress).any():
        raise ValueError("It has no window with all features in baseline, or in stress.")
    frame = pd.DataFrame(features, columns=list(FEATURES))
    frame.insert(0, "start", samples[:, 0] / SFREQ)
    frame.insert(0, "label", stress.astype(np.int64))
    frame.insert(0, "task", path.stem)
    return frame


def _as_printed(ecg: Array, kept: NDArray[np.intp], samples: NDArray[np.intp]) -> Array:
    """Features (n_windows, 3) of windows of `samples`, from the beats of the whole recording."""
    found = find_beats(ecg, SFREQ)
    if not found.stand_out:
        raise ValueError("Its ECG holds no heartbeat, only noise.")
    beats = np.intersect1d(found.at, kept)
    # On this clock the pause between the conditions is short, but longer than any interval that
    # counts, so that no window has an interval across the pause.
    clock = np.zeros(ecg.size, dtype=np.int64)
    clock[kept] = np.cumsum(np.minimum(np.diff(kept, prepend=kept[0]), round(PAUSE * SFREQ)))
    begin, end = clock[samples[:, 0]], clock[samples[:, -1]] + 1
    features = np.empty((len(samples), len(FEATURES)))
    for n_samples in np.unique(end - begin):
        alike = end - begin == n_samples
        features[alike] = heart_features(
            clock[beats] / SFREQ, begin[alike] / SFREQ, float(n_samples / SFREQ), FEATURES
        )
    return features


def _as_run(times: Array) -> Array:
    """Features (3,) of the beats of one window, in seconds, as the authors computed them."""
    from scipy.signal import lombscargle

    intervals = np.diff(times)
    if intervals.size < 4:
        return np.full(len(FEATURES), np.nan)
    steps = np.abs(np.diff(intervals))
    # Sample numbers over the rate are off by rounding, which must not decide at 20 ms.
    share = (steps > 0.02 + 1e-9).sum() / intervals.size
    frequencies = np.linspace(0.01, 1.0, 1000)
    offsets = intervals - intervals.mean()
    power = lombscargle(times[1:], offsets, 2.0 * np.pi * frequencies)
    low, high = (
        power[(frequencies >= a) & (frequencies < b)].sum() for a, b in ((0.04, 0.15), (0.15, 0.4))
    )
    ratio = low / high if high > 0.0 else np.nan
    return np.array([share, intervals.std() / intervals.mean(), ratio])
