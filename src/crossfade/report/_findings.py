"""Findings of a study: the tables of its report, and the sentences to sum it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from crossfade.study import StudyResult, budget_of, budget_text, is_unequal, rivals, sentences
from crossfade.study.statistics import (
    SAVED,
    compare,
    forecast_errors,
    labels_saved,
    reliability,
    summarise,
)
from crossfade.tasks import Task, TaskSet

#: What the method of a report is compared with: of each line the first that was run.
_USUAL = (("lda",), ("target-shrunk", "target"))
#: Methods that predict what another does, with other probabilities.
_TWINS = {"lda-calibrated": "lda"}


@dataclass(frozen=True, eq=False)
class Findings:
    """Content of a report, before it is written.

    Attributes
    ----------
    result : StudyResult
        The study's.
    tasks : dict of str to Task
        All tasks by name, whether they took part or not.
    reach, share : float
        Balanced accuracy that a new person is to reach, and the proportion of people who must.
    headline : str
        How many windows that takes.
    statistics : list of str
        What follows the headline, one sentence each.
    method : str
        The method that the report is about; empty if none has an accuracy.
    against : list of str
        Methods to compare it with.
    tables : dict of str to DataFrame
        Each becomes a file.
    class_names : mapping
        What people read instead of labels.
    notes : sequence of str
        What may mislead in the table of tasks.
    """

    result: StudyResult
    tasks: dict[str, Task]
    reach: float
    share: float
    headline: str
    statistics: list[str]
    method: str
    against: list[str]
    tables: dict[str, pd.DataFrame]
    class_names: Mapping[Any, str]
    notes: Sequence[str]

    @classmethod
    def of(
        cls,
        result: StudyResult,
        tasks: Iterable[Task],
        reach: float = 0.75,
        share: float = 0.8,
        notes: Sequence[str] = (),
    ) -> Findings:
        """Findings of a study that was run on these tasks."""
        means = result.means
        named = {task.name or f"task {place + 1}": task for place, task in enumerate(tasks)}
        missing = [name for name in dict.fromkeys(means["task"]) if name not in named]
        if missing:
            raise ValueError(
                f"The study has rows of {missing[0]!r}, which is not among the tasks. Pass the "
                "tasks that it was run on."
            )
        method, against = _rivals_of(means)
        tables = {
            "needed": _needed(result, reach, share),
            "summary": summarise(means),
            "forecast": forecast_errors(result),
            "reliability": reliability(result),
            "probabilities": _probabilities(means),
            "comparison": _joined(
                [compare(means, name) for name in against],
                compare(means, means["method"].iloc[0], []),
            ),
            "labels_saved": _joined(
                [labels_saved(means, method, name) for name in against], pd.DataFrame(columns=SAVED)
            ),
            "participants": means,
            "left_out": _left_out(means, named),
            "failures": result.failures,
        }
        headline, *statistics = sentences(result, reach, share)
        names = tasks.class_names if isinstance(tasks, TaskSet) else {}
        said = (headline, statistics, method, against, tables, names, notes)
        return cls(result, named, reach, share, *said)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order of the rows."""
        return list(dict.fromkeys(self.tables["summary"]["method"]))

    @property
    def compared(self) -> list[str]:
        """The methods but for those whose accuracy is that of another."""
        return [name for name in self.methods if _TWINS.get(name) not in self.methods]

    @property
    def reached(self) -> bool:
        """Whether with some method enough people reach the accuracy that they are to reach."""
        return bool(np.isfinite(self.tables["needed"]["total"].astype(float)).any())

    @property
    def budgets(self) -> dict[float, str]:
        """Budgets, the smallest first and unequal ones last, and what they are called."""
        there = set(self.tables["participants"]["budget"])
        in_order = sorted(there, key=lambda one: (is_unequal(one), one))
        return {one: budget_text(one) for one in in_order}

    @property
    def participants(self) -> list[Task]:
        """Tasks that have rows, all of them with a name."""
        there = set(self.tables["participants"]["task"])
        return [replace(task, name=name) for name, task in self.tasks.items() if name in there]

    @property
    def n_classes(self) -> int:
        """Classes of the study; targets have all of them."""
        return max(len(task.classes) for task in self.participants)

    @property
    def nouns(self) -> str:
        """Word for the tasks: participants, if each has one of their own."""
        means = self.tables["participants"]
        return "participants" if means["group"].nunique() == means["task"].nunique() else "tasks"

    def count(self, number: int) -> str:
        """So many participants, or tasks."""
        return f"{number} {self.nouns if number != 1 else self.nouns[:-1]}"


def class_text(names: Mapping[Any, str], label: object) -> str:
    """Text for a label: its name, the label if it is a word, or "class 1"."""
    return names.get(label) or (label if isinstance(label, str) else f"class {label}")


def _rivals_of(means: pd.DataFrame) -> tuple[str, list[str]]:
    """The method that a report is about, and those that it is compared with."""
    found = list(dict.fromkeys(means.loc[means["balanced_accuracy"].notna(), "method"]))
    if not found:
        return "", []
    method, usual = rivals(found)
    first = (next((name for name in names if name in found), method) for names in _USUAL)
    against = [name for name in first if name != method]
    return method, against or ([usual] if usual else [])


def _joined(parts: list[pd.DataFrame], empty: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else empty


def _needed(result: StudyResult, reach: float, share: float) -> pd.DataFrame:
    """Windows that a new person needs; empty where no budget has as many of each class."""
    if all(is_unequal(one) for one in set(result.means["budget"])):
        return pd.DataFrame(columns=["method", "total", "n_people"])
    return result.needed(reach, share)


def _probabilities(means: pd.DataFrame) -> pd.DataFrame:
    """How good the probabilities are, for methods that have some: means over tasks."""
    own = means[means["log_loss"].notna() | means["brier"].notna()]
    groups = own.groupby(["method", "budget"], sort=False)
    return groups.agg(
        n_labelled=("n_labelled", "median"),
        n_tasks=("task", "size"),
        log_loss=("log_loss", "mean"),
        brier=("brier", "mean"),
    ).reset_index()


def _left_out(means: pd.DataFrame, tasks: dict[str, Task]) -> pd.DataFrame:
    """Tasks that have no rows of some budget, and why."""
    there = means.groupby("task")["budget"].unique().to_dict()
    n_classes = max(len(task.classes) for task in tasks.values())
    lines = []
    for name, task in tasks.items():
        counts = np.unique(np.asarray(task.y), return_counts=True)[1].tolist()
        if 1 < len(counts) < n_classes:
            counts.append(0)
        lines += [
            (name, budget, min(counts), _reason(counts, budget))
            for budget in sorted(set(means["budget"]))
            if budget not in there.get(name, ())
        ]
    return pd.DataFrame(lines, columns=["task", "budget", "smaller_class", "reason"])


def _reason(counts: list[int], budget: float) -> str:
    """Why a task with so many windows of each class is not a target at a budget."""
    if len(counts) < 2:
        return "windows of one class only"
    if not min(counts):
        return "no windows of some class; it is a source"
    fewest = budget_of(budget)
    needed = fewest if isinstance(fewest, tuple) else [fewest] * len(counts)
    if any(count <= n for count, n in zip(counts, needed, strict=False)):
        return "no window of each class left to test on"
    return "not in the rows: its classes do not differ in any feature, or it was not run"
