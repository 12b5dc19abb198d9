"""Make what crossfade.datasets._live_demo reads from the EDF files of eegmat 1.0.0.

Usage: python scripts/make_live_demo.py FOLDER
"""

import io
import sys
from pathlib import Path

import numpy as np

from crossfade import TaskPrior, TaskSet
from crossfade._files import write_whole
from crossfade.datasets import read_eegmat
from crossfade.datasets._live_demo import PERSON, PRIOR, RECORDING, STEP
from crossfade.signals._causal import CausalCleaner
from crossfade.signals.recordings import open_recording

#: Seconds of rest and of arithmetic: whole windows, before the recordings end in silence.
SECONDS = {0: 180.0, 1: 60.0}


def prior_of_others(folder):
    """Prior of the log powers of all others, made with the past alone."""
    tasks = read_eegmat(folder, features="log-powers", causal=True, n_jobs=2)
    others = TaskSet([task for task in tasks if task.name != PERSON], tasks.class_names)
    return TaskPrior.from_tasks(others).annotated(
        made_by="scripts/make_live_demo.py, from eegmat 1.0.0 (PhysioNet), ODC-By 1.0",
        units="natural logarithms of microvolts squared",
    )


def packed(samples):
    """Samples in microvolts as second differences of steps, modulo 16 bits."""
    steps = np.round(samples / STEP).astype(np.int64)
    return np.diff(steps, n=2, axis=1, prepend=np.zeros((len(steps), 2), int)).astype(np.int16)


def samples_of(folder, recipe, label):
    """Samples of one state, referenced and filtered, of the channels of the recipe."""
    recording = open_recording(Path(folder) / f"{PERSON}_{label + 1}.edf")
    clean = CausalCleaner(len(recipe.averaged), recording.sfreq, recipe.band, average=True)
    data = clean(recording.read(recipe.averaged))
    return data[: len(recipe.channels), : round(SECONDS[label] * recording.sfreq)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    prior = prior_of_others(sys.argv[1])
    prior.save(PRIOR)
    content = io.BytesIO()
    segments = {label: samples_of(sys.argv[1], prior.recipe, label) for label in SECONDS}
    np.savez_compressed(content, **{f"label_{one}": packed(data) for one, data in segments.items()})
    write_whole(RECORDING, content.getvalue())
    for path in (PRIOR, RECORDING):
        print(f"Written: {path}, {path.stat().st_size} bytes")
