"""The rows of a study, their summary, and sums of studies."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade._typing import RandomState
from crossfade.study._budgets import budget_of
from crossfade.study._evaluate import COLUMNS, NEW_COLUMNS, Columns, Note, Shard, joined

if TYPE_CHECKING:
    import pandas as pd

    from crossfade.study._store import Record, Store

#: What tells one row of a study from all others.
_CELL = ["task", "method", "budget", "split"]
#: What another machine may make of the same row.
_ROUNDING = 1e-6
#: Rows of a study that are in memory even if they are in a folder: some 15 MB.
_FEW = 100_000
#: In the place of rows that are in a folder.
_NOT_READ: Any = None


def _failures_of(notes: Sequence[Note]) -> pd.DataFrame:
    """Table of what failed: `task`, `budget`, `method`, `n` and `message`."""
    import pandas as pd

    lines = [
        (note.task, note.budget, note.method, note.times, note.message)
        for note in notes
        if note.failed
    ]
    kinds = {"task": str, "budget": float, "method": str, "n": int, "message": str}
    return pd.DataFrame(lines, columns=list(kinds)).astype(kinds)


def _columns_of(kept: Mapping[Shard, Columns], shards: Sequence[Shard]) -> Iterator[Columns]:
    """Rows of shards that are in memory."""
    yield joined([kept[shard] for shard in shards])


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with all columns, in order; those of an older study lack some, which are NaN."""
    return rows.assign(**{name: np.nan for name in NEW_COLUMNS if name not in rows})


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """What a study found; ``first + second`` puts two studies together.

    Attributes
    ----------
    rows : DataFrame
        One row for each task, method, budget and split, with the columns `task`, `group`, `method`,
        `budget`, `n_labelled`, `split`, `balanced_accuracy`, `accuracy`, `roc_auc`, `brier`,
        `log_loss` (classes weighted alike), `alpha`, `expected_accuracy`, the ends `lower_68`,
        `upper_68`, `lower_90` and `upper_90` of its 68 % and 90 % intervals, and `seconds`; NaN
        where a method has none, or where an older study did not keep it. A budget is one
        number: 0 is no label, below one it is a proportion, a whole number is windows of each
        class, and unequal numbers are their mean, rounded up, with the numbers themselves as
        decimals, each with as many digits as the last decimal says: (24, 2) is 13.24022. Methods
        that cannot predict without a label have no rows at budgets without. A split of one number
        has the same windows for every method. Seconds
        are those to fit and predict; where splits are computed together, each has an equal part of
        them, and the first method and budget of a task bear what is done once with its sources.
        More than 100,000 rows in a folder are read when they are asked for, and statistics read
        them a part at a time, so that the folder must stay.
    failures : DataFrame
        One row for each task, budget and method with splits that failed, which are NaN in `rows`:
        how many, `n`, and the `message` of the first.
    drawn_from : mapping of str to str
        For each task a digest of what its splits were drawn from, if that is known.
    n_classes : int or None
        Number of classes, if it is known.
    window_seconds : mapping of str to float
        For each task the seconds from one window to the next, where they are known.
    """

    rows: pd.DataFrame
    failures: pd.DataFrame = field(default_factory=lambda: _failures_of([]))
    drawn_from: Mapping[str, str] = field(default_factory=dict)
    n_classes: int | None = None
    window_seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def _of(
        cls,
        notes: Mapping[Shard, Sequence[Note]],
        record: Record,
        kept: Mapping[Shard, Columns] | Store,
    ) -> StudyResult:
        """Put the parts of one study together, in the order of `notes`."""
        import pandas as pd

        whole = list(notes)
        about = (
            _failures_of([note for shard in whole for note in notes[shard]]),
            record.drawn_from(),
            len(record.content["classes"]),
            record.content.get("window_seconds", {}),
        )
        if isinstance(kept, Mapping):
            read: Callable[[Sequence[Shard]], Iterator[Columns]] = partial(_columns_of, kept)
            result = cls(pd.DataFrame(joined([kept[shard] for shard in whole])), *about)
        else:
            read = kept.read
            result = cls(_NOT_READ, *about)
            # Many rows in a folder are read when somebody asks for them: see __getattr__.
            del result.__dict__["rows"]
            result.__dict__["_read"] = partial(read, whole)
            if len(whole) * len(record.content["budgets"]) * record.content["n_splits"] <= _FEW:
                _ = result.rows
        return result

    def __getattr__(self, name: str) -> Any:
        if name != "rows" or "_read" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        import pandas as pd

        rows = pd.DataFrame(joined(list(self.__dict__["_read"]())))
        self.__dict__["rows"] = rows
        return rows

    def parts(self) -> Iterator[pd.DataFrame]:
        """Rows a few at a time: those in a folder are never all in memory.

        Yields
        ------
        DataFrame
            Rows of some tasks and methods, with all of their budgets and splits.
        """
        import pandas as pd

        if "rows" in self.__dict__:
            yield self.rows
            return
        for columns in self.__dict__["_read"]():
            yield pd.DataFrame(columns)

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        """Tables for which all parts had to be read."""
        return {}

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means over splits, as of :func:`crossfade.study.statistics.by_task`, read by parts."""
        import pandas as pd

        from crossfade.study._resampling import by_task

        tables = [by_task(part) for part in self.parts() if len(part)]
        return pd.concat(tables, ignore_index=True) if tables else by_task(self.rows)

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
        from crossfade.study._store import Record, Store

        record = Record.read(Path(folder))
        shards = record.shards()
        store = Store(Path(folder), record)
        found, refused = store.finished()
        if refused and not found:
            raise ValueError(
                f"The study in {folder} has no part that is what was computed there. {refused[0]} "
                "Run it again with the same arguments."
            )
        if not found:
            raise ValueError(f"The study in {folder} has no finished part yet. Run it first.")
        if len(found) < len(shards):
            also = f", {len(refused)} of them since they were altered" if refused else ""
            warnings.warn(
                f"The study in {folder} is not finished: {len(shards) - len(found)} of "
                f"{len(shards)} parts (a task and a method each) are missing{also}. Run it again "
                "with the same arguments to compute them.",
                UserWarning,
                stacklevel=2,
            )
        return cls._of(found, record, store)

    def __repr__(self) -> str:
        means = self.means
        names = ", ".join(means["method"].unique())
        n_tasks, n_rows = means["task"].nunique(), means["n_splits"].sum()
        return f"StudyResult({n_tasks} tasks, {n_rows} rows: {names})"

    def __add__(self, other: StudyResult) -> StudyResult:
        """Rows of both studies; what is in both must be the same, and is kept once."""
        import pandas as pd

        if not isinstance(other, StudyResult):
            return NotImplemented
        for name in self.drawn_from.keys() & other.drawn_from.keys():
            if self.drawn_from[name] != other.drawn_from[name]:
                raise ValueError(
                    f"Task {name!r} has other splits in the one study than in the other: its "
                    "windows, its group, random_state or the kind of splits differ, so that "
                    "methods cannot be compared. Run both studies with the same arguments, or, if "
                    "it is not the same task, give it another name; tasks without one are called "
                    "'task 1', 'task 2' and so on in every study."
                )
        mine, theirs = (_complete(rows).set_index(_CELL) for rows in (self.rows, other.rows))
        shared = mine.index.intersection(theirs.index)
        numbers = mine.columns.drop(["group", "seconds"])
        first, second = (part.loc[shared, numbers] for part in (mine, theirs))
        close = np.isclose(first, second, rtol=0.0, atol=_ROUNDING, equal_nan=True)
        # An older study does not disagree about what it did not keep.
        unknown = numbers.isin(NEW_COLUMNS) & (first.isna() | second.isna()).to_numpy()
        same = (close | unknown).all(1)
        if not same.all():
            task, method, budget, split = shared[int(same.argmin())]
            raise ValueError(
                f"The two studies disagree about {(~same).sum()} of {len(shared)} rows that both "
                f"have. The first is of task {task!r}, method {method!r}, budget "
                f"{budget_of(budget)}, split "
                f"{split}: its sources, or the method of this name, are not the same. Rename the "
                "task or the method, or leave it out of one of them."
            )
        failures = pd.concat([self.failures, other.failures], ignore_index=True)
        return StudyResult(
            pd.concat([mine, theirs.drop(shared)]).reset_index()[list(COLUMNS)],
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
        self,
        accuracy: float = 0.75,
        share: float = 0.8,
        *,
        flat: float = 0.01,
        random_state: RandomState = 0,
    ) -> pd.DataFrame:
        """How many windows a new person needs, until most people reach an accuracy.

        A person is the mean over their splits, and over their tasks where they have several. The
        accuracy that the share of people reaches at a budget, or has reached with fewer windows, is
        joined by straight lines in the logarithm of the labelled windows, in which no window
        counts as one; windows are rounded up to whole ones. Proportions count by the
        windows that they came to, the median over tasks. Unequal numbers are left out, and so are
        budgets that more than half of the people have too few windows for.

        Parameters
        ----------
        accuracy : float, default=0.75
            Balanced accuracy to reach.
        share : float, default=0.8
            Proportion of people that must reach it.
        flat : float, default=0.01
            Gain in mean accuracy below which a curve is called flat.
        random_state : int or Generator, default=0
            Seed of the interval.

        Returns
        -------
        DataFrame
            For each `method`: `accuracy` and `share`; `windows` of each class, infinite where the
            share does not reach the accuracy with any budget, `low` and `high`, the 95 % interval
            over people (2,000 draws of as many; NaN with fewer than five), and `total`, all classes
            together; `seconds`, that many times the time from one window to the next, NaN where
            tasks have no `start`; `bound`, "=", or "<=" if already the smallest budget is enough,
            which is then `windows`, or ">" if not even the largest is; `reached`, the proportion of
            people who reach it with the largest budget; `flat_from`, the windows of each class from
            which on no budget has `flat` more mean accuracy, NaN if the curve still rises;
            `n_people`, and `n_left_out`, who lack a budget; `n_never`, how many reach the accuracy
            at no budget, and `never`, their names; `reason`, why there is no number, or only a
            bound.

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
        from crossfade.study._needed import windows_needed

        return windows_needed(
            self.means,
            accuracy,
            share,
            flat=flat,
            n_classes=self.n_classes,
            window_seconds=self.window_seconds,
            random_state=random_state,
        )
