"""Two kinds of people in one crowd: what a mixture prior brings to both blends."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm, vonmises_fisher

import crossfade as cf

plt.style.use("crossfade.plots.crossfade")

N_FEATURES, N_SOURCES, KAPPA = 10, 100, 50.0
BUDGETS = (4, 10, 20, 40)
N_CROWDS, N_TARGETS = 12, 20
BLENDS = {"posterior": cf.PosteriorBlendClassifier, "convex": cf.ConvexBlendClassifier}
LOOKS = {
    "one prior": ("#0072b2", "s"),
    "mixture": ("#d55e00", "o"),
    "true cluster's prior": ("#7f7f7f", "^"),
}


def draw(rng, n_directions):
    """Directions of two clusters, 90 degrees apart, and which of them each belongs to."""
    cluster = rng.integers(2, size=n_directions)
    W = np.empty((n_directions, N_FEATURES))
    for place in (0, 1):
        here = cluster == place
        law = vonmises_fisher(np.eye(N_FEATURES)[place], KAPPA)
        W[here] = law.rvs(int(here.sum()), random_state=rng).reshape(-1, N_FEATURES)
    return W, cluster


def accuracy(rule, nu):
    weights, shift = rule.coef_[0], rule.intercept_[0]
    return norm.cdf((weights @ nu + np.array([shift, -shift])) / np.linalg.norm(weights)).mean()


def simulate(rng):
    """Mean accuracy by blend and prior at each budget."""
    found = {(blend, name): np.zeros(len(BUDGETS)) for blend in BLENDS for name in LOOKS}
    for _ in range(N_CROWDS):
        W, of = draw(rng, N_SOURCES)
        single, mixture = cf.TaskPrior.from_projections(W), cf.MixturePrior.from_projections(W)
        apart = [cf.TaskPrior.from_projections(W[of == place]) for place in (0, 1)]
        for nu, cluster in zip(*draw(rng, N_TARGETS), strict=True):
            priors = dict(zip(LOOKS, (single, mixture, apart[cluster]), strict=True))
            for place, n in enumerate(BUDGETS):
                y = np.repeat([0, 1], n // 2)
                X = rng.normal(size=(n, N_FEATURES)) + np.where(y, 1, -1)[:, None] * nu
                for (blend, name), total in found.items():
                    total[place] += accuracy(BLENDS[blend](priors[name]).fit(X, y), nu)
    return {key: total / (N_CROWDS * N_TARGETS) for key, total in found.items()}


def mental_math(rng, share=0.1, n_splits=6):
    """Balanced accuracy on each participant, the others being the crowd, and gain by a mixture."""
    tasks = list(cf.load_mental_math())
    found = {blend: np.zeros((len(tasks), 2)) for blend in BLENDS}
    for place, task in enumerate(tasks):
        crowd = tasks[:place] + tasks[place + 1 :]
        priors = cf.TaskPrior.from_tasks(crowd), cf.MixturePrior.from_tasks(crowd)
        X, y = np.asarray(task.X), np.asarray(task.y)
        for _ in range(n_splits):
            labelled = np.zeros(len(y), bool)
            n_each = int(np.ceil(share * min(np.unique(y, return_counts=True)[1])))
            for name in np.unique(y):
                windows = np.flatnonzero(y == name)
                start = rng.integers(windows.size - n_each + 1)
                labelled[windows[start : start + n_each]] = True
            for blend, kind in BLENDS.items():
                for column, prior in enumerate(priors):
                    rule = kind(prior).fit(X[labelled], y[labelled])
                    right = rule.predict(X[~labelled]) == y[~labelled]
                    means = [right[y[~labelled] == name].mean() for name in np.unique(y)]
                    found[blend][place, column] += np.mean(means) / n_splits
    for blend, columns in found.items():
        gain = columns[:, 1] - columns[:, 0]
        print(
            f"Mental Math, {100 * share:g} % labelled, {blend} blend: one prior "
            f"{columns[:, 0].mean():.3f}, mixture {columns[:, 1].mean():.3f}, gain "
            f"{gain.mean():+.4f} (standard error {gain.std() / np.sqrt(len(gain)):.4f})"
        )


def main(path):
    rng = np.random.default_rng(0)
    W, cluster = draw(rng, N_SOURCES)
    mixture = cf.MixturePrior.from_projections(W)
    print(mixture)
    print("concentrations", np.round(mixture.concentrations, 1), f"(truth {KAPPA:g})")
    figure, axes = plt.subplots(1, 3, figsize=(180 / 25.4, 2.5))
    left = axes[0]
    for place, (colour, marker) in enumerate((("#56b4e9", "o"), ("#e69f00", "D"))):
        here = W[cluster == place]
        left.scatter(here[:, 0], here[:, 1], s=12, color=colour, marker=marker, alpha=0.7)
    for one in mixture.components:
        left.annotate("", one.mean[:2], (0, 0), arrowprops={"arrowstyle": "->", "color": "#d55e00"})
    single = mixture.pooled.mean
    left.annotate("", single[:2], (0, 0), arrowprops={"arrowstyle": "->", "color": "#0072b2"})
    left.text(*(single[:2] + 0.02), "one prior", color="#0072b2")
    left.text(0.05, 1.08, "mixture", color="#d55e00")
    left.set(title="100 people, two kinds", xlabel="feature 1", ylabel="feature 2")
    left.set(xlim=(-0.5, 1.2), ylim=(-0.5, 1.2), aspect="equal")
    found = simulate(rng)
    print("labelled samples               ", *(f"{n:5d}" for n in BUDGETS))
    for (blend, name), mean in found.items():
        print(f"{blend:9s} {name:21s}", *(f"{value:.3f}" for value in mean))
        colour, marker = LOOKS[name]
        ax = axes[1 + list(BLENDS).index(blend)]
        ax.plot(BUDGETS, mean, color=colour, marker=marker, label=name)
        ax.set(title=f"{blend} blend", xlabel="labelled samples", ylim=(0.68, 0.84))
        ax.set(xscale="log", xticks=BUDGETS, xticklabels=BUDGETS)
        ax.minorticks_off()
    axes[1].set_ylabel("accuracy on new samples")
    axes[2].legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    mental_math(rng)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/mixture.png"))
