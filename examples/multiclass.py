"""Three classes: a crowd that knows each pair, and a newcomer with a few labels of each class."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossfade import MulticlassBlend, MulticlassPrior, PosteriorBlendClassifier, Task

plt.style.use("crossfade.plots.crossfade")

NAMES = np.array(["rest", "speech", "walk"])
N_FEATURES, N_SOURCES, N_TARGETS, N_NEW = 10, 100, 40, 200
BUDGETS = (2, 4, 8, 16, 32)
LOOKS = {
    "scikit-learn's shrinkage LDA": ("#cc79a7", "P", "--"),
    "no prior": ("#d55e00", "v", "-"),
    "one-vs-rest": ("#e69f00", "s", "-"),
    "pairwise": ("#0072b2", "o", "-"),
}


class People:
    """Class means that scatter from person to person around common ones; correlated features."""

    def __init__(self, rng):
        self.rng = rng
        common = rng.normal(size=(3, N_FEATURES))
        common -= common.mean(0)
        self.common = 1.2 * common / np.linalg.norm(common, axis=1, keepdims=True)
        self.root = np.linalg.cholesky(0.7 * np.eye(N_FEATURES) + 0.3).T

    def person(self):
        return self.common + self.rng.normal(size=self.common.shape) / np.sqrt(N_FEATURES)

    def samples(self, means, n_each):
        place = np.repeat(np.arange(3), n_each)
        X = self.rng.normal(size=(place.size, N_FEATURES)) @ self.root + means[place]
        return X, NAMES[place]


def compare(people, rules):
    """Mean accuracy of each rule at each budget, and the forecast of the pairwise blend."""
    found = {name: np.zeros(len(BUDGETS)) for name in (*rules, "forecast")}
    for place, n_each in enumerate(BUDGETS):
        for _ in range(N_TARGETS):
            means = people.person()
            X, y = people.samples(means, n_each)
            new, truth = people.samples(means, N_NEW)
            for name, rule in rules.items():
                found[name][place] += rule.fit(X, y).score(new, truth) / N_TARGETS
            found["forecast"][place] += rules["pairwise"].expected_accuracy_ / N_TARGETS
    return found


def unseen(people, prior):
    """Mean accuracy with samples of one, two or three classes, those of the rest by the prior."""
    blend = MulticlassBlend(PosteriorBlendClassifier(prior, on_missing_class="prior"))
    found = np.zeros(3)
    for _ in range(N_TARGETS):
        means = people.person()
        X, y = people.samples(means, 8)
        new, truth = people.samples(means, N_NEW)
        for n_seen in (1, 2, 3):
            seen = np.isin(y, NAMES[:n_seen])
            found[n_seen - 1] += blend.fit(X[seen], y[seen]).score(new, truth) / N_TARGETS
    return found


def main(path):
    people = People(np.random.default_rng(0))
    tasks = [Task(*people.samples(people.person(), 50)) for _ in range(N_SOURCES)]
    pairs = MulticlassPrior.from_tasks(tasks)
    rests = MulticlassPrior.from_tasks(tasks, strategy="one-vs-rest")
    rules = {
        "scikit-learn's shrinkage LDA": LinearDiscriminantAnalysis("lsqr", shrinkage="auto"),
        "no prior": MulticlassBlend(PosteriorBlendClassifier()),
        "one-vs-rest": MulticlassBlend(PosteriorBlendClassifier(rests), "one-vs-rest"),
        "pairwise": MulticlassBlend(PosteriorBlendClassifier(pairs)),
    }
    found, partly = compare(people, rules), unseen(people, pairs)
    print("labelled samples per class   ", *(f"{n:5d}" for n in BUDGETS))
    for name, mean in found.items():
        print(f"{name:29s}", *(f"{value:.3f}" for value in mean))
    print("accuracy with 1, 2 and 3 classes seen:", *(f"{value:.3f}" for value in partly))

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(180 / 25.4, 2.9), width_ratios=(2, 1), sharey=True
    )
    for name, (colour, marker, line) in LOOKS.items():
        left.plot(BUDGETS, found[name], color=colour, marker=marker, linestyle=line, label=name)
    left.plot(BUDGETS, found["forecast"], ":", color="#0072b2", label="pairwise, as forecast")
    left.set_xscale("log", base=2)
    left.set_xticks(BUDGETS, BUDGETS)
    left.set(xlabel="labelled samples of each class", ylabel="accuracy on new samples")
    for ax in (left, right):
        ax.axhline(1.0 / 3.0, color="#666666", linestyle=":", linewidth=0.9)
    left.text(BUDGETS[-1], 1.0 / 3.0, "chance", color="#666666", size=6, ha="right", va="bottom")
    figure.legend(loc="outside lower center", ncols=5)
    right.plot(["rest", "rest,\nspeech", "all three"], partly, "o", color="#0072b2")
    for place, value in enumerate(partly):
        right.text(place, value + 0.01, f"{value:.2f}", ha="center", va="bottom")
    right.set(xlabel="classes with labels, 8 each", xlim=(-0.5, 2.5), ylim=(0.3, 0.9))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/multiclass.png"))
