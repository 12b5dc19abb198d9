"""What the tests draw their tasks, targets, priors and recordings from."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from crossfade import Task, TaskPrior, load_mental_math

settings.register_profile(
    "crossfade", derandomize=True, deadline=None, database=None, max_examples=20
)
settings.load_profile("crossfade")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Matrices here are small: threads that wait for each other would take most of the time."""
    with threadpool_limits(1):
        yield


def draw_target(n_features=4, n_each=(8, 8), seed=0, gap=1.0):
    """Samples of two normal classes with labels 0 and 1, in features of unlike size."""
    rng = np.random.default_rng([seed, n_features, *n_each])
    y = np.repeat([0, 1], n_each)
    X = rng.standard_normal((y.size, n_features)) @ (
        np.eye(n_features) + 0.3 * rng.standard_normal((n_features, n_features))
    )
    X[:, 0] += 2.0 * gap * y
    return X * np.linspace(0.5, 3.0, n_features) + 10.0, y


def draw_directions(n_tasks=30, n_features=4, seed=0, spread=0.4):
    """Unit vectors around the first axis."""
    rng = np.random.default_rng([seed, n_tasks, n_features])
    W = spread * rng.standard_normal((n_tasks, n_features)) / np.sqrt(n_features / 4)
    W[:, 0] += 1.0
    return W / np.linalg.norm(W, axis=1, keepdims=True)


@pytest.fixture
def make_target():
    return draw_target


@pytest.fixture
def make_directions():
    return draw_directions


@pytest.fixture
def make_prior():
    def make(n_tasks=30, n_features=4, seed=0, **options):
        return TaskPrior.from_projections(draw_directions(n_tasks, n_features, seed), **options)

    return make


@pytest.fixture(scope="session")
def people():
    """The 36 people of Mental Math."""
    return load_mental_math()


@pytest.fixture(scope="session")
def crowd_of_people(people):
    """A prior of all of them but the first."""
    return TaskPrior.from_tasks(people[1:])


@pytest.fixture(scope="session")
def make_tasks():
    def make(n_tasks=6, n_features=4, n_each=(10, 10), labels=(0, 1), feature_names=None):
        tasks = []
        for seed in range(n_tasks):
            X, y = draw_target(n_features, n_each, seed=100 + seed)
            tasks.append(Task(X, np.array(labels)[y], f"p{seed}", feature_names=feature_names))
        return tasks

    return make


@pytest.fixture
def make_many():
    """Tasks of three classes or more, their means near those of the crowd."""

    def make(n_tasks=6, n_features=4, n_each=(8, 10, 9), first=0, gap=2.0, names=None):
        crowd = gap * np.random.default_rng(0).standard_normal((len(n_each), n_features))
        names = np.array(names or [f"class {place}" for place in range(len(n_each))])
        label = np.repeat(np.arange(len(n_each)), n_each)
        tasks = []
        for seed in range(first, first + n_tasks):
            rng = np.random.default_rng([7, seed])
            means = crowd + 0.7 * rng.standard_normal(crowd.shape)
            X = means[label] + rng.standard_normal((label.size, n_features))
            tasks.append(Task(X, names[label], f"p{seed}"))
        return tasks

    return make


@pytest.fixture(scope="session")
def make_run():
    """Normal samples along the last axis but one, each like the one before it."""

    def make(rng, shape, correlation):
        rows = rng.standard_normal(shape)
        for place in range(1, shape[-2]):
            rows[..., place, :] *= np.sqrt(1.0 - correlation**2)
            rows[..., place, :] += correlation * rows[..., place - 1, :]
        return rows

    return make


@pytest.fixture(scope="session")
def recordings():
    """Folder of real recordings; where it is missing, tests that need it skip."""
    beside = Path(__file__).parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("CROSSFADE_DATA", beside))
    if not (folder / "eegmat").is_dir():
        pytest.skip(f"There are no recordings in {folder}; CROSSFADE_DATA may name another folder.")
    return folder


def draw_eeg(n_channels=5, seconds=20.0, sfreq=100.0, alpha=1.0, seed=0):
    """Noise with a rhythm of 10 Hz of the given size in all channels but the last."""
    rng = np.random.default_rng([seed, n_channels])
    time = np.arange(round(seconds * sfreq)) / sfreq
    data = rng.standard_normal((n_channels, time.size))
    data[:-1] += alpha * np.sin(
        2.0 * np.pi * 10.0 * time + rng.uniform(0.0, 6.0, (n_channels - 1, 1))
    )
    return 10.0 * data


@pytest.fixture
def make_eeg():
    return draw_eeg


@pytest.fixture
def write_edf():
    """Write channels in microvolts to an EDF file."""
    edfio = pytest.importorskip("edfio")

    def write(path, data, names, sfreq=100.0, annotations=()):
        signals = [
            edfio.EdfSignal(row, sfreq, label=name, physical_dimension="uV")
            for row, name in zip(data, names, strict=True)
        ]
        notes = [edfio.EdfAnnotation(*one) for one in annotations]
        edfio.Edf(signals, annotations=notes).write(path)
        return path

    return write
