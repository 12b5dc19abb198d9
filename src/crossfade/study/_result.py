"""The rows of a study, their summary, and sums of studies."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from crossfade.study._evaluate import Note, Shard, joined
from crossfade.study._needed import windows_needed
from crossfade.study._resampling import by_task
from crossfade.study._splits import budget_of
from crossfade.study._store import Record, Store

#: Columns that tell one row of a study from all others.
_CELL = ["task", "method", "budget", "split"]
#: Largest difference between machines in the same row.
_ROUNDING = 1e-6
#: Rows of a study that are in memory even if they are in a folder: some 15 MB.
_FEW = 100_000


def _failures_of(notes: Sequence[Note]) -> pd.DataFrame:
    """Table of what failed: `task`, `budget`, `method`, `n` and `message`."""
    lines = [
        (note.task, note.budget, note.method, note.times, note.message)
        for note in notes
        if note.failed
    ]
    kinds = {"task": str, "budget": float, "method": str, "n": int, "message": str}
    return pd.DataFrame(lines, columns=list(kinds)).astype(kinds)


class StudyResult:
    """Results of a study; ``first + second`` puts two studies together.

    Parameters
    ----------
    rows : DataFrame
        One row for each task, method, budget and split.
    failures : DataFrame, optional
        What failed.
    drawn_from : mapping of str to str, optional
        For each task a digest of what its splits were drawn from.
    n_classes : int, optional
        Number of classes.
    window_seconds : mapping of str to float, optional
        For each task the seconds from one window to the next, where they are known.

    Attributes
    ----------
    rows : DataFrame
        One row for each task, method, budget and split, with the columns `task`, `group`, `method`,
        `budget`, `n_labelled`, `split`, `balanced_accuracy`, `accuracy`, `roc_auc`, `brier`,
        `log_loss` (classes weighted alike), `alpha`, `expected_accuracy`, the ends `lower_68`,
        `upper_68`, `lower_90` and `upper_90` of its 68 % and 90 % intervals, and `seconds`; NaN
        where a method has none. A budget is one number: 0 is no label, below one it is a
        proportion, and a whole number is windows of each class. Unequal numbers are their mean,
        rounded up, with the numbers as decimals, each with as many digits as the last decimal says:
        (24, 2) is 13.24022. Every method has the same splits. Seconds are those to fit and predict;
        splits that are computed together share them equally, and the first method of a task bears
        the work on its sources. More than 100,000 rows stay in their folder until they are needed.
    failures : DataFrame
        One row for each task, budget and method with splits that failed, which are NaN in `rows`:
        how many, `n`, and the `message` of the first.
    """

    def __init__(
        self,
        rows: pd.DataFrame,
        failures: pd.DataFrame | None = None,
        drawn_from: Mapping[str, str] | None = None,
        n_classes: int | None = None,
        window_seconds: Mapping[str, float] | None = None,
    ) -> None:
        self._in_memory: pd.DataFrame | None = rows
        #: Where rows are that are not in memory.
        self._folder: tuple[Store, Sequence[Shard]] | None = None
        self.failures = _failures_of([]) if failures is None else failures
        self.drawn_from = dict(drawn_from or {})
        self.n_classes = n_classes
        self.window_seconds = dict(window_seconds or {})

    @classmethod
    def _of(
        cls,
        notes: Mapping[Shard, Sequence[Note]],
        record: Record,
        kept: Mapping[Shard, pd.DataFrame] | Store,
    ) -> StudyResult:
        """Put the parts of one study together, in the order of `notes`."""
        in_memory = joined([kept[one] for one in notes] if isinstance(kept, Mapping) else [])
        result = cls(
            in_memory,
            _failures_of([note for some in notes.values() for note in some]),
            record.drawn_from(),
            len(record.content["classes"]),
            record.content["window_seconds"],
        )
        if isinstance(kept, Store):
            result._in_memory, result._folder = None, (kept, list(notes))
            if len(notes) * len(record.content["budgets"]) * record.content["n_splits"] <= _FEW:
                _ = result.rows
        return result

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> StudyResult:
        """Read a study that was run in a folder; one that is not finished warns.

        Parameters
        ----------
        folder : str or path-like
            Where the study was run.

        Returns
        -------
        StudyResult
            All that is there.
        """
        store = Store.read(folder)
        shards = store.record.shards()
        found, refused = store.finished(shards)
        if not found:
            raise ValueError(f"The study in {folder} has no finished part. Run it. {refused[:1]}")
        if len(found) < len(shards):
            warnings.warn(
                f"The study in {folder} is not finished: {len(shards) - len(found)} of "
                f"{len(shards)} parts (a task and a method each) are missing, {len(refused)} of "
                "them damaged. Run it again with the same arguments.",
                UserWarning,
                stacklevel=2,
            )
        return cls._of(found, store.record, store)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """All rows."""
        return joined(list(self.parts())) if self._in_memory is None else self._in_memory

    def parts(self) -> Iterator[pd.DataFrame]:
        """Rows a few at a time: those in a folder are never all in memory.

        Yields
        ------
        DataFrame
            Rows of some tasks and methods, with all of their budgets and splits.
        """
        if self._folder is None or "rows" in self.__dict__:
            yield self.rows
        else:
            store, shards = self._folder
            yield from store.rows(shards)

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means over splits, read by parts."""
        tables = [by_task(part) for part in self.parts() if len(part)]
        return pd.concat(tables, ignore_index=True) if tables else by_task(self.rows)

    def __repr__(self) -> str:
        means = self.means
        names = ", ".join(means["method"].unique())
        n_tasks, n_rows = means["task"].nunique(), means["n_splits"].sum()
        return f"StudyResult({n_tasks} tasks, {n_rows} rows: {names})"

    def __add__(self, other: StudyResult) -> StudyResult:
        """Rows of both studies; what is in both must be the same, and is kept once."""
        if not isinstance(other, StudyResult):
            return NotImplemented
        for name in self.drawn_from.keys() & other.drawn_from.keys():
            if self.drawn_from[name] != other.drawn_from[name]:
                raise ValueError(
                    f"Task {name!r} has other windows or splits in the other study. Run both with "
                    "the same tasks, random_state and splits, or rename the task."
                )
        mine, theirs = (rows.set_index(_CELL) for rows in (self.rows, other.rows))
        shared = mine.index.intersection(theirs.index)
        numbers = mine.columns.drop(["group", "seconds"])
        first, second = (part.loc[shared, numbers] for part in (mine, theirs))
        same = np.isclose(first, second, rtol=0.0, atol=_ROUNDING, equal_nan=True).all(1)
        if not same.all():
            task, method, budget, _ = shared[int(same.argmin())]
            raise ValueError(
                f"The studies disagree about {(~same).sum()} of {len(shared)} rows, such as task "
                f"{task!r}, method {method!r}, budget {budget_of(budget)}: the sources or the "
                "method differ. Rename the task or the method."
            )
        failures = pd.concat([self.failures, other.failures], ignore_index=True)
        rows = pd.concat([mine, theirs.drop(shared)]).reset_index()
        return StudyResult(
            rows[list(self.rows.columns)],
            failures.drop_duplicates(["task", "budget", "method"], ignore_index=True),
            {**self.drawn_from, **other.drawn_from},
            self.n_classes if self.n_classes is not None else other.n_classes,
            {**self.window_seconds, **other.window_seconds},
        )

    def summary(self) -> pd.DataFrame:
        """Balanced accuracies over tasks, for each method and budget.

        Returns
        -------
        DataFrame
            `n_tasks`, the mean and the median over tasks of the mean over splits, and, if `target`
            is among the methods, `wins`: the tasks on which a method has the higher mean. The
            functions of :mod:`crossfade.study.statistics`, which this is from, say more.
        """
        from crossfade.study.statistics import compare, summarise

        keys = ["method", "budget"]
        names = {"mean": "mean_balanced_accuracy", "median": "median_balanced_accuracy"}
        table = summarise(self.means)[[*keys, "n_tasks", *names]].rename(columns=names)
        if (table["method"] == "target").any():
            wins = compare(self.means, "target").set_index(keys)["wins"]
            table = table.join(wins, on=keys).fillna({"wins": 0}).astype({"wins": int})
        return table

    def needed(
        self, accuracy: float = 0.75, share: float = 0.8, *, flat: float = 0.01
    ) -> pd.DataFrame:
        """How many windows a new person needs, until most people reach an accuracy.

        A person's accuracy is the mean over splits and tasks. The accuracy that the share of people
        reaches at a budget, or with fewer windows, is joined by straight lines in the logarithm of
        the labelled windows; windows are rounded up. Unequal numbers are left out, and so are
        budgets that more than half of the people have too few windows for.

        Parameters
        ----------
        accuracy : float, default=0.75
            Balanced accuracy to reach.
        share : float, default=0.8
            Proportion of people that must reach it.
        flat : float, default=0.01
            Gain in mean accuracy below which a curve is called flat.

        Returns
        -------
        DataFrame
            For each `method`: `accuracy` and `share`; `windows` of each class (infinite if no
            budget is enough), `low` and `high`, the 95 % interval over people (2,000 draws; NaN
            with fewer than five), and `total`, all classes together; `seconds`, the time of these
            windows (NaN where tasks have no `start`); `bound`, "=", or "<=" if already the smallest
            budget is enough, or ">" if the largest is not; `reached`, the proportion of people who
            reach it with the largest budget; `flat_from`, the windows of each class from which on
            no budget has `flat` more mean accuracy, NaN if the curve still rises; `n_people`, and
            `n_left_out`, who lack a budget; `n_never` and `never`, the number and names of those
            who never reach it; `reason`, why there is no number, or only a bound.

        Examples
        --------
        >>> from crossfade.simulate import simulate_tasks
        >>> from crossfade.study import CalibrationStudy
        >>> tasks = simulate_tasks(12, n_features=3, random_state=0)
        >>> study = CalibrationStudy(
        ...     tasks, methods=["target", "posterior"], budgets=[1, 2, 4, 8], random_state=0
        ... )
        >>> table = study.run().needed(accuracy=0.7, share=0.5).set_index("method")
        >>> bool(table.loc["posterior", "windows"] < table.loc["target", "windows"])
        True
        """
        return windows_needed(
            self.means,
            accuracy,
            share,
            flat=flat,
            n_classes=self.n_classes,
            window_seconds=self.window_seconds,
        )
