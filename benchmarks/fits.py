"""Fits, predictions, commands, and the growth of cost with the number of features."""

import copy
import resource
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import crossfade as cf
from benchmarks.measure import Progress, Row, at_most, medians


def _crowd(n_tasks, n_features, rng, *, isotropic=False):
    """Prior of directions that agree on the first feature to some degree."""
    directions = rng.standard_normal((n_tasks, n_features))
    directions[:, 0] += np.sqrt(n_features)
    return cf.TaskPrior.from_projections(directions, normalize=True, isotropic=isotropic)


def _samples(n_samples, n_features, rng):
    y = np.arange(n_samples) % 2
    X = rng.standard_normal((n_samples, n_features))
    X[:, 0] += 2.0 * y - 1.0
    return X, y


def run_fits(progress: Progress) -> Iterator[Row]:
    """`PosteriorBlendClassifier.fit` against scikit-learn's shrinkage LDA."""
    rng = np.random.default_rng(0)
    targets = {9: 0.2, 24: 0.2, 190: 0.15}
    for place, (n_features, target) in enumerate(targets.items()):
        X, y = _samples(40, n_features, rng)
        ours = cf.PosteriorBlendClassifier(_crowd(50, n_features, rng))
        theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        fast, slow = medians(
            [lambda ours=ours, X=X, y=y: ours.fit(X, y), lambda it=theirs, X=X, y=y: it.fit(X, y)],
            40,
            lambda done, place=place: progress((place + done) / len(targets)),
            calls=[10, 5],
        )
        yield at_most(
            f"PosteriorBlendClassifier.fit over scikit-learn's LDA (lsqr, auto), n = 40, "
            f"d = {n_features}",
            fast / slow,
            target,
            " of its time",
            f" ({1e3 * fast:.2f} of {1e3 * slow:.2f} ms)",
        )


def run_predict(progress: Progress) -> Iterator[Row]:
    """`predict` of one window against numpy and against scikit-learn's LDA."""
    rng = np.random.default_rng(0)
    X, y = _samples(40, 9, rng)
    ours = cf.PosteriorBlendClassifier(_crowd(50, 9, rng)).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, y)
    window, coef, intercept = X[:1].copy(), ours.coef_[0], ours.intercept_[0]
    mine, bare, slow = medians(
        [
            lambda: ours.predict(window),
            lambda: window @ coef + intercept > 0.0,
            lambda: theirs.predict(window),
        ],
        30,
        progress,
        calls=[500, 500, 100],
    )
    note = f" ({1e6 * mine:.1f} µs)"
    yield at_most(
        "predict of one window over a numpy dot and threshold", mine / bare, 8.0, "", note
    )
    yield at_most("predict of one window over scikit-learn's LDA", mine / slow, 0.06)


def run_partial_fit(progress: Progress) -> Iterator[Row]:
    """`partial_fit` of one window after many, against after few."""
    rng = np.random.default_rng(0)
    prior = _crowd(50, 9, rng)
    X, y = _samples(16_001, 9, rng)
    calls = []
    for seen in (40, 16_000):
        fitted = cf.PosteriorBlendClassifier(prior).fit(X[:seen], y[:seen])
        calls.append(lambda it=fitted: copy.copy(it).partial_fit(X[-1:], y[-1:]))
    few, many = medians(calls, 40, progress, calls=[10, 10])
    yield at_most(
        "partial_fit of one window after 16,000 over after 40",
        many / few,
        1.2,
        " times",
        f" ({1e3 * many:.2f} ms)",
    )


def run_many_classes(progress: Progress) -> Iterator[Row]:
    """`HierarchicalBlendClassifier.fit` against scikit-learn's LDA, ten classes."""
    rng = np.random.default_rng(0)
    n_classes, n_features, n_each = 10, 24, 10
    label = np.repeat(np.arange(n_classes), n_each)
    crowd = 2.0 * rng.standard_normal((n_classes, n_features))
    tasks = []
    for _ in range(21):
        means = crowd + 0.7 * rng.standard_normal(crowd.shape)
        tasks.append(cf.Task(means[label] + rng.standard_normal((label.size, n_features)), label))
    X, y = np.asarray(tasks[0].X), np.asarray(tasks[0].y)
    ours = cf.HierarchicalBlendClassifier(cf.TaskPrior.from_tasks(tasks[1:]))
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    fast, slow = medians([lambda: ours.fit(X, y), lambda: theirs.fit(X, y)], 30, progress)
    yield at_most(
        "HierarchicalBlendClassifier.fit over scikit-learn's LDA, K = 10, d = 24",
        fast / slow,
        2.0,
        " times",
        f" ({1e3 * fast:.2f} and {1e3 * slow:.2f} ms)",
    )


def _cpu_seconds(command):
    """CPU seconds of a command in a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_commands(progress: Progress) -> Iterator[Row]:
    """`crossfade --help` and `--version` against the import of what they are made with."""
    script = "import sys; from crossfade.cli import main; sys.argv[0] = 'crossfade'; main()"
    rivals = {
        "bare": [sys.executable, "-c", "import click, rich"],
        "--help": [sys.executable, "-c", script, "--help"],
        "--version": [sys.executable, "-c", script, "--version"],
    }
    seconds = {name: [] for name in rivals}
    rounds = 11
    for turn in range(rounds):
        for name, command in rivals.items():
            seconds[name].append(_cpu_seconds(command))
        progress((turn + 1) / rounds)
    # The first round fills the cache of the file system.
    found = {name: float(np.median(each[1:])) for name, each in seconds.items()}
    for name in ("--help", "--version"):
        yield at_most(
            f"crossfade {name} over python -c 'import click, rich'",
            found[name] / found["bare"],
            3.0,
            " times",
            f" ({found[name]:.2f} s)",
        )


def run_growth(progress: Progress) -> Iterator[Row]:
    """Exponent with which the time of a fit grows from d = 100 to d = 10,000."""
    rng = np.random.default_rng(0)
    sizes = (100, 1_000, 10_000)
    data = [_samples(20, n_features, rng) for n_features in sizes]
    priors = [_crowd(30, n_features, rng, isotropic=True) for n_features in sizes]
    families = {
        "FisherDiscriminant": [cf.FisherDiscriminant() for _ in sizes],
        "ConvexBlendClassifier, isotropic prior": [cf.ConvexBlendClassifier(p) for p in priors],
    }
    for place, (name, estimators) in enumerate(families.items()):
        fits = [
            lambda rule=rule, X=X, y=y: rule.fit(X, y)
            for rule, (X, y) in zip(estimators, data, strict=True)
        ]
        low, middle, high = medians(
            fits, 40, lambda done, place=place: progress((place + done) / len(families))
        )
        exponent = np.log(high / low) / np.log(sizes[-1] / sizes[0])
        last = np.log10(high / middle)
        times = ", ".join(f"{1e3 * seconds:.1f}" for seconds in (low, middle, high))
        yield Row(
            f"growth of the fit of {name}, n = 20, d = 100 to 10,000",
            f"d^{exponent:.2f}; d^{last:.2f} in the last decade ({times} ms)",
            "at most d^1.2",
            bool(exponent <= 1.2),
            float(exponent),
        )
