"""MATB-II: band shares of the frontal EEG at low and at high load; and simulated sessions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossfade._typing import RandomState
from crossfade._validate import as_generator, check_choice, check_integer
from crossfade.signals import BANDS, Collected, load_mat, process_files
from crossfade.signals.eeg import BandPower
from crossfade.signals.windows import cut_windows
from crossfade.tasks import Task, TaskSet, with_about

if TYPE_CHECKING:
    import pandas as pd

CLASS_NAMES = {0: "medium or high workload", 1: "no or low workload"}
SFREQ = 500.0
LENGTH = 10.0
FRONTAL = ("Fp1", "Fp2", "F3", "F4", "F7", "F8", "Fz", "AFz")
# fmt: off
#: Order in which the amplifier, a 24-channel mBrainTrain Smarting, is assumed to send its channels.
SMARTING = (
    "Fp1", "Fp2", "F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2", "F7", "F8",
    "T7", "T8", "P7", "P8", "Fz", "Cz", "Pz", "M1", "M2", "AFz", "CPz", "POz",
)
# fmt: on
FEATURES = tuple(f"{name}_{band}" for name in FRONTAL for band in BANDS)
#: Bands of the paper's own run, in Hz; the text has those of :data:`BANDS`.
_BANDS_AS_RUN = {"theta": (4.0, 7.0), "alpha": (8.0, 12.0), "beta": (13.0, 20.0)}
_FOLDERS = re.compile(r"(sub\d+)_preprocessed/segmented_(session\d+)$")


def read_matb(
    folder: str | os.PathLike[str],
    *,
    ch_names: Sequence[str] = SMARTING,
    n_jobs: int = 1,
    recipe: str = "printed",
) -> TaskSet:
    """Read EEG recorded under NASA's Multi-Attribute Task Battery II, as preprocessed.

    The steps are the paper's: windows of 10 s, and the shares of theta (4 to 8 Hz), alpha (8 to 12
    Hz) and lower beta (12 to 20 Hz) in each of the eight frontal channels, 24 features. Label 1 is
    no or low load, label 0 medium or high load.

    Where the text is silent, this is assumed: the files are filtered already; `difficulty` below 2
    is no or low load; a file is a segment that may hold several windows, the last of which is moved
    back to end with it; segments follow each other in the order of the numbers in their names.

    With the recipe "authors", features are those of the paper's own run: bands of 4 to 7, 8 to 12
    and 13 to 20 Hz, each file one window, and files in the order of their names as text.

    Parameters
    ----------
    folder : str or path-like
        Where ``sub01_preprocessed/segmented_session1/*.mat`` and the others are, at any depth; each
        file holds `EEGData`, channels by samples at 500 Hz, and `difficulty`, one number.
    ch_names : sequence of str, default=SMARTING
        Names of the rows of `EEGData`, which the files do not hold. The default is the order in
        which the amplifier is assumed to send them.
    n_jobs : int, default=1
        Sessions that are read at the same time.
    recipe : {"printed", "authors"}, default="printed"
        Features and windows from the paper's text, or as its authors computed them.

    Returns
    -------
    TaskSet
        One task for each session, such as ``sub01-session1``; both sessions of a participant are
        one group. Windows start where they would if the segments followed each other without a
        break. Files that cannot be read are named in a warning.
    """
    return collect_matb(folder, ch_names=ch_names, n_jobs=n_jobs, recipe=recipe).tasks()


def collect_matb(
    folder: str | os.PathLike[str],
    *,
    ch_names: Sequence[str] = SMARTING,
    n_jobs: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
    recipe: str = "printed",
) -> Collected:
    """Table of :func:`read_matb`, with what could not be read and why."""
    import pandas as pd

    as_run = check_choice("recipe", recipe, ("printed", "authors")) == "authors"
    there = [name.lower() for name in ch_names]
    rows = [there.index(name.lower()) for name in FRONTAL]
    sessions = _find_sessions(Path(folder))
    frames: list[pd.DataFrame] = []
    failures: dict[str, str] = {}

    def read_session(path: Path) -> tuple[list[pd.DataFrame], dict[str, str]]:
        parts, bad, begun = [], {}, 0.0
        for file in sorted(path.glob("[!.]*.mat"), key=None if as_run else _by_number):
            try:
                part, seconds = _read_segment(file, rows, len(ch_names), as_run)
            except Exception as reason:  # SciPy raises whatever the damage of a file leads to
                bad[str(file)] = str(reason).strip() or type(reason).__name__
                continue
            part["start"] += begun
            begun += seconds
            parts.append(part)
        return parts, bad

    for path, (parts, bad) in process_files(list(sessions), read_session, n_jobs, on_progress):
        failures |= bad
        if any(part.notna().all(axis=1).any() for part in parts):
            frame = pd.concat(parts, ignore_index=True)
            participant, session = sessions[path]
            frame.insert(0, "group", participant)
            frame.insert(0, "task", f"{participant}-{session}")
            frames.append(frame)
        else:
            failures[str(path)] = "It has no window with all features."
    whole = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return Collected(with_about(whole, CLASS_NAMES), failures, [])


def _find_sessions(folder: Path) -> dict[Path, tuple[str, str]]:
    """Participant and session of each folder of segments, in the order of their numbers."""
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.resolve().rglob("segmented_session*"), key=_by_number):
        if match := _FOLDERS.search(path.as_posix()):
            found[match[1], match[2]] = path
    if not found:
        raise ValueError(
            f"{folder} has no session of MATB-II, such as sub01_preprocessed/segmented_session1."
        )
    return {path: name for name, path in found.items()}


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Sort key that has segment 2 before segment 10."""
    parts = re.findall(r"\d+|\D+", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _read_segment(
    path: Path, rows: list[int], n_channels: int, as_run: bool
) -> tuple[pd.DataFrame, float]:
    """Windows of one file, and how many seconds it lasts."""
    import pandas as pd

    wanted = ("EEGData", "difficulty")
    content = load_mat(path, variable_names=wanted)
    if not {*wanted} <= {*content}:
        raise ValueError(f"It lacks {' or '.join(wanted)}.")
    data, difficulty = content["EEGData"], np.unique(content["difficulty"])
    one = difficulty.size == 1 and difficulty.dtype.kind in "biuf" and not np.isnan(difficulty[0])
    if not one or data.ndim != 2 or len(data) != n_channels or data.dtype.kind not in "iuf":
        raise ValueError(
            f"EEGData must be {n_channels} channels by samples, and difficulty one number; got "
            f"{data.dtype} {data.shape} and {difficulty!r:.60}."
        )
    seconds = data.shape[1] / SFREQ
    length = seconds if as_run else LENGTH
    windows, start = cut_windows(data[rows].astype(np.float64), SFREQ, length=length)
    windows[~np.isfinite(windows)] = np.nan
    features = BandPower(SFREQ, _BANDS_AS_RUN if as_run else None).fit_transform(windows)
    frame = pd.DataFrame(features, columns=list(FEATURES))
    frame.insert(0, "start", start)
    frame.insert(0, "label", int(difficulty[0] < 2))
    return frame, seconds


def make_matb_like(
    *,
    n_participants: int = 50,
    n_sessions: int = 2,
    n_windows: int = 264,
    random_state: RandomState = 0,
) -> TaskSet:
    r"""Simulate sessions like those of MATB-II, which are not public.

    Log powers of three bands in eight channels are normal in each class. They become shares that
    sum to one in each channel, so the 24 features have rank 16. In units in which the noise is
    white, the half gap of session k of participant j is

    .. math:: \nu_{jk} \propto m + 0.21 \, (a_j + b_{jk}) / \sqrt{2}

    with a and b standard normal and m common to all: low load has less theta, most of all on the
    midline. Its length varies from session to session by a third. Noise is partly common to the
    channels. The concentration of the directions is near the paper's: 17.3 on average over seeds,
    where the paper has 17.2.

    Parameters
    ----------
    n_participants : int, default=50
        Participants, each a group.
    n_sessions : int, default=2
        Sessions of each.
    n_windows : int, default=264
        Windows of 10 s in a session: three rounds of the four loads in random order.
    random_state : int, Generator, RandomState or None, default=0
        Random generator.

    Returns
    -------
    TaskSet
        Sessions with labels as :func:`read_matb` has them, 1 for no or low load.

    Examples
    --------
    >>> from crossfade.datasets import make_matb_like
    >>> tasks = make_matb_like()
    >>> tasks
    TaskSet(n_tasks=100, n_features=24)
    >>> tasks[1]
    Task('sub01-session2', n_samples=264, n_features=24)
    """
    n_participants = check_integer("n_participants", n_participants, 1)
    n_sessions = check_integer("n_sessions", n_sessions, 1)
    n_windows = check_integer("n_windows", n_windows, 12)
    weight = np.array([0.5, 0.5, 1.0, 1.0, 0.5, 0.5, 1.5, 1.5])
    common = np.kron(weight, [-1.0, 0.3]) / np.linalg.norm(np.kron(weight, [-1.0, 0.3]))
    # Contrasts of theta with alpha, and of both with beta; a sum over bands changes no share.
    contrasts = np.kron(np.eye(8), [[0.5**0.5, -(0.5**0.5), 0.0], [6**-0.5, 6**-0.5, -2 * 6**-0.5]])
    # Square root of the covariance 0.76 I + 0.24 11': noise is partly common to the channels.
    alone, joint = 0.76**0.5, (0.76 + 8 * 0.24) ** 0.5
    noise = 0.25 * np.kron(alone * np.eye(8) + (joint - alone) / 8, np.eye(2))
    tasks = []
    for participant, rng in enumerate(as_generator(random_state).spawn(n_participants)):
        name = f"sub{participant + 1:02d}"
        usual = np.tile(np.log([0.4, 0.33, 0.27]), 8) + 0.3 * rng.standard_normal(24)
        theirs = rng.standard_normal(16)
        for session in range(n_sessions):
            own = common + 0.21 * (theirs + rng.standard_normal(16)) / np.sqrt(2.0)
            size = 0.64 * np.exp(0.3 * rng.standard_normal()) / np.linalg.norm(own)
            load = np.concatenate([rng.permutation(4) for _ in range(3)])
            y = (load[np.arange(n_windows) * 12 // n_windows] < 2).astype(np.int64)
            white = np.outer(2 * y - 1, size * own) + rng.standard_normal((n_windows, 16))
            power = np.exp(usual + white @ noise @ contrasts).reshape(n_windows, 8, 3)
            shares = (power / power.sum(2, keepdims=True)).reshape(n_windows, 24)
            start = LENGTH * np.arange(n_windows)
            tasks.append(Task(shares, y, f"{name}-session{session + 1}", name, FEATURES, start))
    return TaskSet(tasks, CLASS_NAMES)
