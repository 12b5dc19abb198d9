"""Priors for few features, sane and hostile; each is made once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from crossfade import (
    FisherDiscriminant,
    Release,
    Task,
    TaskPrior,
)
from tests.fuzz._hostile import pick, seldom


def people(d, n_people=8, n_each=(6, 6), seed=0, spread=0.5, names=None):
    """Tasks of people who are alike, with labels 0, 1, ..."""
    rng = np.random.default_rng([seed, d, n_people, *n_each])
    names = np.arange(len(n_each)) if names is None else np.array(names)
    label = np.repeat(np.arange(len(n_each)), n_each)
    crowd = 1.5 * rng.standard_normal((len(n_each), d))
    tasks = []
    for place in range(n_people):
        means = crowd + spread * rng.standard_normal(crowd.shape)
        X = means[label] + rng.standard_normal((label.size, d))
        tasks.append(Task(X, names[label], f"p{place}"))
    return tasks


def directions(d, n_tasks=12, seed=0):
    """Unit vectors about the first axis."""
    W = 0.4 * np.random.default_rng([seed, d, n_tasks]).standard_normal((n_tasks, d))
    W[:, 0] += 1.0
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def _of(d, **options):
    return TaskPrior.from_projections(directions(d), **options)


def _cancelling(d):
    W = directions(d)
    return TaskPrior.from_projections(np.concatenate([W, -W]))


def _mixed_units(d):
    scale = np.resize([1e-90, 1e90, 1.0, 1e-20, 1e20, 3.0, 0.1], d)
    return _of(d, feature_scale=scale)


PRIORS = {
    "directions": _of,
    "classes": lambda d: _of(d, classes=(0, 1)),
    "words": lambda d: _of(d, classes=("a", "b")),
    "isotropic": lambda d: _of(d, isotropic=True),
    "kept": lambda d: _of(d),
    "one": lambda d: TaskPrior.from_projections(directions(d, 1)),
    "two": lambda d: TaskPrior.from_projections(directions(d, 2)),
    "alike": lambda d: TaskPrior.from_projections(np.repeat(directions(d, 1), 9, 0)),
    "cancelling": _cancelling,
    "cancelling isotropic": lambda d: _cancelling(d).without("outer_sum"),
    "tiny units": lambda d: _of(d, feature_scale=np.full(d, 1e-99)),
    "huge units": lambda d: _of(d, feature_scale=np.full(d, 1e99)),
    "mixed units": _mixed_units,
    "feature names": lambda d: _of(d, feature_names=[f"f{place}" for place in range(d)]),
    "tasks": lambda d: TaskPrior.from_tasks(people(d)),
    "raw tasks": lambda d: TaskPrior.from_tasks(
        people(d, 5), FisherDiscriminant(shrinkage=None), None
    ),
    "short tasks": lambda d: TaskPrior.from_tasks(people(d, 4, (1, 2))),
    "long tasks": lambda d: TaskPrior.from_tasks(people(d, 20, (20, 25))),
    "word tasks": lambda d: TaskPrior.from_tasks(people(d, names=("a", "b"))),
    "isotropic tasks": lambda d: TaskPrior.from_tasks(people(d), isotropic=True),
    "no replay": lambda d: TaskPrior.from_tasks(people(d), rehearse=False),
    "no means": lambda d: TaskPrior.from_tasks(people(d)).without("class_means"),
    "less": lambda d: TaskPrior.from_tasks(people(d)).without("outer_sum", "within_covariance"),
    "summary": lambda d: TaskPrior.from_summary(np.eye(d)[0], 0.01 * np.eye(d), 9, form="authors"),
    "updated": lambda d: _of(d).update(directions(d, seed=1)),
    "sum": lambda d: (
        TaskPrior.from_tasks(people(d), feature_scale=None)
        + TaskPrior.from_tasks(people(d, seed=1), feature_scale=None)
    ),
    # As if its noise had been drawn: that of OpenDP is another one every time.
    "released": lambda d: replace(_of(d), release=Release(1.0, 1e-6, 3.0, True)),
    "released isotropic": lambda d: replace(
        _of(d, isotropic=True), release=Release(1.0, 1e-6, 30.0, True)
    ),
}

MANY = {
    "pairs": lambda d: TaskPrior.from_tasks(people(d, 6, (5, 5, 5))),
    "rests": lambda d: TaskPrior.from_tasks(people(d, 6, (5, 5, 5)), strategy="one-vs-rest"),
    "plain pairs": lambda d: TaskPrior.from_tasks(
        people(d, 4, (3, 4, 3)), isotropic=True, rehearse=False
    ),
    "two classes": lambda d: TaskPrior.from_tasks(people(d, 6, (5, 5))),
    "four": lambda d: TaskPrior.from_tasks(people(d, 6, (4, 4, 4, 4)), rehearse=False),
}
NO_PRIORS = ("prior", 1.0, TaskPrior, object(), {}, np.eye(3))


@cache
def known(name, d):
    """A prior by its name."""
    return (PRIORS | MANY)[name](d)


def prior(rng, d):
    """A prior of two classes, or none; seldom one of other features, or no prior at all."""
    if seldom(rng, 20):
        return pick(rng, NO_PRIORS)
    if seldom(rng, 20):
        d += 1
    if seldom(rng, 20):
        return known(pick(rng, tuple(MANY)), d)
    return None if seldom(rng, 5) else known(pick(rng, tuple(PRIORS)), d)


def many_prior(rng, d):
    """A prior of many classes, or none."""
    if seldom(rng, 20):
        return prior(rng, d)
    return None if seldom(rng, 5) else known(pick(rng, tuple(MANY)), d)
