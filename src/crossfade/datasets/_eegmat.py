"""EEG During Mental Arithmetic Tasks (Zyma et al. 2019): band powers at rest and at arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from crossfade.signals import BANDS, KINDS, Collected, EEGFeatures, FilenameLabels, collect
from crossfade.tasks import Recipe, TaskSet, read_tasks, with_names

#: Files ``_1`` are rest, files ``_2`` mental arithmetic.
LABELS = FilenameLabels(r"(?P<task>Subject\d+)_(?P<label>[12])\.edf$", {"1": "0", "2": "1"})
CLASS_NAMES = {0: "rest", 1: "arithmetic"}
CHANNELS = ("Fz", "Cz", "Pz")
#: All others of the average reference, in the order of the files.
_OTHERS = [
    *("Fp1", "Fp2", "F3", "F4", "F7", "F8", "T3", "T4"),
    *("C3", "C4", "T5", "T6", "P3", "P4", "O1", "O2"),
]
#: How the tables that ship were made.
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
#: Made by ``scripts/make_mental_math.py``; licence and credit stand beside them.
TABLES = {
    "shares": _DATA / "mental_math.csv",
    "log-powers": _DATA / "mental_math_log_powers.csv",
}


def load_mental_math(*, features: str = "shares") -> TaskSet:
    """Tasks of 36 people at rest (label 0) and at mental arithmetic (label 1).

    Nine features of 2.5 s windows of EEG: of Fz, Cz and Pz the shares or the log powers of theta (4
    to 8 Hz), alpha (8 to 12 Hz) and lower beta (12 to 20 Hz). The three shares of a channel sum to
    one, so that their covariance has rank 6. Computed by :func:`crossfade.datasets.read_eegmat`
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
    Log powers tell the two classes apart far better than shares do: the posterior blend has a mean
    balanced accuracy of 0.74 instead of 0.69 with 5 % of the windows labelled, and 0.82 instead of
    0.76 with half of them. Be careful what you conclude from that. Rest and arithmetic are separate
    recordings, rest always the first, and log powers keep the amplitude, which may differ between
    two recordings for reasons that have nothing to do with arithmetic, such as electrodes or
    muscles. Shares do not see the amplitude.

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
    if features not in list(TABLES):
        words = " and ".join(repr(word) for word in TABLES)
        others = " or ".join(repr(word) for word in KINDS if word not in TABLES)
        raise ValueError(
            f"The features {words} of Mental Math ship with the package; got {features!r}. For "
            f"{others}, get the recordings and call read_eegmat(folder, features=...)."
        )
    recipe = replace(RECIPE, kind=features)
    tasks = read_tasks(TABLES[features], missing="error")
    return TaskSet((replace(task, recipe=recipe) for task in tasks), CLASS_NAMES)


def read_eegmat(
    folder: str | os.PathLike[str],
    *,
    features: str = "shares",
    causal: bool = False,
    missing: str = "drop",
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> TaskSet:
    """Read "EEG During Mental Arithmetic Tasks" (PhysioNet, Zyma et al. 2019).

    The paper's steps: average reference over the 19 EEG channels, band-pass 0.5 to 30 Hz, channels
    Fz, Cz and Pz, windows of 2.5 s (the last one is moved back to end with the recording), and of
    each channel the shares of theta, alpha and lower beta. Label 0 is rest, 1 is arithmetic.

    Rest and arithmetic are separate recordings. Features that keep the amplitude (powers, log
    powers, tangent vectors) may tell them apart by what has nothing to do with arithmetic; shares
    and centred log-ratios do not see it.

    Parameters
    ----------
    folder : str or path-like
        Where ``Subject00_1.edf`` and the others are.
    features : {"shares", "powers", "log-powers", "clr", "tangent"}, default="shares"
        What to compute from a window: shares, powers in microvolts squared, their natural
        logarithms, centred log-ratios (see :class:`crossfade.signals.eeg.BandPower`), or tangent
        vectors, which are of all 19 channels.
    causal : bool, default=False
        Use the past of each window only, as a live session must: a Butterworth filter in the place
        of one without delay, tangent vectors at the mean of the windows so far, of which the first
        eight have none, and no window that is moved back.
    missing : {"drop", "error"}, default="drop"
        What to do with windows of which a feature cannot be computed.
    n_jobs : int, default=1
        Files that are read at the same time.
    on_progress : callable or None, default=None
        Called with the number of files finished and the number of all.

    Returns
    -------
    TaskSet
        One task for each participant. A file that cannot be read is named in a warning.
    """
    found = collect_eegmat(
        folder, features=features, causal=causal, n_jobs=n_jobs, on_progress=on_progress
    )
    return found.tasks(missing)


def collect_eegmat(
    folder: str | os.PathLike[str],
    *,
    features: str = "shares",
    causal: bool = False,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Collected:
    """Table of :func:`read_eegmat`, with what could not be read and why."""
    where = Path(folder)
    if not where.is_dir():
        raise FileNotFoundError(f"There is no folder {where}.")
    paths = sorted(p for p in where.rglob("*.edf") if LABELS.pattern.search(p.name))
    if not paths:
        raise ValueError(
            f"The folder {where} holds no file such as Subject00_1.edf. It should be the folder "
            "of eegmat 1.0.0 as PhysioNet has it."
        )
    channels = None if features == "tangent" else CHANNELS
    extract = EEGFeatures(features, channels, causal=causal)
    found = collect(paths, extract, LABELS, n_jobs=n_jobs, on_progress=on_progress)
    return found._replace(frame=with_names(found.frame, CLASS_NAMES))
