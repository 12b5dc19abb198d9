"""Classes that are not equally frequent: a rule that ignores it, and one that knows it."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.base import clone

import crossfade as cf
from crossfade.risk import conditional_risk
from crossfade.simulate import draw_directions

plt.style.use("crossfade.plots.crossfade")

N_FEATURES, N_SOURCES, KAPPA, N_TARGETS = 10, 100, 10.0, 100
SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
LOOKS = {
    "ignores proportions": ("#0072b2", "s"),
    "knows them": ("#009e73", "D"),
    "best possible": ("#666666", "x"),
}


def risk(rule, nu, share):
    """Error rate of a rule on new windows of this target."""
    omega, middle = rule.coef_[0], rule.intercept_[0]
    first, second = norm.cdf((np.array([middle, -middle]) - omega @ nu) / np.linalg.norm(omega))
    return (1.0 - share) * first + share * second


def draw(rng, nu, second):
    """Windows of one target."""
    sign = np.where(second, 1.0, -1.0)
    return rng.standard_normal((second.size, N_FEATURES)) + sign[:, None] * nu


def simulate(half_gap, n_labelled, shares):
    """Mean error rates by share of the second class, and how far forecasts are off."""
    rng = np.random.default_rng(0)
    y = np.arange(n_labelled) % 2
    risks = {name: np.zeros(shares.size) for name in LOOKS}
    off = np.zeros(shares.size)
    for _ in range(N_TARGETS):
        W = draw_directions(N_SOURCES + 1, N_FEATURES, KAPPA, random_state=rng)
        nu, prior = half_gap * W[0], cf.TaskPrior.from_projections(W[1:])
        X = draw(rng, nu, y == 1)
        for place, share in enumerate(shares):
            known = cf.PosteriorBlendClassifier(prior, class_prior=(1.0 - share, share))
            rules = {
                "ignores proportions": cf.PosteriorBlendClassifier(prior).fit(X, y),
                "knows them": known.fit(X, y),
            }
            for name, rule in rules.items():
                risks[name][place] += risk(rule, nu, share) / N_TARGETS
            forecast = known.expected_accuracy_ - (1.0 - risk(known, nu, share))
            off[place] += forecast / N_TARGETS
    risks["best possible"] = np.array(
        [
            conditional_risk(nu, nu=nu, sigma=np.eye(N_FEATURES), class_prior=(1.0 - p, p))
            for p in shares
        ]
    )
    return risks, off


def mental_math():
    """Accuracy on a participant's other windows, three of four at rest, after five a class."""
    tasks = cf.load_mental_math()
    rng = np.random.default_rng(1)
    scores = []
    for place, task in enumerate(tasks):
        prior = cf.TaskPrior.from_tasks([*tasks[:place], *tasks[place + 1 :]])
        for _ in range(5):
            few = np.concatenate(
                [rng.permutation(np.flatnonzero(task.y == label))[:5] for label in (0, 1)]
            )
            rest = np.setdiff1d(np.arange(task.y.size), few)
            X, y = task.X[rest], task.y[rest]
            second = float(y.mean())
            own = (task.X[few], task.y[few])
            ignores = cf.PosteriorBlendClassifier(prior, in_a_row=False).fit(*own)
            knows = clone(ignores).set_params(class_prior=(1.0 - second, second)).fit(*own)
            row = [ignores.score(X, y), knows.score(X, y), knows.expected_accuracy_]
            # Windows without labels, three of four at rest, place the middle of the classes.
            row += [rule.partial_fit(X, None).score(X, y) for rule in (ignores, knows)]
            scores.append([*row, 1.0 - second])
    return np.mean(scores, axis=0)


def main(picture):
    """Print the numbers and draw the figure."""
    risks, off = simulate(1.5, 20, SHARES)
    print("error rate by share of the second class")
    print(" " * 22 + "".join(f"{share:7.2f}" for share in SHARES))
    for name, values in risks.items():
        print(f"{name:22s}" + "".join(f"{value:7.3f}" for value in values))
    print(f"{'forecast off by':22s}" + "".join(f"{value:+7.3f}" for value in off))
    print("\nerror rate with closer classes, by labelled windows and share")
    for n_labelled in (4, 8, 20, 60):
        close, off = simulate(1.0, n_labelled, np.array([0.05, 0.2, 0.5]))
        for place, share in enumerate((0.05, 0.2, 0.5)):
            parts = ", ".join(f"{name} {values[place]:.3f}" for name, values in close.items())
            print(f"{n_labelled:3d} {share:5.2f}: {parts}; forecast off by {off[place]:+.3f}")
    ignores, knows, promised, ignores_placed, knows_placed, always = mental_math()
    print(
        f"\nMental Math, accuracy: ignores {ignores:.3f}, knows {knows:.3f} (forecast "
        f"{promised:.3f}), with unlabelled windows {ignores_placed:.3f} and {knows_placed:.3f}, "
        f"always rest {always:.3f}"
    )
    figure, ax = plt.subplots(figsize=(180 / 25.4, 2.9))
    likelier = np.minimum(SHARES, 1.0 - SHARES)
    ax.plot(SHARES, likelier, ":", color="#666666", label="always the likelier class")
    for name, (colour, marker) in LOOKS.items():
        ax.plot(SHARES, risks[name], marker=marker, color=colour, label=name)
    ax.set_xlabel("share of the second class among new windows")
    ax.set_ylabel("error rate on new windows")
    ax.set_ylim(0.0, 0.2)
    figure.legend(loc="outside right center")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture)
    print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/proportions.png"))
