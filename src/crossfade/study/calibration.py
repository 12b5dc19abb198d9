"""Tasks, methods and budgets in, tidy rows out: what a calibration of each length is worth."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._checks import check_choice, check_integer
from crossfade.study.admission import check_budgets, check_methods, check_sizes, check_tasks
from crossfade.study.methods import METHODS
from crossfade.study.shard import Columns, Note, Plan, run_shard
from crossfade.study.sources import Sources
from crossfade.study.splits import KINDS
from crossfade.tasks import Task

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """What a study found.

    Attributes
    ----------
    rows : DataFrame
        One row for each task, budget, method and split, with the columns `task`, `group`, `method`,
        `budget`, `n_labelled`, `split`, `balanced_accuracy`, `accuracy`, `roc_auc`, `brier`,
        `alpha`, `expected_accuracy` and `seconds`; NaN where a method has none. A budget below one
        is a proportion, a split of one number has the same windows for every method, and the
        seconds to fit and predict are those of all splits, where they are done at once, over their
        number.
    """

    rows: pd.DataFrame

    def __repr__(self) -> str:
        names = ", ".join(self.rows["method"].unique())
        return f"StudyResult({self.rows['task'].nunique()} tasks, {len(self.rows)} rows: {names})"

    def summary(self) -> pd.DataFrame:
        """Balanced accuracies over tasks, for each method and budget.

        Returns
        -------
        DataFrame
            `n_tasks`, the mean and the median over tasks of the mean over splits, and, if `target`
            is among the methods, `wins`: the tasks on which a method has the higher mean.
        """
        import pandas as pd

        keys = ["method", "budget"]
        means = self.rows.groupby([*keys, "task"], sort=False)["balanced_accuracy"].mean()
        grouped = means.groupby(keys, sort=False)
        table = pd.DataFrame(
            {
                "n_tasks": grouped.count(),
                "mean_balanced_accuracy": grouped.mean(),
                "median_balanced_accuracy": grouped.median(),
            }
        )
        if (self.rows["method"] == "target").any():
            target = means.loc["target"].rename("target")
            both = means.reset_index().merge(target.reset_index(), on=["budget", "task"])
            both["wins"] = both["balanced_accuracy"] > both["target"]
            table["wins"] = both.groupby(keys, sort=False)["wins"].sum()
        return table.reset_index()


class CalibrationStudy:
    """Leave each participant out in turn, give methods a few labelled windows, count their errors.

    Every method is given the same splits. A target's sources are all tasks of other groups; a task
    without a group is one of its own.

    Parameters
    ----------
    tasks : TaskSet or iterable of Task
        Participants or sessions with the same features and the same two classes, their windows in
        the order of time, or of `start` where they have it.
    methods : sequence of str and (str, estimator) pairs, optional
        The paper's five, all as its authors had them: "target", "average-source", "paper"
        (Algorithm 1), "oracle" (the best alpha on the test windows) and "random-alpha". Ours:
        "target-shrunk", "convex" and "posterior". Others: "lda" (scikit-learn's, with automatic
        shrinkage) and "pooled" (the same, of the sources' windows). A pair of a name and an
        estimator of scikit-learn is fitted to the labelled windows.
    budgets : sequence of float or int, default=(0.05, 0.1, 0.2, 0.5)
        What is labelled: a proportion of the smaller class, rounded up, or a whole number of
        windows, of each class. All other windows are for testing.
    n_splits : int, default=100
        Splits for each task and budget; "chronological" knows but one.
    splits : {"consecutive", "chronological", "random"}, default="consecutive"
        Which windows of each class are labelled: a run with a random start, as in the paper; the
        first, as a real session goes; or any.
    random_state : int or None, default=None
        Seed. A split depends on it, on the name of the task, on the budget and on its own number.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["target", "posterior"], budgets=[2], n_splits=20, random_state=0
    ... )
    >>> result = study.run()
    >>> result
    StudyResult(8 tasks, 320 rows: target, posterior)
    >>> table = result.summary().set_index("method")["mean_balanced_accuracy"]
    >>> bool(table["posterior"] > table["target"])
    True
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        *,
        methods: Sequence[str | tuple[str, Any]] = (
            "target",
            "average-source",
            "convex",
            "posterior",
            "oracle",
        ),
        budgets: Sequence[float] = (0.05, 0.1, 0.2, 0.5),
        n_splits: int = 100,
        splits: str = "consecutive",
        random_state: int | None = None,
    ) -> None:
        self._classes, self._participants = check_tasks(tasks)
        if random_state is None:
            seed = int(np.random.default_rng().integers(2**63))
        else:
            seed = check_integer("random_state", random_state, 0)
        n_splits = check_integer("n_splits", n_splits, 1)
        kind = check_choice("splits", splits, KINDS)
        self._plan = Plan(
            methods=check_methods(methods),
            budgets=check_budgets(budgets),
            n_splits=1 if kind == "chronological" else n_splits,
            kind=kind,
            seed=seed,
        )
        self._targets = check_sizes(self._participants, self._plan.budgets)

    def __repr__(self) -> str:
        plan = self._plan
        return (
            f"CalibrationStudy({len(self._participants)} tasks, methods={list(plan.methods)}, "
            f"budgets={list(plan.budgets)}, n_splits={plan.n_splits})"
        )

    def run(
        self, n_jobs: int = 1, on_progress: Callable[[int, int], None] | None = None
    ) -> StudyResult:
        """Run the study; the rows do not depend on the number of processes.

        A split on which a method fails has NaN in its row; how many and why is said in one warning.

        Parameters
        ----------
        n_jobs : int, default=1
            Processes.
        on_progress : callable or None, default=None
            Called with the number of finished tasks and their total.

        Returns
        -------
        StudyResult
            Rows and their summary.
        """
        import joblib
        import pandas as pd

        n_jobs = check_integer("n_jobs", n_jobs, 1)
        sources = Sources.of(
            self._participants,
            self._classes,
            self._plan.seed,
            keep_windows=METHODS["pooled"] in self._plan.methods.values(),
        )
        work = [joblib.delayed(run_shard)(target, sources, self._plan) for target in self._targets]
        shards: list[Columns] = []
        notes: list[Note] = []
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
            for done, (columns, found) in enumerate(parallel(work)):
                shards.append(columns)
                notes += found
                if on_progress is not None:
                    on_progress(done + 1, len(work))
        rows = pd.DataFrame(
            {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0]}
        )
        for message in _messages(notes, len(rows) // len(self._plan.methods)):
            warnings.warn(message, UserWarning, stacklevel=2)
        return StudyResult(rows)


def _messages(notes: list[Note], n_fits: int) -> list[str]:
    """One sentence for each method that failed, and for each that warned."""
    messages = []
    for method, failed in dict.fromkeys((note.method, note.failed) for note in notes):
        some = [note for note in notes if (note.method, note.failed) == (method, failed)]
        count = sum(note.times for note in some)
        if failed:
            what = f"failed on {count} of {n_fits} splits, which are NaN in the rows"
        else:
            what = f"warned {count} times"
        messages.append(f"Method {method!r} {what}. The first, {some[0].first}")
    return messages
