"""Fits, import and the growth of cost with the number of features."""

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
    sizes = (9, 24, 190)
    for place, n_features in enumerate(sizes):
        X, y = _samples(40, n_features, rng)
        ours = cf.PosteriorBlendClassifier(_crowd(50, n_features, rng))
        theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        fast, slow = medians(
            [lambda ours=ours, X=X, y=y: ours.fit(X, y), lambda it=theirs, X=X, y=y: it.fit(X, y)],
            200,
            lambda done, place=place: progress((place + done) / len(sizes)),
        )
        yield at_most(
            f"PosteriorBlendClassifier.fit over scikit-learn's shrinkage LDA, n = 40, "
            f"d = {n_features}",
            fast / slow,
            0.5,
            " of its time",
            f" ({1e3 * fast:.2f} of {1e3 * slow:.2f} ms)",
        )


def _import_seconds(module):
    code = (
        "import time; start = time.perf_counter(); "
        f"import {module}; print(time.perf_counter() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def run_import(progress: Progress) -> Iterator[Row]:
    """`import crossfade` against `import sklearn.discriminant_analysis`, in fresh interpreters."""
    rivals = ("crossfade", "sklearn.discriminant_analysis")
    seconds = {module: [] for module in rivals}
    rounds = 11
    for turn in range(rounds):
        for module in rivals if turn % 2 else rivals[::-1]:
            seconds[module].append(_import_seconds(module))
        progress((turn + 1) / rounds)
    # The first round fills the cache of the file system.
    ours, theirs = (float(np.median(seconds[module][1:])) for module in rivals)
    yield at_most(
        "import crossfade over import sklearn.discriminant_analysis",
        ours / theirs,
        1.3,
        " times",
        f" ({ours:.2f} s and {theirs:.2f} s)",
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
