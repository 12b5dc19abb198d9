"""Every table of a report, each made once, and the sentences that sum it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossfade.plots import in_order, spoken, without_twins
from crossfade.study import (
    NEEDED,
    StudyResult,
    budget_of,
    budget_text,
    cells,
    leaves_test_windows,
    sentences,
)
from crossfade.study import rivals as rivals_among
from crossfade.study.statistics import (
    SAVED,
    compare,
    forecast_errors,
    labels_saved,
    reliability,
    summarise,
)
from crossfade.tasks import Task, TaskSet

#: What a method is compared with: of each line the first that is there.
_USUAL = (("lda",), ("target-shrunk", "target"))

#: People up to whom the page has all of them in itself, and who are drawn one by one where there
#: are more: each is a point of several figures, and directions are compared with each other.
MANY, DRAWN = 1000, 300


class Rivals(NamedTuple):
    """The method that a report is about, and those that it is compared with, if any."""

    method: str
    against: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report says, before it is written anywhere.

    `result` is the study's; `tasks` has all tasks by name, whether they took part or not;
    `reach` is the accuracy that a `share` of people is to reach; `headline` says how many windows
    that takes, and `statistics` how sure that is; `rivals` is None if no method has an accuracy;
    `tables` are `needed`, `summary`, `forecast`, `reliability`, `probabilities`, `comparison`,
    `labels_saved`, `participants`, `left_out` and `failures`;
    `class_names` is what people read instead of
    labels, and `notes` what may mislead in the table.
    """

    result: StudyResult
    tasks: dict[str, Task]
    reach: float
    share: float
    headline: str
    statistics: tuple[str, ...]
    rivals: Rivals | None
    tables: dict[str, pd.DataFrame]
    class_names: Mapping[Any, str]
    notes: tuple[str, ...]

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
        named = {
            task.name if task.name is not None else f"task {place + 1}": task
            for place, task in enumerate(TaskSet(tasks))
        }
        missing = [name for name in dict.fromkeys(means["task"]) if name not in named]
        if missing:
            raise ValueError(
                f"The study has rows of {len(missing)} tasks that are not among the tasks, such as "
                f"{missing[0]!r}. Pass the tasks that it was run on."
            )
        rivals = _rivals_of(means)
        tables = {
            "needed": _needed(result, reach, share),
            "summary": summarise(means),
            "forecast": forecast_errors(result),
            "reliability": reliability(result),
            "probabilities": _probabilities(means),
            "comparison": _comparison(means, rivals),
            "labels_saved": _labels_saved(means, rivals),
            "participants": means,
            "left_out": _left_out(means, named),
            "failures": result.failures,
        }
        headline, *statistics = sentences(result, reach, share)
        names = tasks.class_names if isinstance(tasks, TaskSet) else {}
        about = (rivals, tables, names, tuple(notes))
        return cls(result, named, reach, share, headline, tuple(statistics), *about)

    @property
    def answer(self) -> str:
        """Who is more accurate with the fewest windows: one sentence, and the number in another."""
        if self.rivals is None:
            return self.headline
        means = self.tables["participants"]
        found = means[means["balanced_accuracy"].notna()]
        own = found[found["method"] == self.rivals.method]
        name, against = spoken(self.rivals.method), next(iter(self.rivals.against), None)
        if against is not None:
            cell = ["task", "group", "budget"]
            other = found.loc[found["method"] == against, [*cell, "balanced_accuracy"]]
            both = own.merge(other, on=cell, suffixes=("", "_against"))
            own, against = (both, against) if len(both) else (own, None)
        windows = own.groupby("budget")["n_labelled"].median()
        budget = windows.index[int(windows.argmin())]
        own = own[own["budget"] == budget]
        given = own["n_labelled"]
        about = "about " if given.min() < given.max() else ""
        opening = f"With {about}{windows.min():.0f} labelled windows,"
        if not windows.min():
            opening = "Without a labelled window,"
        mean, count = own["balanced_accuracy"].mean(), self.count(len(own))
        if against is None:
            reached = f"{opening} {name} reaches a mean balanced accuracy of"
            return f"{reached} {mean:.3f} over {count}."
        answer = _answer(self._compared(against, budget), name, spoken(against), count)
        more = round(mean - own["balanced_accuracy_against"].mean(), 3)
        difference = f", {abs(more):.3f} {'higher' if more > 0.0 else 'lower'}" if more else ""
        return (
            f"{opening} {answer}. Its mean balanced accuracy over {count} is "
            f"{mean:.3f}{difference or ', the same'}."
        )

    def _compared(self, against: str, budget: float) -> pd.Series:
        table = self.tables["comparison"]
        method = self.rivals.method if self.rivals else None
        line = (table["method"] == method) & (table["against"] == against)
        return table[line & (table["budget"] == budget)].iloc[0]

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order of the rows."""
        return list(dict.fromkeys(self.tables["summary"]["method"]))

    @property
    def reached(self) -> bool:
        """Whether with some method enough people reach the accuracy that they are to reach."""
        return bool(np.isfinite(self.tables["needed"]["total"].astype(float)).any())

    @property
    def compared(self) -> list[str]:
        """The methods but for those whose accuracy is that of another."""
        return without_twins(self.methods)

    @property
    def budgets(self) -> dict[float, str]:
        """Budgets, the smallest first and unequal ones last, and what they are called."""
        return {one: budget_text(one) for one in in_order(self.tables["participants"]["budget"])}

    @property
    def participants(self) -> TaskSet:
        """Tasks that have rows, all of them with a name."""
        return _taking_part(self.tables["participants"], self.tasks)

    @property
    def n_classes(self) -> int:
        """Classes of the study; targets have all of them."""
        return max(len(task.classes) for task in self.participants)

    @property
    def many(self) -> bool:
        """Whether there are too many people to show all of them on the page."""
        return len(self.participants) > MANY

    @property
    def drawn(self) -> pd.DataFrame:
        """Means of those who are drawn one by one: all, or of many a few hundred at random."""
        means = self.tables["participants"]
        names = _some(list(dict.fromkeys(means["task"])))
        return means[means["task"].isin(names)]

    @property
    def nouns(self) -> str:
        """What tasks are called: participants, if each has one of their own."""
        means = self.tables["participants"]
        return "participants" if means["group"].nunique() == means["task"].nunique() else "tasks"

    def count(self, number: int) -> str:
        """So many participants, or tasks."""
        return f"{number} {self.nouns if number != 1 else self.nouns[:-1]}"


def _answer(line: pd.Series, name: str, against: str, count: str) -> str:
    """Whether a method is better than another, as far as the 95 % interval tells."""
    if not np.isfinite(line["low"]):
        return f"{count} cannot tell {name} from {against}"
    if line["low"] > 0.0:
        return f"{name} is more accurate than {against}"
    if line["high"] < 0.0:
        return f"{name} is less accurate than {against}"
    return f"{name} is about as accurate as {against}"


def _taking_part(
    means: pd.DataFrame, tasks: dict[str, Task], some: set[str] | None = None
) -> TaskSet:
    """Tasks that have rows; only some of them, where it is said which."""
    there = set(means["task"]) if some is None else some
    return TaskSet(replace(task, name=name) for name, task in tasks.items() if name in there)


def _some(names: list[str]) -> set[str]:
    """All names, or of many a few hundred at random, always the same."""
    if len(names) <= MANY:
        return set(names)
    return set(np.random.default_rng(0).choice(names, DRAWN, replace=False).tolist())


def _rivals_of(means: pd.DataFrame) -> Rivals | None:
    found = list(dict.fromkeys(means.loc[means["balanced_accuracy"].notna(), "method"]))
    if not found:
        return None
    method, usual = rivals_among(found)
    first = (next((name for name in names if name in found), method) for names in _USUAL)
    against = [name for name in first if name != method]
    return Rivals(method, tuple(against or ([usual] if usual else [])))


def _needed(result: StudyResult, reach: float, share: float) -> pd.DataFrame:
    """Windows that a new person needs; empty where no budget has as many of each class."""
    if all(isinstance(budget_of(one), tuple) for one in set(result.means["budget"])):
        return pd.DataFrame(columns=NEEDED)
    return result.needed(reach, share)


def _probabilities(means: pd.DataFrame) -> pd.DataFrame:
    """How good the probabilities are, for methods that have some: means over tasks."""
    lines = []
    for method, budget, part in cells(means):
        own = part[part["log_loss"].notna() | part["brier"].notna()]
        if len(own):
            scores = own[["log_loss", "brier"]].mean()
            lines.append((method, budget, own["n_labelled"].median(), len(own), *scores))
    columns = ["method", "budget", "n_labelled", "n_tasks", "log_loss", "brier"]
    return pd.DataFrame(lines, columns=columns)


def _comparison(means: pd.DataFrame, rivals: Rivals | None) -> pd.DataFrame:
    against = rivals.against if rivals else ()
    parts = [compare(means, name) for name in against]
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else compare(means, means["method"].iloc[0], [])
    )


def _labels_saved(means: pd.DataFrame, rivals: Rivals | None) -> pd.DataFrame:
    if rivals is None or not rivals.against:
        return pd.DataFrame(columns=SAVED)
    parts = [labels_saved(means, rivals.method, name) for name in rivals.against]
    return pd.concat(parts, ignore_index=True)


def _left_out(means: pd.DataFrame, tasks: dict[str, Task]) -> pd.DataFrame:
    """Tasks that have no rows of some budget, and why."""
    budgets = sorted(set(means["budget"]))
    there = means.groupby("task")["budget"].unique().to_dict()
    n_classes = max(len(task.classes) for task in tasks.values())
    lines = []
    for name, task in tasks.items():
        counts = np.unique(np.asarray(task.y), return_counts=True)[1].tolist()
        if 1 < len(counts) < n_classes:
            counts.append(0)
        for budget in budgets:
            if budget not in there.get(name, ()):
                lines.append((name, budget, min(counts), _reason(counts, budget)))
    return pd.DataFrame(lines, columns=["task", "budget", "smaller_class", "reason"])


def _reason(counts: list[int], budget: float) -> str:
    if len(counts) < 2:
        return "windows of one class only"
    if not min(counts):
        return "no windows of some class; it is a source"
    if not leaves_test_windows(budget_of(budget), counts):
        return "no window of each class left to test on"
    return "not in the rows: its classes do not differ in any feature, or it was not run"


def tells_labels(table: pd.DataFrame) -> pd.Series[bool]:
    """Which lines say how many labels are saved: not those where fewer would have to be tried."""
    return table["saved"].notna() & ((table["bound"] != "<=") | (table["saved"] >= 0.05))
