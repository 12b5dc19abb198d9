"""WESAD (Schmidt et al. 2018): heart-rate variability at baseline and under stress."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crossfade.datasets._recipes import check_recipe
from crossfade.datasets._safe_pickle import load_arrays
from crossfade.signals import (
    FEWEST_FOR_SPECTRUM,
    HIGH,
    LOW,
    Collected,
    cut_windows,
    find_beats,
    heart_features,
    process_files,
)
from crossfade.tasks import with_names

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.tasks import TaskSet

Array = NDArray[np.float64]

#: The paper has 14 of the 15 participants (WESAD has no S1 and S12) and does not say which one is
#: left out; it is S15 in the authors' code.
PARTICIPANTS = tuple(f"S{number}" for number in range(2, 18) if number not in (12, 15))
CLASS_NAMES = {0: "baseline", 1: "stress"}
FEATURES = ("pnn20", "sdnn_ratio", "lf_hf")
BASELINE, STRESS = 1, 2
#: The chest is recorded at 700 Hz, of which every seventh sample is taken.
EVERY, SFREQ = 7, 100.0
LENGTH = 15.0
PAUSE = 3.0


def read_wesad(
    folder: str | os.PathLike[str],
    *,
    missing: str = "drop",
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
    recipe: str = "printed",
) -> TaskSet:
    """Read WESAD, Wearable Stress and Affect Detection (Schmidt et al. 2018).

    From the paper's text: ECG of the chest at 100 Hz, Hamilton's detector, windows of 15 s, and of
    each window the share of successive intervals that differ by more than 20 ms, the standard
    deviation of the intervals over their mean, and the ratio of low to high frequencies of a
    Lomb-Scargle spectrum. Label 0 is baseline, 1 is stress.

    Assumed, where the text is silent or misprinted: every seventh sample is taken; the low band is
    0.04 to 0.15 Hz and the high one 0.15 to 0.4 Hz (the text has 4 to 15 and 15 to 40 Hz); and
    windows are cut from baseline and stress put end to end, the last one moved back to end with
    them. A window belongs to the condition of most of its samples, so that one window spans the end
    of the baseline and the beginning of stress, unless the baseline is a whole number of windows.
    This rule gives 118 windows for S2, 76 and 42, as the authors have; each condition on its own
    would give 77 and 41.

    By the recipe "authors" the windows are the same and their features are as in the paper's own
    run: beats are found in each window by itself, not in the whole recording, and no interval is
    dropped, though a missed or false beat made it; the share is over the number of intervals, not
    of their differences; the standard deviation has n instead of n - 1; powers are sums over
    those of 1,000 frequencies from 0.01 to 1 Hz that lie in a band, not areas. Assumed there: the
    spectrum is of the intervals less their mean, at the times of the beats that end them.

    Parameters
    ----------
    folder : str or path-like
        Where ``S2/S2.pkl`` and the others are, at any depth. Nothing in the pickles is run.
    missing : {"drop", "error"}, default="drop"
        What to do with windows of which a feature cannot be computed.
    n_jobs : int, default=1
        Participants that are read at the same time.
    on_progress : callable or None, default=None
        Called with the number of participants finished and the number of all.
    recipe : {"printed", "authors"}, default="printed"
        Features from the paper's text, or as its authors computed them.

    Returns
    -------
    TaskSet
        One task for each participant of the paper's, S2 to S17 without S12 and S15. One who
        cannot be read, or whose ECG holds no heartbeat, is named in a warning.
    """
    found = collect_wesad(folder, n_jobs=n_jobs, on_progress=on_progress, recipe=recipe)
    return found.tasks(missing)


def collect_wesad(
    folder: str | os.PathLike[str],
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
    recipe: str = "printed",
) -> Collected:
    """Table of :func:`read_wesad`, with who could not be read and why."""
    import pandas as pd

    read = partial(_read_participant, recipe=check_recipe(recipe))
    frames: list[pd.DataFrame] = []
    failures: dict[str, str] = {}
    paths = _find_pickles(Path(folder))
    for path, outcome in process_files(paths, read, n_jobs, on_progress):
        if isinstance(outcome, str):
            failures[path.stem] = outcome
        else:
            frames.append(outcome)
    whole = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return Collected(with_names(whole, CLASS_NAMES), failures, [])


def _find_pickles(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("S*.pkl")):
        if path.stem in found:
            raise ValueError(
                f"{path.name} is there twice: {found[path.stem]} and {path}. Give the folder of "
                "one copy."
            )
        found[path.stem] = path
    paths = [found[name] for name in PARTICIPANTS if name in found]
    if not paths:
        raise ValueError(
            f"The folder {folder} holds no participant of WESAD. It should hold S2/S2.pkl, "
            "S3/S3.pkl and so on, as the archive has them."
        )
    return paths


def _read_participant(path: Path, recipe: str) -> pd.DataFrame:
    import pandas as pd

    ecg, label = load_arrays(path, ("signal", "chest", "ECG"), ("label",))
    ecg, label = ecg.ravel(), label.ravel()
    if ecg.size != label.size:
        raise ValueError(f"It has {ecg.size} samples of the ECG, but {label.size} labels.")
    ecg, label = ecg[::EVERY].astype(np.float64), label[::EVERY]
    for code, name in ((BASELINE, "baseline"), (STRESS, "stress")):
        if code not in label:
            raise ValueError(f"It has no label {code} ({name}); found {np.unique(label).tolist()}.")
    gaps = ~np.isfinite(ecg)
    if gaps.all():
        raise ValueError("Its ECG holds no number.")
    time = np.arange(ecg.size)
    ecg[gaps] = np.interp(time[gaps], time[~gaps], ecg[~gaps])

    kept = np.flatnonzero(np.isin(label, (BASELINE, STRESS)))
    samples = cut_windows(kept, SFREQ, length=LENGTH).data
    if recipe == "authors":
        beats = [find_beats(window, SFREQ).at for window in ecg[samples]]
        features = np.array([_as_run(own / SFREQ) for own in beats])
        n_beats = sum(map(len, beats))
    else:
        features, n_beats = _as_printed(ecg, kept, samples)
    features[gaps[samples].any(1)] = np.nan
    stress = (label[samples] == STRESS).mean(1) > 0.5
    whole = np.isfinite(features).all(1)
    if not (whole & stress).any() or not (whole & ~stress).any():
        raise ValueError(
            f"It has {n_beats} beats in baseline and stress, and no window of one of them with all "
            "features."
        )
    frame = pd.DataFrame(features, columns=list(FEATURES))
    frame.insert(0, "start", samples[:, 0] / SFREQ)
    frame.insert(0, "label", stress.astype(np.int64))
    frame.insert(0, "task", path.stem)
    return frame


def _as_printed(ecg: Array, kept: NDArray[np.intp], samples: NDArray[np.intp]) -> tuple[Array, int]:
    """Features (n_windows, 3) from the beats of the whole recording, and how many beats there are.

    `kept` are the samples of baseline and stress, `samples` (n_windows, n_samples) those of each
    window.
    """
    found = find_beats(ecg, SFREQ)
    if not found.stand_out:
        raise ValueError(
            "Its ECG holds no heartbeat: the peaks in it are no larger than those of noise."
        )
    beats = np.intersect1d(found.at, kept)
    # On this clock the time between the conditions is short, and longer than any interval of beats
    # that counts as one: no window has an interval with a foot in each.
    clock = np.zeros(ecg.size, dtype=np.int64)
    clock[kept] = np.cumsum(np.minimum(np.diff(kept, prepend=kept[0]), round(PAUSE * SFREQ)))
    begin, end = clock[samples[:, 0]], clock[samples[:, -1]] + 1
    features = np.empty((len(samples), len(FEATURES)))
    for n_samples in np.unique(end - begin):
        alike = end - begin == n_samples
        features[alike] = heart_features(
            clock[beats],
            begin[alike] / SFREQ,
            float(n_samples / SFREQ),
            sfreq=SFREQ,
            features=FEATURES,
        ).values
    return features, len(beats)


def _as_run(times: Array) -> Array:
    """Features (3,) of the beats of one window, in seconds, as the paper's authors had them."""
    from scipy.signal import lombscargle

    intervals = np.diff(times)
    if intervals.size < FEWEST_FOR_SPECTRUM:
        return np.full(len(FEATURES), np.nan)
    steps = np.abs(np.diff(intervals))
    # Sample numbers over the rate are off by rounding, which must not decide at 20 ms.
    share = (steps > 0.02 + 1e-9).sum() / intervals.size
    frequencies = np.linspace(0.01, 1.0, 1000)
    offsets = intervals - intervals.mean()
    power = lombscargle(times[1:], offsets, 2.0 * np.pi * frequencies)
    low, high = (
        power[(frequencies >= band[0]) & (frequencies < band[1])].sum() for band in (LOW, HIGH)
    )
    ratio = low / high if high > 0.0 else np.nan
    return np.array([share, intervals.std() / intervals.mean(), ratio])
