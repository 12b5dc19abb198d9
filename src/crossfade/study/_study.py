"""The study: each participant left out in turn, all methods, budgets and splits."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._validate import check_choice, check_flag, check_integer
from crossfade.study._evaluate import Note, Outcome, Plan, Shard
from crossfade.study._methods import check_able, check_budgets, check_methods
from crossfade.study._result import StudyResult
from crossfade.study._sources import Sources, check_sizes, check_tasks, later_sessions
from crossfade.study._splits import KINDS, MOST_SPLITS, NEXT_SESSION, Budget, budget_of
from crossfade.study._store import Record, Store
from crossfade.study._workers import in_processes, on_workers
from crossfade.tasks import Task, TaskSet

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


#: Methods that a study compares by default.
USUAL = ("target", "average-source", "convex", "posterior")


class CalibrationStudy:
    """Leave each participant out in turn, give methods a few labelled windows, count their errors.

    Every method is given the same splits. A target's sources are all tasks of other groups; a task
    without a group is one of its own.

    Parameters
    ----------
    tasks : TaskSet or iterable of Task
        Participants or sessions with the same features and the same two classes or more, their
        windows in the order of time, or of `start` where they have it. Tasks that lack one of more
        than two classes are sources only.
    methods : sequence of str and (str, estimator) pairs, or dict of estimators, optional
        The paper's, as its authors ran them: "target", "average-source" and "paper" (Algorithm 1).
        Ours: "hierarchical", "target-shrunk", "convex", "posterior"; "hierarchical-unlabelled" and
        "posterior-unlabelled", which also see the test windows without their labels; and "live",
        which stops where a live session would. Rivals: "lda" (scikit-learn's, with automatic
        shrinkage), "lda-calibrated" (the same with a temperature for its probabilities),
        "lda-pooled" (LDA of the sources' windows, each person centred) and "logistic-tuned"
        (logistic regression of the sources, then of the labelled windows). More than two classes:
        "hierarchical", "live" and those with "lda" in their name. A scikit-learn estimator, given
        with a name of your own, is fitted to the labelled windows, and to those of the sources if
        it asks for them by `groups`, `sample_domain` or `X_target_labeled`.
    budgets : sequence of float, int or tuple of int, default=(0.05, 0.1, 0.2, 0.5)
        What is labelled: a proportion of the smallest class, rounded up; a whole number of windows
        of each class; a number for each class in sorted order, such as (24, 2); or nothing, 0. All
        other windows are for testing. A method has no rows at a budget that is too small for it.
    n_splits : int, default=100
        Splits for each task and budget; "chronological" has one.
    splits : {"consecutive", "chronological", "random", "next-session"}, default="consecutive"
        Which windows of each class are labelled: a run with a random start, as in the paper; the
        first, as in a real session; or any. "next-session" is "consecutive" in the later sessions
        of a group: priors with class means know the person's earlier ones
        (:meth:`~crossfade.TaskPrior.for_person`).
    random_state : int or None, default=None
        Seed. A split depends on it, on the name of the task, on the budget and on its own number.
        None draws one; a study that resumes in a folder takes the seed that it was begun with.
    forecasts : bool, default=True
        Whether blends are rehearsed on the sources, which makes forecasts true for one person. A
        study of accuracies alone is faster without.

    See Also
    --------
    CalibrationSplit : The same splits as a cross-validator of scikit-learn.

    References
    ----------
    Helm, de Silva, Vogelstein, Priebe and Yang (2024), Approximately optimal domain adaptation with
    Fisher's linear discriminant. Mathematics 12(5), 746.

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
        methods: Sequence[str | tuple[str, Any]] | Mapping[str, Any] = USUAL,
        budgets: Sequence[Budget] = (0.05, 0.1, 0.2, 0.5),
        n_splits: int = 100,
        splits: str = "consecutive",
        random_state: int | None = None,
        forecasts: bool = True,
    ) -> None:
        tasks = TaskSet(tasks)
        self._classes, self._participants = check_tasks(tasks)
        self._feature_names = tasks.feature_names
        self._seed_is_drawn = random_state is None
        if random_state is None:
            seed = int(np.random.default_rng().integers(2**63))
        else:
            seed = check_integer("random_state", random_state, 0)
        n_splits = check_integer("n_splits", n_splits, 1, MOST_SPLITS)
        kind = check_choice("splits", splits, (*KINDS, NEXT_SESSION))
        self._plan = Plan(
            methods=check_methods(methods, len(self._classes)),
            budgets=check_budgets(budgets, len(self._classes)),
            n_splits=1 if kind == "chronological" else n_splits,
            kind=kind,
            seed=seed,
            forecasts=check_flag("forecasts", forecasts),
        )
        check_able(self._plan.methods, self._plan.budgets)
        targets = self._participants
        if kind == NEXT_SESSION:
            if len(self._classes) > 2:
                raise ValueError(
                    f"A study of next sessions is for two classes; got {len(self._classes)}."
                )
            targets = later_sessions(targets)
        self._targets = check_sizes(targets, self._plan.budgets)

    def __repr__(self) -> str:
        plan = self._plan
        return (
            f"CalibrationStudy({len(self._participants)} tasks, methods={list(plan.methods)}, "
            f"budgets={list(plan.budgets)}, n_splits={plan.n_splits})"
        )

    def run(
        self,
        n_jobs: int = 1,
        folder: str | os.PathLike[str] | None = None,
        dask: str | Client | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> StudyResult:
        """Run the study, or what a folder lacks of it; the rows are the same in any case.

        A split on which a method fails has NaN in its row. One warning for each method says how
        many failed and why; `failures` of the result has them all.

        Parameters
        ----------
        n_jobs : int, default=1
            Processes on this machine.
        folder : str, path-like or None, default=None
            Where to keep what is finished: run there again, a study that was stopped resumes, and
            new methods are added. Needs ``crossfade[tables]``.
        dask : str, distributed.Client or None, default=None
            Address of a Dask scheduler, such as ``"tcp://127.0.0.1:8786"``, or a client: the study
            runs on its workers instead of local processes. Needs ``crossfade[dask]``.
        on_progress : callable or None, default=None
            Called with the number of finished parts, a task and a method each, and their total.

        Returns
        -------
        StudyResult
            Rows and their summary.
        """
        n_jobs = check_integer("n_jobs", n_jobs, 1)
        plan, store = self._plan, None
        if folder is not None and self._seed_is_drawn:
            plan = plan._replace(seed=Store.seed_of(folder, plan.seed))
        record = Record.of(
            plan, self._participants, self._targets, self._classes, self._feature_names
        )
        shards = record.shards()
        notes: dict[Shard, list[Note]] = {}
        if folder is not None:
            store = Store.open(folder, record.identified(plan.methods))
            notes, refused = store.finished(shards)
            if refused:
                warnings.warn(
                    f"{len(refused)} of {len(shards)} parts in {folder} are damaged and are "
                    f"computed again. {refused[0]}",
                    UserWarning,
                    stacklevel=2,
                )
        if notes and on_progress is not None:
            on_progress(len(notes), len(shards))
        missing = [shard for shard in shards if shard not in notes]
        rows: dict[Shard, pd.DataFrame] = {}
        with closing(self._outcomes(plan, missing, n_jobs, dask)) as outcomes:
            for shard, outcome in outcomes:
                if store is None:
                    rows[shard] = outcome.rows
                else:
                    store.write(shard, outcome)
                notes[shard] = outcome.notes
                if on_progress is not None:
                    on_progress(len(notes), len(shards))
        in_order = {shard: notes[shard] for shard in shards}
        result = StudyResult._of(in_order, record, rows if store is None else store)
        for message in _messages(in_order, result):
            warnings.warn(message, UserWarning, stacklevel=2)
        return result

    def _outcomes(
        self, plan: Plan, shards: Sequence[Shard], n_jobs: int, dask: str | Client | None
    ) -> Generator[tuple[Shard, Outcome]]:
        """Shards as they are finished, in any order."""
        if not shards:
            return
        sources = Sources.of(
            self._participants,
            self._classes,
            plan.seed,
            keep_windows=any(method.windows for method in plan.methods.values()),
            forecasts=plan.forecasts,
        )
        wanted: dict[str, list[Shard]] = {}
        for shard in shards:
            wanted.setdefault(shard.task, []).append(shard)
        work = [(one, wanted[one.name]) for one in self._targets if one.name in wanted]
        if dask is None:
            yield from in_processes(work, sources, plan, n_jobs)
        else:
            yield from on_workers(work, sources, plan, dask)


def _messages(noted: Mapping[Shard, list[Note]], result: StudyResult) -> list[str]:
    """One sentence for each method that failed, and for each that warned."""
    notes = [note for some in noted.values() for note in some]
    if not notes:
        return []
    n_fits = result.means.groupby("method")["n_splits"].sum().to_dict()
    messages = []
    for method, failed in dict.fromkeys((note.method, note.failed) for note in notes):
        some = [note for note in notes if (note.method, note.failed) == (method, failed)]
        count, first = sum(note.times for note in some), some[0]
        what = f"warned {count} times"
        if failed:
            what = f"failed on {count} of {n_fits[method]} splits, which are NaN in the rows"
        messages.append(
            f"Method {method!r} {what}. The first, {first.task}, budget "
            f"{budget_of(first.budget)}: {first.message}"
        )
    return messages
