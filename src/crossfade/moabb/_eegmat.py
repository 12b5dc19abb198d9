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
from crossfade.datasets import load_mental_math
from crossfade.signals import clean
from crossfade.signals.recordings import open_recording
from crossfade.tasks import Recipe

#: Seconds of a run, a whole number of windows.
_RUN = 10.0


class EegMat(BaseDataset):
    """Rest and mental arithmetic of 36 people, from a local folder.

    The steps are those of :func:`crossfade.datasets.read_eegmat`: average reference over the 19 EEG
    channels, band-pass 0.5 to 30 Hz, and windows of 2.5 s, which are MOABB's trials. The paradigm
    must not filter them again: ``MotorImagery(n_classes=2, fmin=None, fmax=None)``.

    MOABB calibrates on the first trials of a session. Rest and arithmetic are separate recordings
    here, and the first one is always rest. A session therefore alternates: both recordings are cut
    into runs of ten seconds, which are sorted by their relative time, so that the first fifth of a
    session is the first fifth of each recording. A remainder at the end of a recording is not used.

    Parameters
    ----------
    folder : str or path-like
        Where ``Subject00_1.edf`` and the others are: eegmat 1.0.0 as PhysioNet has it.
    subjects : iterable of int or None, default=None
        Numbers of the participants, as in the names of their files; None is all who have both
        recordings.

    See Also
    --------
    crossfade.datasets.read_eegmat : The same windows as tasks.

    References
    ----------
    I. Zyma et al., Electroencephalograms during mental arithmetic task performance. Data 4, 14
    (2019).
    """

    def __init__(
        self, folder: str | os.PathLike[str], subjects: Iterable[int] | None = None
    ) -> None:
        self._files = _pairs_of_files(Path(folder))
        tasks = load_mental_math()
        assert tasks.recipe is not None
        self._names, self._recipe = tasks.class_names, tasks.recipe
        super().__init__(
            subjects=sorted(self._files),
            sessions_per_subject=1,
            events={name: code + 1 for code, name in self._names.items()},
            code="EegMat",
            # The last sample of a window is not the first of the next.
            interval=[0.0, self._recipe.window - 1.0 / self._recipe.sfreq],
            paradigm="imagery",
            doi="10.3390/data4010014",
            selected_subjects=subjects,
        )

    def _get_single_subject_data(self, subject: int) -> dict[str, dict[str, Any]]:
        """Runs of a subject's only session, sorted by their relative time."""
        parts: list[tuple[float, int, Any]] = []
        for label, path in sorted(self._files[subject].items()):
            runs = _runs(path, self._names[label], self._recipe)
            parts += [((place + 0.5) / len(runs), label, run) for place, run in enumerate(runs)]
        parts.sort(key=lambda part: part[:2])
        return {
            "0": {
                f"{place}{self._names[label]}": run for place, (_, label, run) in enumerate(parts)
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


def _pairs_of_files(folder: Path) -> dict[int, dict[int, Path]]:
    """Files of rest (0) and arithmetic (1) of everybody who has both."""
    files: dict[int, dict[int, Path]] = {}
    for path in sorted(folder.rglob("*.edf")):
        if match := re.search(r"Subject(\d+)_([12])\.edf$", path.name):
            files.setdefault(int(match[1]), {})[int(match[2]) - 1] = path
    pairs = {number: both for number, both in files.items() if len(both) == 2}
    if not pairs:
        raise ValueError(
            f"{folder} has no pair of files such as Subject00_1.edf and Subject00_2.edf. Get "
            "eegmat 1.0.0."
        )
    return pairs


def _runs(path: Path, name: str, recipe: Recipe) -> list[Any]:
    """Runs of a recording, referenced and filtered as a whole; each window is an annotation."""
    recording = open_recording(path)
    channels = recording.scalp()
    data = 1e-6 * clean(recording.read(channels), recipe)
    info = mne.create_info(list(channels), recording.sfreq, "eeg")
    n_samples = round(_RUN * recording.sfreq)
    starts = np.arange(0.0, _RUN, recipe.window)
    notes = mne.Annotations(starts, recipe.window, [name] * starts.size)

    def run(samples: Array) -> Any:
        return mne.io.RawArray(samples, info, verbose="error").set_annotations(notes)

    ends = range(n_samples, data.shape[1] + 1, n_samples)
    return [run(data[:, end - n_samples : end]) for end in ends]
