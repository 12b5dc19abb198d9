"""Which blend for which people? Simulated crowds and newcomers, and what each rule makes of them.

Run as ``python examples/which_blend.py``; it prints the table of docs/which-blend.md. 100 people of
10 features give the prior, 60 windows of each class each; newcomers bring 2, 4, 8 or 32 windows of
each class. A person has a direction, along which the class means lie 1 standard deviation from
their middle, and a middle of their own. Accuracies are exact, not counted on test windows.
"""

import warnings

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm, vonmises_fisher
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import crossfade as cf

N_FEATURES, N_SOURCES, N_WINDOWS = 10, 100, 60
BUDGETS = (2, 4, 8, 32)
N_CROWDS, N_NEWCOMERS = 10, 30
#: Spread of the middles over people, in standard deviations within a class.
SPREAD = 0.5
FIRST, SECOND = np.eye(N_FEATURES)[:2]
#: Mean directions of the people, their concentration, the newcomers' mean, likeness of neighbours.
WORLDS = {
    "people are alike": ([FIRST], 50.0, FIRST, 0.0),
    "people differ": ([FIRST], 10.0, FIRST, 0.0),
    "people have nothing in common": ([FIRST], 0.1, FIRST, 0.0),
    "two kinds of people": ([FIRST, SECOND], 50.0, None, 0.0),
    "the newcomer is unlike a tight crowd": ([FIRST], 200.0, SECOND, 0.0),
    "neighbouring windows are alike (0.8)": ([FIRST], 10.0, FIRST, 0.8),
}


def directions(rng, means, concentration, n):
    """Unit vectors about means, each of which has the same share of people."""
    kind = rng.integers(len(means), size=n)
    drawn = [vonmises_fisher(mean, concentration).rvs(n, random_state=rng) for mean in means]
    return np.array(drawn).reshape(len(means), n, N_FEATURES)[kind, np.arange(n)]


def windows(rng, direction, middle, n_each, likeness):
    """Windows of both classes, each class a run of its own."""
    noise = rng.normal(size=(2, n_each, N_FEATURES))
    if likeness:
        noise[:, 1:] *= np.sqrt(1 - likeness**2)
        noise = lfilter([1.0], [1.0, -likeness], noise, axis=1)
    X = noise + middle + np.array([-1.0, 1.0])[:, None, None] * direction
    return X.reshape(-1, N_FEATURES), np.repeat([0, 1], n_each)


def rules(prior):
    """What is compared, by name."""
    return {
        "person alone: LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "paper": cf.ConvexBlendClassifier.paper(prior, random_state=0),
        "convex": cf.ConvexBlendClassifier(prior),
        "posterior": cf.PosteriorBlendClassifier(prior),
        "hierarchical": cf.HierarchicalBlendClassifier(prior),
    }


def accuracy(rule, direction, middle):
    """Exact balanced accuracy of a linear rule."""
    weights, shift = rule.coef_[0], rule.intercept_[0]
    score = weights @ (middle + np.array([-1.0, 1.0])[:, None] * direction).T + shift
    return norm.cdf(score / np.linalg.norm(weights) * np.array([-1.0, 1.0])).mean()


def simulate(rng, means, concentration, apart, likeness):
    """Mean accuracy by rule at each budget, and its standard error over crowds."""
    found = {}
    for crowd in range(N_CROWDS):
        tasks = []
        for direction in directions(rng, means, concentration, N_SOURCES):
            middle = SPREAD * rng.normal(size=N_FEATURES)
            tasks.append(cf.Task(*windows(rng, direction, middle, N_WINDOWS, likeness)))
        prior = cf.TaskPrior.from_tasks(tasks, rehearse=False)
        own = means if apart is None else [apart]
        for direction in directions(rng, own, concentration, N_NEWCOMERS):
            middle = SPREAD * rng.normal(size=N_FEATURES)
            for place, n_each in enumerate(BUDGETS):
                X, y = windows(rng, direction, middle, n_each, likeness)
                for name, rule in rules(prior).items():
                    cells = found.setdefault(name, np.zeros((N_CROWDS, len(BUDGETS))))
                    cells[crowd, place] += accuracy(rule.fit(X, y), direction, middle) / N_NEWCOMERS
    return found


def main():
    """Print a table for each world."""
    # People who have nothing in common are one of them.
    warnings.simplefilter("ignore", cf.exceptions.CancellingSourcesWarning)
    for name, world in WORLDS.items():
        found = simulate(np.random.default_rng(0), *world)
        print(f"\n{name:38s}", *(f"{n:13d}" for n in BUDGETS))
        for rule, cells in found.items():
            means, errors = cells.mean(0), cells.std(0, ddof=1) / np.sqrt(N_CROWDS)
            cell = (f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True))
            print(f"  {rule:36s}", *cell, flush=True)


if __name__ == "__main__":
    main()
