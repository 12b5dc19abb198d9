"""EEG During Mental Arithmetic Tasks (Zyma et al. 2019) as a data set of MOABB."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mne
import numpy as np
from moabb.datasets.base import BaseDataset

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.datasets import EEGMAT_CLASS_NAMES as CLASS_NAMES
from crossfade.datasets import EEGMAT_PATTERN, RECIPE
from crossfade.signals import average_reference, band_pass, open_recording

#: Seconds of a run: both classes have runs of this length, and so the same joints.
_SECONDS_OF_A_RUN = 10.0


class EegMat(BaseDataset):
    """Rest and mental arithmetic of 36 people, from a local folder.

    The steps of :func:`crossfade.datasets.read_eegmat`: average reference over the 19 EEG channels,
    band-pass 0.5 to 30 Hz, windows of 2.5 s, which are MOABB's trials. Filtered already, they need
    no filter of the paradigm: ``MotorImagery(n_classes=2, fmin=None, fmax=None)``.

    MOABB calibrates on the first trials of a session. Here rest and arithmetic are separate
    recordings, rest always the first, so that it would calibrate on rest alone. A session therefore
    takes turns: both recordings are cut into runs of ten seconds, which are put in the order of the
    part of their recording that has passed. The first fifth of a session is the first fifth of each
    recording. What is left over at the end of a recording is not used.

    Parameters
    ----------
    folder : str or path-like
        Where ``Subject00_1.edf`` and the others are: eegmat 1.0.0 as PhysioNet has it.
    subjects : iterable of int or None, default=None
        Numbers of the participants, as in the names of their files; None is all who have both
        recordings.
    window : float, default=2.5
        Seconds of a trial; ten seconds must hold a whole number of them.
    turns : bool, default=True
        Whether the recordings take turns. False leaves them as they are, each a run of its own, for
        evaluations that draw their trials at random, as within a session.

    See Also
    --------
    crossfade.datasets.read_eegmat : The same windows as tasks.

    References
    ----------
    I. Zyma et al., Electroencephalograms during mental arithmetic task performance. Data 4, 14
    (2019).
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        subjects: Iterable[int] | None = None,
        *,
        window: float = RECIPE.window,
        turns: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.window = check_number("window", window, 0.0)
        self.turns = bool(turns)
        if not 0.0 < self.window <= _SECONDS_OF_A_RUN or (_SECONDS_OF_A_RUN / self.window) % 1.0:
            raise ValueError(
                f"window must divide a run of {_SECONDS_OF_A_RUN:g} s, as 2.5, 5 and 10 s do; got "
                f"{window!r}."
            )
        self._files = _pairs_of_files(self.folder)
        super().__init__(
            subjects=sorted(self._files),
            sessions_per_subject=1,
            events={name: code + 1 for code, name in CLASS_NAMES.items()},
            # MOABB keeps results by code.
            code=f"EegMat{'' if self.turns else '-2runs'}{_of_length(self.window)}",
            # The last sample of a window is not the first of the next.
            interval=[0.0, self.window - 1.0 / RECIPE.sfreq],
            paradigm="imagery",
            doi="10.3390/data4010014",
            selected_subjects=subjects,
        )

    def _get_single_subject_data(self, subject: int) -> dict[str, dict[str, Any]]:
        """Runs of a subject's only session, in turns or as they were recorded."""
        parts: list[tuple[float, int, Any]] = []
        for label, path in sorted(self._files[subject].items()):
            runs = _runs(path, CLASS_NAMES[label], self.window, self.turns)
            parts += [((place + 0.5) / len(runs), label, run) for place, run in enumerate(runs)]
        parts.sort(key=lambda part: part[:2])
        return {
            "0": {
                f"{place}{CLASS_NAMES[label]}": run for place, (_, label, run) in enumerate(parts)
            }
        }

    def data_path(
        self,
        subject: int,
        path: object = None,
        force_update: bool = False,
        update_path: object = None,
        verbose: object = None,
    ) -> list[str]:
        """Files of a subject.

        Parameters
        ----------
        subject : int
            Number of the participant.
        path, force_update, update_path, verbose : object
            Not used: nothing is downloaded.

        Returns
        -------
        list of str
            The recording of rest, and that of arithmetic.
        """
        return [str(file) for _, file in sorted(self._files[subject].items())]


def _of_length(window: float) -> str:
    """What the name of the data set says of trials of another length than usual."""
    return "" if window == RECIPE.window else f"-{window:g}s"


def _pairs_of_files(folder: Path) -> dict[int, dict[int, Path]]:
    """Files of rest (0) and arithmetic (1) of everybody who has both."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    files: dict[int, dict[int, Path]] = {}
    for path in sorted(folder.rglob("*.edf")):
        if match := re.search(EEGMAT_PATTERN, path.name):
            number = int(match["task"].removeprefix("Subject"))
            files.setdefault(number, {})[int(match["label"]) - 1] = path
    pairs = {number: both for number, both in files.items() if len(both) == 2}
    if not pairs:
        raise ValueError(
            f"The folder {folder} holds no pair of files such as Subject00_1.edf and "
            "Subject00_2.edf. It should be the folder of eegmat 1.0.0 as PhysioNet has it."
        )
    return pairs


def _runs(path: Path, name: str, window: float, turns: bool) -> list[Any]:
    """A recording, referenced and filtered as a whole, in runs with an annotation per window."""
    recording = open_recording(path)
    channels = recording.scalp()
    data = recording.read(channels)
    assert RECIPE.band is not None
    data = 1e-6 * band_pass(average_reference(data), recording.sfreq, *RECIPE.band)
    info = mne.create_info(list(channels), recording.sfreq, "eeg")
    whole = round(_SECONDS_OF_A_RUN * recording.sfreq)
    n_runs = data.shape[1] // whole
    if not n_runs:
        raise ValueError(
            f"{path} lasts {data.shape[1] / recording.sfreq:g} s, and a run needs "
            f"{_SECONDS_OF_A_RUN:g} s."
        )
    runs = np.split(data[:, : n_runs * whole], n_runs if turns else 1, axis=1)
    return [_run(samples, info, name, window) for samples in runs]


def _run(samples: Array, info: Any, name: str, window: float) -> Any:
    """Samples (n_channels, n_samples) of one run as MNE has them."""
    run = mne.io.RawArray(samples, info, verbose="error")
    starts = window * np.arange(round(samples.shape[1] / info["sfreq"] / window))
    return run.set_annotations(mne.Annotations(starts, window, [name] * starts.size))
