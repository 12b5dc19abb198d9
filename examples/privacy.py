"""What privacy costs: accuracy of a blend with a released prior against its budget epsilon."""

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from scipy.special import ndtr

from crossfade import PosteriorBlendClassifier, TaskPrior
from crossfade.exceptions import UncountedReleaseWarning
from crossfade.simulate import draw_directions

# These people are drawn by a computer.
warnings.simplefilter("ignore", UncountedReleaseWarning)
style.use("crossfade.plots.crossfade")

N_FEATURES, KAPPA, N_SAMPLES, DELTA = 9, 10.0, 10, 1e-5
CROWDS = (36, 100, 1000)
EPSILONS = np.array([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
#: Crowds of each size, each released once for every epsilon, and new people for each.
N_ROUNDS, N_PEOPLE = 40, 6


def accuracy(prior: TaskPrior, people: list[tuple], strength: float | str = "auto") -> float:
    """Mean over people of the accuracy on new samples, from the law that these have."""
    found = []
    for nu, X in people:
        rule = PosteriorBlendClassifier(prior, strength=strength).fit(X, LABELS)
        length = np.linalg.norm(rule.coef_)
        gap, miss = rule.coef_[0] @ nu / length, rule.intercept_[0] / length
        found.append((ndtr(gap + miss) + ndtr(gap - miss)) / 2.0)
    return float(np.mean(found))


out = Path(sys.argv[1] if len(sys.argv) > 1 else "results/privacy.png")
LABELS = np.repeat([0, 1], N_SAMPLES // 2)
rng = np.random.default_rng(0)
alone = np.empty(N_ROUNDS)
exact = np.empty((N_ROUNDS, len(CROWDS)))
released = np.empty((N_ROUNDS, len(CROWDS), EPSILONS.size))
for turn in range(N_ROUNDS):
    W = draw_directions(CROWDS[-1] + N_PEOPLE, N_FEATURES, KAPPA, random_state=rng)
    noise = rng.standard_normal((N_PEOPLE, N_SAMPLES, N_FEATURES))
    people = [(nu, x + np.outer(2 * LABELS - 1, nu)) for nu, x in zip(W, noise, strict=False)]
    for place, n_tasks in enumerate(CROWDS):
        prior = TaskPrior.from_projections(W[N_PEOPLE : N_PEOPLE + n_tasks])
        exact[turn, place] = accuracy(prior, people)
        for step, epsilon in enumerate(EPSILONS):
            released[turn, place, step] = accuracy(prior.released(epsilon, DELTA), people)
    alone[turn] = accuracy(prior, people, strength=np.inf)

print(f"{N_SAMPLES} labelled samples, {N_FEATURES} features, kappa = {KAPPA:g}, delta = {DELTA:g}")
print(f"person alone {alone.mean():.3f}; with a released prior, by epsilon:")
print("   J   " + "".join(f"{epsilon:>8g}" for epsilon in EPSILONS) + "    exact")
for place, n_tasks in enumerate(CROWDS):
    row = "".join(f"{value:8.3f}" for value in released[:, place].mean(0))
    print(f"{n_tasks:5d}  {row} {exact[:, place].mean():8.3f}")
gain = released - alone[:, None, None]
print(f"least gain over the person alone, of all J and epsilon: {gain.mean(0).min():+.4f}")

figure = Figure(figsize=(180 / 25.4, 2.7))
panels = figure.subplots(1, len(CROWDS), sharey=True)
for place, (ax, n_tasks) in enumerate(zip(panels, CROWDS, strict=True)):
    # Differences from the person alone have no part in how hard these people happened to be.
    error = gain[:, place].std(0, ddof=1) / np.sqrt(N_ROUNDS)
    ax.axhline(exact[:, place].mean(), color="#009e73", linestyle="--", label="exact prior")
    ax.axhline(alone.mean(), color="#666666", linestyle=":", label="person alone, shrunk")
    ax.errorbar(
        EPSILONS,
        released[:, place].mean(0),
        2.0 * error,
        fmt="o-",
        markersize=4,
        color="#0072b2",
        label="released prior",
    )
    ax.set_xscale("log")
    ax.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
    ax.set_title(f"{n_tasks} tasks")
    ax.set_xlabel(r"privacy budget $\varepsilon$")
panels[0].set_ylabel("accuracy on new samples")
handles, names = panels[0].get_legend_handles_labels()
figure.legend(handles, names, ncols=3, loc="outside lower center")
out.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(out)
print(f"figure in {out}")
