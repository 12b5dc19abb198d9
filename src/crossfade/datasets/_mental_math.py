"""The Mental Math study of the paper, from the table of features that ships with the package."""

from __future__ import annotations

from pathlib import Path

from crossfade.tasks._task import TaskSet, read_tasks

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
