"""What class means bring to a released prior: simulated people, and Mental Math.

Run as ``python examples/privacy_means.py``. The noise of a release has no seed, so that the last
digit differs from run to run.
"""

import warnings
from dataclasses import replace

import numpy as np

from crossfade import (
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    load_mental_math,
)
from crossfade.exceptions import UncountedReleaseWarning

# Nobody else gets these.
warnings.simplefilter("ignore", UncountedReleaseWarning)

DELTA, EPSILONS, LABELS = 1e-5, (1.0, 4.0, 10.0), (0, 2, 4)
N_FEATURES, N_WINDOWS, N_SPLITS = 9, 40, 4


def rules(sources: list[Task], scale: np.ndarray, clip: float) -> dict[str, tuple]:
    """Blend and prior of each line of the tables."""
    exact = TaskPrior.from_tasks(sources, feature_scale=scale, replay=False)
    bounded = TaskPrior.from_tasks(sources, feature_scale=scale, replay=False, clip=clip)
    directions = bounded.without("class_means")
    found = {"person alone": (PosteriorBlendClassifier, None)}
    for epsilon in EPSILONS:
        for name, kind, prior in (
            ("directions", PosteriorBlendClassifier, directions),
            ("and class means", HierarchicalBlendClassifier, bounded),
        ):
            found[f"{epsilon:g}, {name}"] = kind, prior.released(epsilon, DELTA)
    found["exact, directions"] = PosteriorBlendClassifier, exact.without("class_means")
    return found | {"exact, and class means": (HierarchicalBlendClassifier, exact)}


def accuracies(person: Task, found: dict[str, tuple], rng: np.random.Generator) -> list[list]:
    """Balanced accuracy of each rule (row) with each number of labels (column), on what is left."""
    X, y = np.asarray(person.X), np.asarray(person.y)
    table = np.full((len(found), len(LABELS)), np.nan)
    for column, n in enumerate(LABELS):
        few = np.concatenate([rng.permutation(np.flatnonzero(y == name))[:n] for name in (0, 1)])
        test = np.delete(np.arange(y.size), few)
        for row, (kind, prior) in enumerate(found.values()):
            rule = kind(prior, in_a_row=False)
            if n:
                rule.fit(X[few], y[few])
            elif prior is not None and prior.class_means is not None:
                rule.start()
            else:
                continue
            right = rule.predict(X[test]) == y[test]
            table[row, column] = np.mean([right[y[test] == name].mean() for name in (0, 1)])
    return table.tolist()


def show(title: str, names: list[str], tables: list) -> None:
    """Print means over people."""
    people = np.array(tables)
    print(f"\n{title}\nlabelled windows of each class" + "".join(f"{n:>8d}" for n in LABELS))
    for row, name in enumerate(names):
        cells = ("       -" if np.isnan(one) else f"{one:8.3f}" for one in people[:, row].mean(0))
        print(f"{name:30s}" + "".join(cells))


def draw(n_people: int, rng: np.random.Generator) -> list[Task]:
    """People whose centres scatter by 1, and half gaps by 0.3 about 0.4, in every feature."""
    people = []
    label = np.repeat([0, 1], N_WINDOWS)
    root = np.linalg.cholesky(0.5 * np.eye(N_FEATURES) + 0.5)
    for _ in range(n_people):
        centre, half = rng.normal(0.0, 1.0, N_FEATURES), rng.normal(0.4, 0.3, N_FEATURES)
        X = rng.normal(size=(label.size, N_FEATURES)) @ root.T
        people.append(Task(X + centre + np.outer(2 * label - 1, half), label))
    return people


def simulated(n_people: int, n_crowds: int = 10, n_new: int = 12) -> None:
    """Crowds of so many people, and people whom they have not met."""
    rng, tables = np.random.default_rng(0), []
    for _ in range(n_crowds):
        found = rules(draw(n_people, rng), np.ones(N_FEATURES), clip=6.0)
        tables += [accuracies(person, found, rng) for person in draw(n_new, rng)]
    show(f"{n_people} simulated people, 9 features, clip = 6", list(found), tables)


def mental_math() -> None:
    """Everybody in turn is new to the other 35; shares of power less 1/3, in units of 0.1."""
    tasks = [replace(task, X=np.asarray(task.X) - 1.0 / 3.0) for task in load_mental_math()]
    rng, tables = np.random.default_rng(0), []
    for place, person in enumerate(tasks):
        others = tasks[:place] + tasks[place + 1 :]
        parts = []
        for _ in range(N_SPLITS):
            found = rules(others, np.full(N_FEATURES, 0.1), clip=6.0)
            parts.append(accuracies(person, found, rng))
        tables.append(np.mean(parts, axis=0))
    show("Mental Math, 35 people, 9 features, clip = 6", list(found), tables)


def mean_direction(n_releases: int = 200) -> None:
    """How often noise hides the direction of all 36 people, and how near it is otherwise."""
    exact = TaskPrior.from_tasks(
        load_mental_math(), feature_scale=np.full(N_FEATURES, 0.1), replay=False
    )
    print(f"\nMental Math, mean direction of 36 people, R = {exact.resultant_length:.2f}")
    for epsilon in (1.0, 5.0, 10.0):
        public = [exact.released(epsilon, DELTA) for _ in range(n_releases)]
        seen = [exact.mean_direction @ one.mean_direction for one in public if not one.cancels]
        print(
            f"epsilon = {epsilon:g}: {1 - len(seen) / n_releases:.0%} hidden, cosine of the others "
            f"{np.mean(seen):.2f}"
        )


print(f"Balanced accuracy with a prior released at epsilon = ..., delta = {DELTA:g}")
for n_people in (36, 100, 1000):
    simulated(n_people)
mental_math()
mean_direction()
