"""EEG During Mental Arithmetic Tasks (Zyma et al. 2019): band powers at rest and at arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from crossfade._validate import check_choice
from crossfade.signals import BANDS, Collected, collect, eeg_recipe, label_from
from crossfade.tasks import Recipe, TaskSet, read_tasks, with_about

#: Files ``_1`` are rest, files ``_2`` mental arithmetic.
PATTERN = r"(?P<task>Subject\d+)_(?P<label>[12])\.edf$"
CLASS_NAMES = {0: "rest", 1: "arithmetic"}
CHANNELS = ("Fz", "Cz", "Pz")
#: Other channels of the average reference, in the order of the files.
_OTHERS = [
    *("Fp1", "Fp2", "F3", "F4", "F7", "F8", "T3", "T4"),
    *("C3", "C4", "T5", "T6", "P3", "P4", "O1", "O2"),
]
#: Recipe of the tables in this package.
RECIPE = Recipe(
    "shares",
    sfreq=500.0,
    channels=CHANNELS,
    window=2.5,
    reference="average",
    averaged=(*CHANNELS, *_OTHERS),
    filter="zero-phase",
    band=(0.5, 30.0),
    bands=tuple((name, *ends) for name, ends in BANDS.items()),
)
_DATA = Path(__file__).parent / "data"
#: Made by ``scripts/make_mental_math.py``; data/LICENSE.md has licence and credit.
TABLES = {
    "shares": _DATA / "mental_math.csv",
    "log-powers": _DATA / "mental_math_log_powers.csv",
}


def load_mental_math(*, features: str = "shares") -> TaskSet:
    """Tasks of 36 people at rest (label 0) and at mental arithmetic (label 1).

    The nine features of each 2.5 s window of EEG are shares or log powers of theta (4 to 8 Hz),
    alpha (8 to 12 Hz) and lower beta (12 to 20 Hz) at Fz, Cz and Pz. The three shares of a channel
    sum to one, so their covariance has rank 6. :func:`crossfade.datasets.read_eegmat` computed them
    from "EEG During Mental Arithmetic Tasks" 1.0.0 (PhysioNet; Zyma et al. 2019,
    doi:10.3390/data4010014), under the Open Data Commons Attribution License 1.0.

    Parameters
    ----------
    features : {"shares", "log-powers"}, default="shares"
        The paper's shares, or natural logarithms of the powers in microvolts squared, rounded to
        four decimals.

    Returns
    -------
    TaskSet
        One task for each participant.

    Notes
    -----
    Log powers separate the two classes better than shares do: the posterior blend reaches a mean
    balanced accuracy of 0.74 instead of 0.69 with 5 % of the windows labelled, and 0.82 instead of
    0.76 with half of them. Rest and arithmetic are separate recordings, however, and log powers
    keep the amplitude, which may differ between recordings for other reasons than arithmetic, such
    as electrodes or muscles. Shares do not depend on the amplitude.

    Examples
    --------
    >>> from crossfade import load_mental_math
    >>> tasks = load_mental_math()
    >>> tasks
    TaskSet(n_tasks=36, n_features=9)
    >>> tasks[0]
    Task('Subject00', n_samples=98, n_features=9)
    >>> load_mental_math(features="log-powers")[0].X[0, :3]
    array([0.7719, 2.453 , 1.9616])
    """
    check_choice("features", features, list(TABLES))
    recipe = replace(RECIPE, kind=features)
    tasks = read_tasks(TABLES[features], missing="error")
    return TaskSet((replace(task, recipe=recipe) for task in tasks), CLASS_NAMES)


def read_eegmat(
    folder: str | os.PathLike[str],
    *,
    features: str = "shares",
    causal: bool = False,
    n_jobs: int = 1,
) -> TaskSet:
    """Read "EEG During Mental Arithmetic Tasks" (PhysioNet, Zyma et al. 2019).

    The steps are the paper's: average reference over the 19 EEG channels, band-pass 0.5 to 30 Hz,
    channels Fz, Cz and Pz, windows of 2.5 s (the last one is moved back to end with the recording),
    and the shares of theta, alpha and lower beta in each channel. Label 0 is rest, 1 is arithmetic.

    Rest and arithmetic are separate recordings. Features that keep the amplitude (powers, log
    powers, tangent vectors) may separate them for other reasons than arithmetic; shares and centred
    log-ratios do not depend on it.

    Parameters
    ----------
    folder : str or path-like
        Where ``Subject00_1.edf`` and the others are.
    features : {"shares", "powers", "log-powers", "clr", "tangent"}, default="shares"
        What to compute from a window: shares, powers in microvolts squared, their natural
        logarithms, centred log-ratios (see :class:`crossfade.signals.eeg.BandPower`), or tangent
        vectors of all 19 channels.
    causal : bool, default=False
        Use the past of each window only, as a live session must: a Butterworth filter instead of
        one without delay, tangent vectors at the mean of the windows so far, starting with the
        ninth, and no window that is moved back.
    n_jobs : int, default=1
        Files that are read at the same time.

    Returns
    -------
    TaskSet
        One task for each participant. Files that cannot be read are named in a warning.
    """
    return collect_eegmat(folder, features=features, causal=causal, n_jobs=n_jobs).tasks()


def collect_eegmat(
    folder: str | os.PathLike[str],
    *,
    features: str = "shares",
    causal: bool = False,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Collected:
    """Table of :func:`read_eegmat`, with what could not be read and why."""
    paths = sorted(Path(folder).rglob("Subject[0-9][0-9]_[12].edf"))
    if not paths:
        raise ValueError(f"{folder} has no file such as Subject00_1.edf. Get eegmat 1.0.0.")
    channels = None if features == "tangent" else CHANNELS
    recipe_for = partial(eeg_recipe, kind=features, channels=channels, causal=causal)
    label = label_from("filename", pattern=PATTERN, classes={"1": "0", "2": "1"})
    found = collect(paths, recipe_for, label, n_jobs=n_jobs, on_progress=on_progress)
    return found._replace(frame=with_about(found.frame, CLASS_NAMES))
