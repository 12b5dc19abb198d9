"""Cases of recordings: EDF, BDF, MAT and XDF files with random damage."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import edfio
import numpy as np
from scipy.io import savemat

from crossfade.signals.recordings import open_recording
from tests.fuzz._files import damaged
from tests.fuzz._hostile import pick
from tests.test_recordings import write_xdf

NAMES = ("Fz", "Cz")


@cache
def recordings():
    """A small recording of every kind, by the end of its name."""
    data = 20.0 * np.random.default_rng(0).standard_normal((2, 300))
    signals = [
        edfio.EdfSignal(row, 100.0, label=name, physical_dimension="uV")
        for row, name in zip(data, NAMES, strict=True)
    ]
    bdf = [
        edfio.BdfSignal(row, 100.0, label=name, physical_dimension="uV")
        for row, name in zip(data, NAMES, strict=True)
    ]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        edfio.Edf(signals, annotations=[edfio.EdfAnnotation(1.0, None, "rest")]).write(
            folder / "r.edf"
        )
        edfio.Bdf(bdf).write(folder / "r.bdf")
        savemat(folder / "r.mat", {"data": data, "fs": 100.0, "ch_names": np.array(NAMES, object)})
        write_xdf(folder / "r.xdf", data, 100.0, list(NAMES), [(0.5, "rest"), (1.5, "math")])
        for path in folder.iterdir():
            found[path.suffix] = path.read_bytes()
    return found


def case_recording(trial):
    """A damaged recording is refused in words, or its samples are numbers of the right shape."""
    suffix = pick(trial.rng, list(recordings()))
    path = trial.folder / f"r{suffix}"
    for _ in range(4):
        path.write_bytes(damaged(trial.rng, recordings()[suffix]))
        recording = trial.call(open_recording, path)
        if recording is None:
            continue
        names = list(recording.ch_names[:2])
        data = trial.call(recording.read, names)
        if data is not None:
            trial.check(data.ndim == 2 and len(data) == len(names), "another shape")


CASES = {"recording": (case_recording, 4)}
