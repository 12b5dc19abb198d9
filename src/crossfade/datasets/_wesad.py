"""WESAD (Schmidt et al. 2018): heart-rate variability at baseline and under stress."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossfade.datasets._safe_pickle import load_arrays
from crossfade.signals._collect import Collected, process_files
from crossfade.signals._hamilton import find_beats
from crossfade.signals.ecg import heart_features
from crossfade.signals.windows import cut_windows

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.tasks._task import TaskSet

#: The paper has 14 of the 15 participants (WESAD has no S1 and S12) and does not say which one is
#: left out; it is S15 in the authors' code.
PARTICIPANTS = tuple(f"S{number}" for number in range(2, 18) if number not in (12, 15))
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

    Different from the authors' own run, so that numbers differ too: beats are found in the whole
    recording and not in each window by itself; intervals that a missed or false beat made are
    dropped; the share is one of the differences (theirs is over the number of intervals), the
    standard deviation has n - 1 (theirs n), and powers are areas under the spectrum within a band
    (theirs are sums over 1,000 frequencies from 0.01 to 1 Hz).

    Parameters
    ----------
    folder : str or path-like
        Where ``S2/S2.pkl`` and the others are, at any depth. The pickles are read without running
        anything that they hold, and in the memory of one ECG.
    missing : {"drop", "error"}, default="drop"
        What to do with windows of which a feature cannot be computed.
    n_jobs : int, default=1
        Participants that are read at the same time.
    on_progress : callable or None, default=None
        Called with the number of participants finished and the number of all.

    Returns
    -------
    TaskSet
        One task for each participant of the paper's, S2 to S17 without S12 and S15. One who
        cannot be read, or whose ECG holds no heartbeat, is named in a warning.
    """
    return collect_wesad(folder, n_jobs=n_jobs, on_progress=on_progress).tasks(missing)


def collect_wesad(
    folder: str | os.PathLike[str],
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Collected:
    """Table of :func:`read_wesad`, with who could not be read and why."""
    import pandas as pd

    frames: list[pd.DataFrame] = []
    failures: dict[str, str] = {}
    paths = _find_pickles(Path(folder))
    for path, outcome in process_files(paths, _read_participant, n_jobs, on_progress):
        if isinstance(outcome, str):
            failures[path.stem] = outcome
        else:
            frames.append(outcome)
    whole = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return Collected(whole, failures, [])


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


def _read_participant(path: Path) -> pd.DataFrame:
    import pandas as pd

    read = load_arrays(path, {"ECG": ("signal", "chest", "ECG"), "label": ("label",)})
    ecg, label = read["ECG"].ravel(), read["label"].ravel()
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
    features[gaps[samples].any(1)] = np.nan
    stress = (label[samples] == STRESS).mean(1) > 0.5
    whole = np.isfinite(features).all(1)
    if not (whole & stress).any() or not (whole & ~stress).any():
        raise ValueError(
            f"It has {len(beats)} beats in baseline and stress, and no window of one of them with "
            "all features."
        )
    frame = pd.DataFrame(features, columns=list(FEATURES))
    frame.insert(0, "start", samples[:, 0] / SFREQ)
    frame.insert(0, "label", stress.astype(np.int64))
    frame.insert(0, "task", path.stem)
    return frame
