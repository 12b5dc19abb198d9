"""A small crowd for live sessions: two channels at 100 Hz, windows of 1 s, more alpha at rest."""

import numpy as np

from crossfade import Task, TaskPrior, TaskSet
from crossfade.signals import OnlineFeatures
from crossfade.tasks import Recipe

RATE = 100.0
CHANNELS = ("Fz", "Pz")
RECIPE = Recipe(
    "log-powers",
    RATE,
    CHANNELS,
    1.0,
    bands=(("theta", 4.0, 8.0), ("alpha", 8.0, 12.0), ("beta", 12.0, 20.0)),
)
NAMES = {0: "rest", 1: "work"}


def signal_of(label, seconds, seed=0):
    """Samples of shape (2, n) of one class, in microvolts."""
    rng = np.random.default_rng([seed, list(NAMES.values()).index(label)])
    n = round(seconds * RATE)
    time = np.arange(n) / RATE
    size = {"rest": 12.0, "work": 6.0}[label]
    wave = size * np.sin(2.0 * np.pi * 10.0 * time + rng.uniform(0.0, 6.0))
    return 8.0 * rng.standard_normal((2, n)) + np.array([[0.5], [1.0]]) * wave


def prior_of(n_people=8, **options):
    """What people know whose signals are alike."""
    return TaskPrior.from_tasks(tasks_of(n_people), **options)


def tasks_of(n_people):
    """Windows of both classes of so many people."""
    tasks = []
    for person in range(n_people):
        X, y = [], []
        for value, label in NAMES.items():
            windows = OnlineFeatures(RECIPE).push(signal_of(label, 20.0, seed=100 + person))
            X += [window.features for window in windows]
            y += [value] * len(windows)
        names = [f"{name}_{band}" for name in CHANNELS for band, *_ in RECIPE.bands]
        tasks.append(Task(X, y, name=f"p{person}", feature_names=names, recipe=RECIPE))
    return TaskSet(tasks, class_names=NAMES)
