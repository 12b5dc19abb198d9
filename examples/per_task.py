"""One weight for each source: what it brings where sources form clusters, and where they do not."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm, vonmises_fisher

from crossfade import ConvexBlendClassifier, PosteriorBlendClassifier, TaskPrior

plt.style.use("crossfade.plots.crossfade")

N_FEATURES, N_SOURCES, KAPPA = 10, 100, 50.0
BUDGETS = (4, 10, 20, 40)
N_CROWDS, N_TARGETS = 6, 16
WORLDS = {
    "six clusters, 90 degrees apart": np.eye(N_FEATURES)[:6],
    "one cluster": np.eye(N_FEATURES)[:1],
}
LOOKS = {
    "target alone": ("#666666", "v"),
    "average": ("#0072b2", "s"),
    "posterior": ("#009e73", "D"),
    "per-task": ("#d55e00", "o"),
}


def draw(rng, centres, count):
    """Directions around centres that are equally likely, and which of them each belongs to."""
    which = np.sort(rng.integers(len(centres), size=count))
    drawn = [vonmises_fisher(centres[k], KAPPA).rvs(random_state=rng) for k in which]
    return np.reshape(drawn, (count, N_FEATURES)), which


def samples(rng, nu, n):
    label = np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, nu.size)) + np.where(label, 1, -1)[:, None] * nu, label


def accuracy(rule, nu):
    weights, shift = rule.coef_[0], rule.intercept_[0]
    return norm.cdf((weights @ nu + np.array([shift, -shift])) / np.linalg.norm(weights)).mean()


def study(rng, centres):
    """Mean accuracy of each method at each budget, and the forecast of per-task weights."""
    found = {name: np.zeros(len(BUDGETS)) for name in (*LOOKS, "forecast")}
    for _ in range(N_CROWDS):
        prior = TaskPrior.from_projections(draw(rng, centres, N_SOURCES)[0], keep_directions=True)
        rules = {
            "target alone": ConvexBlendClassifier(prior, alpha=1.0),
            "average": ConvexBlendClassifier(prior),
            "posterior": PosteriorBlendClassifier(prior),
            "per-task": ConvexBlendClassifier(prior, weights="per-task"),
        }
        for nu in draw(rng, centres, N_TARGETS)[0]:
            for place, n in enumerate(BUDGETS):
                X, y = samples(rng, nu, n)
                for name, rule in rules.items():
                    found[name][place] += accuracy(rule.fit(X, y), nu)
                found["forecast"][place] += rules["per-task"].expected_accuracy_
    return {name: total / (N_CROWDS * N_TARGETS) for name, total in found.items()}


def main(path):
    rng = np.random.default_rng(0)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(180 / 25.4, 2.5))
    for ax, (title, centres) in zip((left, middle), WORLDS.items(), strict=True):
        found = study(rng, centres)
        print(f"{title}: labelled samples {BUDGETS}")
        for name, mean in found.items():
            print(f"  {name:13s}", *(f"{value:.3f}" for value in mean))
        for name, (colour, marker) in LOOKS.items():
            ax.plot(BUDGETS, found[name], color=colour, marker=marker, label=name)
        ax.set(title=title, xlabel="labelled samples", ylim=(0.65, 0.85), xticks=BUDGETS)
    left.set_ylabel("accuracy on new samples")
    left.legend(loc="lower right")
    W, which = draw(rng, WORLDS["six clusters, 90 degrees apart"], N_SOURCES)
    X, y = samples(rng, np.eye(N_FEATURES)[1], 10)
    prior = TaskPrior.from_projections(W, keep_directions=True)
    blend = ConvexBlendClassifier(prior, weights="per-task").fit(X, y)
    share = blend.source_weights_[which == 1].sum()
    print(
        f"one target of the second cluster, 10 samples: alpha {blend.alpha_:.2f}, penalty "
        f"{blend.penalty_:g}, {share:.2f} of the weight on its own cluster"
    )
    for name, colour, places in (
        ("other clusters", "#56b4e9", np.flatnonzero(which != 1)),
        ("target's cluster", "#d55e00", np.flatnonzero(which == 1)),
    ):
        right.bar(places, blend.source_weights_[places], width=1.0, color=colour, label=name)
    right.axhline(1 / N_SOURCES, color="black", linewidth=0.8, linestyle="--", label="average")
    right.set(title="weights for one target", xlabel="source", ylabel="weight")
    right.legend(loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/per_task.png"))
