"""Our methods: what `fit_rule` makes of one person, for all splits of a batch at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crossfade.blend import Rule, enough, fit_rule
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.prior import Law
from crossfade.study._batch import Batch
from crossfade.study._scores import Columns, of_rule
from crossfade.study._sources import Sources

Rng = np.random.Generator

#: Numbers that one array of class means may hold.
_LARGEST = 2_000_000


@dataclass(frozen=True)
class BlendOf:
    """A kind of blend, with or without the test windows as unlabelled ones.

    The kind "fisher" is the person alone.
    """

    kind: str
    unlabelled: bool = False

    def __call__(self, sources: Sources, batch: Batch, rng: Rng) -> Columns:
        """Scores of parts of a batch that fit into memory, one after the other."""
        law = None if self.kind == "fisher" else sources.law_for(self.kind)
        if self.kind == "convex" and law and law.directions and law.directions.cancels:
            warnings.warn(
                "the directions of the sources cancel out, so that only the target's own is used",
                CancellingSourcesWarning,
                stacklevel=1,
            )
        size = len(batch)
        if self.kind == "hierarchical" or self.unlabelled:
            # The posterior of the class means mixes so many laws, of K d numbers each.
            n_laws = 36 if self.unlabelled else 4
            size = max(1, _LARGEST // (n_laws * (len(batch.classes) * batch.X.shape[1]) ** 2))
        if not batch.has_directions:
            size = 1
        parts = [batch.part(at, min(at + size, len(batch))) for at in range(0, len(batch), size)]
        rules = [_rule(part, law, self.kind, self.unlabelled) for part in parts]
        found = [
            of_rule(part, rule, forecasts=law is not None)
            for part, rule in zip(parts, rules, strict=True)
        ]
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def _rule(batch: Batch, law: Law | None, kind: str, unlabelled: bool = False) -> Rule:
    """Rules of all splits; of a single one without a direction as an estimator has it."""
    one = len(batch) == 1 and not batch.has_directions
    windows = batch.X[batch.splits.test[0] if one else batch.splits.test] if unlabelled else None
    return fit_rule(
        batch.moments_alone if one else batch.moments,
        law,
        kind,
        unlabelled=windows,
        consecutive=batch.splits.consecutive,
    )


def run_live(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    """The hierarchical blend as in a live session: window by window, until the advice is to stop.

    Classes take turns; the advice is asked after every window from the first of each class on, and
    the budget is the end.
    """
    law = sources.law_for("hierarchical")
    turns = _in_turns(batch.splits.label)
    n_seen, going = len(batch.classes), np.arange(len(batch))
    rows: Columns = {}
    while going.size:
        part = _first_windows(batch, going, turns[:n_seen])
        rule = _rule(part, law, "hierarchical")
        stop = enough(rule) | (n_seen >= turns.size)
        if stop.any():
            for name, values in of_rule(part, rule).items():
                rows.setdefault(name, np.empty(len(batch)))[going[stop]] = values[stop]
            rows.setdefault("n_labelled", np.empty(len(batch), int))[going[stop]] = n_seen
        going, n_seen = going[~stop], n_seen + 1
    return rows


def _in_turns(label: NDArray[np.intp]) -> NDArray[np.intp]:
    """Places of labelled windows (n,) in the order in which classes take turns."""
    rank = np.empty(label.size, np.intp)
    for name in np.unique(label).tolist():
        own = label == name
        rank[own] = np.arange(own.sum())
    return np.lexsort([label, rank])


def _first_windows(batch: Batch, splits: NDArray[np.intp], places: NDArray[np.intp]) -> Batch:
    """Some splits of a batch, with some of their labelled windows."""
    known = batch.splits
    places = np.sort(places)
    return replace(
        batch,
        splits=known._replace(
            labelled=known.labelled[splits][:, places],
            label=known.label[places],
            test=known.test[splits],
        ),
    )
