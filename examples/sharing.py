"""What more labels would bring, and what they did: Mental Math, each participant in turn."""

import sys
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from crossfade import PosteriorBlendClassifier, TaskPrior, forecast_labels, load_mental_math

style.use("crossfade.plots.crossfade")

BUDGETS = np.array([2, 4, 8, 16])
#: Windows of each class from which the forecasts are made.
NOW = 4
N_SPLITS = 10

out = Path(sys.argv[1] if len(sys.argv) > 1 else "results/sharing.png")
tasks = list(load_mental_math())
rng = np.random.default_rng(0)
hits = np.empty((len(tasks), N_SPLITS, BUDGETS.size))
forecasts, errors = np.empty_like(hits), np.empty_like(hits)
for person, task in enumerate(tasks):
    prior = TaskPrior.from_tasks(tasks[:person] + tasks[person + 1 :])
    first, second = (np.flatnonzero(task.y == label) for label in task.classes)
    for split in range(N_SPLITS):
        pair = rng.permutation(first), rng.permutation(second)
        test = np.concatenate([one[BUDGETS[-1] :] for one in pair])
        for place, budget in enumerate(BUDGETS):
            few = np.concatenate([one[:budget] for one in pair])
            blend = PosteriorBlendClassifier(prior, in_a_row=False)
            blend.fit(task.X[few], task.y[few])
            right = blend.predict(task.X[test]) == task.y[test]
            shares = [right[task.y[test] == label].mean() for label in task.classes]
            hits[person, split, place] = np.mean(shares)
            if budget == NOW:
                found = forecast_labels(blend, BUDGETS)
                forecasts[person, split], errors[person, split] = found.accuracy, found.error

print(f"{len(tasks)} participants, {N_SPLITS} draws each; forecasts from {NOW} windows a class")
for place, budget in enumerate(BUDGETS):
    off = np.abs(forecasts - hits)[..., place].mean()
    print(
        f"{budget:3d} windows a class: forecast {forecasts[..., place].mean():.3f}, "
        f"true {hits[..., place].mean():.3f}; one person's is off by {off:.3f} on average, "
        f"its error says {errors[..., place].mean():.3f}"
    )

figure = Figure(figsize=(180 / 25.4, 2.9))
average, single = figure.subplots(1, 2, width_ratios=(1.2, 1.0))
places = np.arange(BUDGETS.size)
spread = hits.mean(1).std(0, ddof=1) / np.sqrt(len(tasks))
average.errorbar(places, hits.mean((0, 1)), 2.0 * spread, fmt="o-", color="#0072b2", label="true")
average.plot(
    places, forecasts.mean((0, 1)), "s--", color="#d55e00", label=f"forecast from {NOW} a class"
)
average.axhline(0.5, color="#666666", linestyle=":", linewidth=0.9)
average.text(places[-1], 0.5, "chance", color="#666666", size=6, ha="right", va="bottom")
average.set_xticks(places, [str(budget) for budget in BUDGETS])
average.set_xlabel("labelled windows of each class")
average.set_ylabel("balanced accuracy")
average.set_title("mean of all participants, two standard errors")
average.legend(loc="upper left")
last = len(BUDGETS) - 1
single.errorbar(
    forecasts.mean(1)[:, last],
    hits.mean(1)[:, last],
    xerr=errors.mean(1)[:, last],
    fmt="o",
    color="#0072b2",
    ecolor="#cccccc",
)
single.axline((0.6, 0.6), slope=1.0, color="#666666", linewidth=0.8)
single.set(xlim=(0.1, 1.05), ylim=(0.1, 1.05), aspect="equal")
single.set_xlabel(f"forecast from {NOW} a class, {N_SPLITS} draws")
single.set_ylabel("true")
single.set_title(f"each participant, {BUDGETS[last]} windows a class")
out.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(out)
print(f"Written: {out}")
