"""EEG During Mental Arithmetic Tasks (Zyma et al. 2019): band shares at rest and at arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from crossfade.signals._collect import Collected, collect
from crossfade.signals._extract import EEGFeatures
from crossfade.signals._labels import FilenameLabels
from crossfade.tasks._task import TaskSet, read_tasks

#: Files ``_1`` are rest, files ``_2`` mental arithmetic.
LABELS = FilenameLabels(r"(?P<task>Subject\d+)_(?P<label>[12])\.edf$", {"1": "0", "2": "1"})
#: Made by ``scripts/make_mental_math.py``; licence and credit stand beside it.
TABLE = Path(__file__).parent / "data" / "mental_math.csv"


def load_mental_math() -> TaskSet:
    """Tasks of 36 people at rest (label 0) and at mental arithmetic (label 1).

    Nine features of 2.5 s windows of EEG: of Fz, Cz and Pz the shares of theta (4 to 8 Hz), alpha
    (8 to 12 Hz) and lower beta (12 to 20 Hz). The three of a channel sum to one, so that their
    covariance has rank 6. Computed by :func:`crossfade.read_eegmat` from "EEG During Mental
    Arithmetic Tasks" 1.0.0 (PhysioNet; Zyma et al. 2019, doi:10.3390/data4010014), under the Open
    Data Commons Attribution License 1.0.

    Returns
    -------
    TaskSet
        One task for each participant.

    Examples
    --------
    >>> from crossfade import load_mental_math
    >>> tasks = load_mental_math()
    >>> tasks
    TaskSet(n_tasks=36, n_features=9)
    >>> tasks[0]
    Task('Subject00', n_samples=98, n_features=9)
    """
    return read_tasks(TABLE, missing="error")


def read_eegmat(
    folder: str | os.PathLike[str],
    *,
    features: str = "shares",
    missing: str = "drop",
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> TaskSet:
    """Read "EEG During Mental Arithmetic Tasks" (PhysioNet, Zyma et al. 2019).

    The paper's steps: average reference over the 19 EEG channels, band-pass 0.5 to 30 Hz, channels
    Fz, Cz and Pz, windows of 2.5 s (the last one is moved back to end with the recording), and of
    each channel the shares of theta, alpha and lower beta. Label 0 is rest, 1 is arithmetic.

    Parameters
    ----------
    folder : str or path-like
        Where ``Subject00_1.edf`` and the others are.
    features : {"shares", "powers", "tangent"}, default="shares"
        What to compute from a window. Tangent vectors are of all 19 channels.
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
    found = collect_eegmat(folder, features=features, n_jobs=n_jobs, on_progress=on_progress)
    return found.tasks(missing)


def collect_eegmat(
    folder: str | os.PathLike[str],
    *,
    features: str = "shares",
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
    channels = None if features == "tangent" else ("Fz", "Cz", "Pz")
    extract = EEGFeatures(features, channels)
    return collect(paths, extract, LABELS, n_jobs=n_jobs, on_progress=on_progress)
