"""A study in words: how many windows a new person needs, and what the fewest are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from crossfade.study._methods import METHODS
from crossfade.study._needed import reached, windows_needed
from crossfade.study._resampling import by_task
from crossfade.study._splits import budget_text, is_unequal
from crossfade.study.statistics import compare, labels_saved, p_text, summarise

if TYPE_CHECKING:
    from crossfade.study._result import StudyResult

#: Words that the first sentence has at most.
_WORDS = 20


def verdict(rows: pd.DataFrame | StudyResult, accuracy: float = 0.75, share: float = 0.8) -> str:
    """Sum up a study: how many windows a new person needs, and what the fewest are worth.

    It is about the first of "hierarchical", "posterior", "convex" and "paper", or else the user's
    own estimators, next to the first of "lda", "target" and the other rivals. Methods that see test
    windows come last. The first sentence is the answer, in at most twenty words. The others are
    statistics, also of the smallest budget that both methods have.

    Parameters
    ----------
    rows : DataFrame or StudyResult
        Rows of a study, or of several; a result also knows how long its windows take.
    accuracy, share : float, default=0.75 and 0.8
        Balanced accuracy that this proportion of people must reach.

    Returns
    -------
    str
        Several sentences, most of them short.

    Examples
    --------
    >>> from crossfade.simulate import simulate_tasks
    >>> from crossfade.study import CalibrationStudy
    >>> from crossfade.study import verdict
    >>> tasks = simulate_tasks(8, n_features=3, random_state=0)
    >>> study = CalibrationStudy(
    ...     tasks, methods=["target", "posterior"], budgets=[2, 4], n_splits=20, random_state=0
    ... )
    >>> print(verdict(study.run(), accuracy=0.7))
    With the posterior blend, 80 % of people reach an accuracy of 0.7 within 2 windows of each ...
    """
    return " ".join(sentences(rows, accuracy, share))


def sentences(
    rows: pd.DataFrame | StudyResult, accuracy: float = 0.75, share: float = 0.8
) -> list[str]:
    """The answer, and after it the statistics, one sentence each."""
    means = by_task(rows)
    found = means[means["balanced_accuracy"].notna()]
    if found.empty:
        return [f"No method has an accuracy: all {means['n_splits'].sum()} splits failed."]
    about: dict[str, Any] = {}
    if not isinstance(rows, pd.DataFrame):
        about = {"n_classes": rows.n_classes, "window_seconds": rows.window_seconds}
    method, against = rivals(list(dict.fromkeys(found["method"])))
    needed = _needed(means, method, against, accuracy, share, about)
    first, *others = [*needed, *_fewest(means, method, against, leads=not needed)]
    given = METHODS[method].given if method in METHODS else ""
    return [first, *([f"Note that {_name(method)} {given}."] if given else []), *others]


def rivals(names: Sequence[str]) -> tuple[str, str | None]:
    """The first new method, or else one of the user's, and the first rival, if there is any."""
    known = METHODS.values()
    new = [one.name for one in known if one.role == "new"]
    new += [name for name in names if name not in METHODS]
    new.sort(key=lambda name: name in METHODS and bool(METHODS[name].given))
    rival = [one.name for one in known if one.role == "rival"]
    method = next(name for name in (*new, *rival) if name in names)
    usual = (name for name in (*rival, *new) if name in names and name != method)
    return method, next(usual, None)


def _name(method: str) -> str:
    return METHODS[method].spoken if method in METHODS else method


def _opening(method: str) -> str:
    """Name of a method at the head of a sentence; names that users gave stay as they are."""
    name = _name(method)
    return name[0].upper() + name[1:] if name.startswith("the ") else name


def _short(*texts: str) -> str:
    """The first of some texts that is short enough for an answer, or else the last."""
    return next((text for text in texts if len(text.split()) <= _WORDS), texts[-1])


def _percent(share: float) -> str:
    """A proportion in per cent, never rounded up to the goal."""
    return f"{math.floor(1000.0 * share + 1e-9) / 10.0:g} %"


# -- how many windows a new person needs ----------------------------------------------------------


def _needed(
    means: pd.DataFrame,
    method: str,
    against: str | None,
    accuracy: float,
    share: float,
    about: dict[str, Any],
) -> list[str]:
    """After how many windows people reach an accuracy, also with the rival; nothing if unknown."""
    found = means[means["balanced_accuracy"].notna()]
    found = found[[not is_unequal(one) for one in found["budget"]]]
    if method not in set(found["method"]):
        return []
    table = windows_needed(found, accuracy, share, **about).set_index("method")
    table = table[table["n_people"] > 0]
    if method not in table.index:
        return []
    own: Any = table.loc[method]
    most, goal = _most(found), _percent(share)
    texts = [_answer(own, method, accuracy, goal, most)]
    if own["bound"] == ">":
        there = math.floor(100.0 * reached(found[found["method"] == method], share)) / 100.0
        texts.append(
            f"{own['n_never']} of {own['n_people']} never reach it; {goal} of them reach {there:g} "
            f"{most}."
        )
    else:
        texts += _precisely(own)
    if against in table.index:
        other: Any = table.loc[against]
        when = f"only {_percent(other['reached'])} reach it" if other["bound"] == ">" else ""
        when = when or f"it takes {_each(other)}"
        texts.append(f"With {_name(str(against))}, {when}.")
    usable = [name for name in table.index if _is_usable(name) and name not in (method, against)]
    fewer = table.loc[[name for name in usable if table.loc[name, "total"] < own["total"]]]
    if len(fewer):
        best = str(fewer["total"].idxmin())
        takes = f"{_opening(best)} takes {goal} of people there"
        texts.append(f"{takes} {_when(fewer.loc[best])}, the fewest here.")
    return texts


def _is_usable(method: str) -> bool:
    """Whether somebody could use a method: it knows no answers, and sees no test windows."""
    return method not in METHODS or not METHODS[method].given


def _answer(line: pd.Series, method: str, accuracy: float, goal: str, most: str) -> str:
    """How many people reach the accuracy, and after how many windows."""
    who, verb, when = f"{goal} of people", "reach", most
    if line["bound"] != ">":
        when = _when(line)
    elif line["reached"]:
        who = f"only {_percent(line['reached'])} of people"
    else:
        who, verb = "nobody", "reaches"
    texts = [f"{who} {verb} {what}{accuracy:g} {when}." for what in ("an accuracy of ", "")]
    named = [f"With {_name(method)}, {text}" for text in texts]
    return _short(*named, texts[0][0].upper() + texts[0][1:])


def _most(found: pd.DataFrame) -> str:
    """After the largest budget, in words."""
    largest = found["budget"].max()
    if not largest:
        return "without a label"
    total = found.groupby("budget")["n_labelled"].median().max()
    whole = bool((found["budget"] % 1.0 == 0.0).all())
    return f"after {_each({'windows': largest if whole else np.nan, 'total': total})}"


def _each(line: Any) -> str:
    """So many windows of each class, or, where classes are not known, of all together."""
    windows, total = line["windows"], line["total"]
    if not total:
        return "no label"
    if np.isfinite(windows):
        return f"{windows:g} window{'' if windows == 1 else 's'} of each class"
    return f"{total:g} labelled window{'' if total == 1 else 's'}"


def _when(line: Any) -> str:
    """After how many windows; within them, where fewer were not tried."""
    if not line["total"]:
        return "before the first label"
    return f"{'within' if line['bound'] == '<=' else 'after'} {_each(line)}"


def _precisely(line: pd.Series) -> list[str]:
    """How long that takes, its interval, and what was not tried."""
    texts = []
    if line["total"] and np.isfinite(line["seconds"]):
        texts.append(f"That takes {_duration(line['seconds'])}.")
    low, high = line["low"], line["high"]
    # From no label to any number says nothing.
    if np.isfinite(low) and low != high and (low or np.isfinite(high)):
        end = f"to {high:g} windows" if np.isfinite(high) else "or more windows"
        texts.append(f"The 95 % interval is {low:g} {end} of each class.")
    if line["bound"] == "<=" and line["total"]:
        texts.append("Fewer windows were not tried.")
    return texts


def _duration(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"


# -- what the fewest windows are worth ------------------------------------------------------------


def _fewest(means: pd.DataFrame, method: str, against: str | None, *, leads: bool) -> list[str]:
    """Sentences on the smallest budget; the first one is short if it `leads`."""
    found = means[means["balanced_accuracy"].notna()]
    own = found[found["method"] == method]
    cell = ["task", "group", "budget"]
    if against is not None:
        shared = own.merge(found.loc[found["method"] == against, cell], on=cell)
        own, against = (shared, against) if len(shared) else (own, None)
    windows = own.groupby("budget")["n_labelled"].median()
    budget = float(windows.index[int(windows.argmin())])
    own = own[own["budget"] == budget]
    both = means[means["method"].isin([method, against])]
    used = both.merge(own[["task", "group"]], on=["task", "group"])
    noun = "participants" if own["group"].nunique() == len(own) else "tasks"
    line = _line(summarise(used[used["method"] == method]), budget)
    when, mean = _windows(own["n_labelled"], budget), f"{line['mean']:.3f}"
    text = f"{when}, {_name(method)} has a mean balanced accuracy of {mean}."
    if leads:
        text = _short(text, f"{when}, the mean balanced accuracy is {mean}.")
    texts = [text]
    if np.isfinite(line["low"]):
        texts.append(f"Its 95 % interval is {line['low']:.3f} to {line['high']:.3f}.")
    if against is None:
        return [*texts, f"This is the mean over {len(own)} {noun}."]
    n_tasks = len(both[both["budget"] == budget].drop_duplicates(["task", "group"]))
    left_out = f"{n_tasks - len(own)} left out" if n_tasks > len(own) else ""
    texts.append(_difference(used, method, against, budget, noun, left_out))
    return [*texts, *_labels(used, method, against, budget)]


def _line(table: pd.DataFrame, budget: float) -> pd.Series:
    return table[table["budget"] == budget].iloc[0]


def _windows(n_labelled: pd.Series[float], budget: float) -> str:
    least, most = n_labelled.min(), n_labelled.max()
    count = f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    if not budget:
        return "Without a labelled window"
    share = budget_text(budget)
    if budget < 1.0:
        share += " of the smallest class, from each class"
    return f"With {count} labelled windows ({share})"


def _difference(
    used: pd.DataFrame, method: str, against: str, budget: float, noun: str, left_out: str
) -> str:
    table = compare(used, against, [method])
    line = _line(table, budget)
    more = round(line["mean_difference"], 3)
    how_much = f"{abs(more):.3f} {'more' if more > 0.0 else 'less'} than" if more else "as much as"
    test = ""
    if np.isfinite(line["p_holm"]):
        n_tests = int(table["p_value"].notna().sum())
        corrected = f" after Holm's correction for {n_tests} budgets" if n_tests > 1 else ""
        test = f"one-sided p {p_text(line['p_holm'], '= ')}{corrected}"
    equal = f" and equal for {line['ties']}" if line["ties"] else ""
    notes = "; ".join(filter(None, (left_out, test)))
    return (
        f"That is {how_much} {_name(against)}: better for {line['wins']} of "
        f"{line['n_tasks']} {noun}{equal}{f' ({notes})' if notes else ''}."
    )


def _labels(used: pd.DataFrame, method: str, against: str, budget: float) -> list[str]:
    """Sentence on the windows that the other needs for the same, if they were measured."""
    given = used.loc[used["method"] == against, "n_labelled"]
    if is_unequal(budget) or given.min() == given.max():
        return []
    line = _line(labels_saved(used, against, method), budget)
    if line["n_left_out"]:
        return []
    name, needed = _opening(against), f"{math.ceil(line['needed'])} windows"
    if line["bound"] == ">":
        return [f"{name} does not reach that with {needed}."]
    if line["bound"] == "<=":
        return [f"{name} reaches the same with {needed} or fewer."]
    return [f"{name} needs {needed} for the same accuracy."]
