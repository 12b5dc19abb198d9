"""Methods that are rules of `fit_rule`, ours and the paper's, for all splits of a batch at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossfade._typing import Places
from crossfade.blend import Rule, enough, fit_rule
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.prior import Law
from crossfade.study._batch import Batch, Columns, of_rule
from crossfade.study._sources import Sources
from crossfade.study._splits import Rng

#: Numbers that one array of class means may hold.
_LARGEST = 2_000_000


@dataclass(frozen=True)
class BlendOf:
    """A kind of blend, with or without the test windows as unlabelled ones.

    The paper's blend is the convex one as its authors ran it: with a pseudo-inverse, raw units,
    balanced sources and Algorithm 1, or a given alpha. It has neither probabilities nor forecasts.
    """

    kind: str
    unlabelled: bool = False
    paper: bool = False
    alpha: float | None = None

    def __call__(self, sources: Sources, batch: Batch, rng: Rng) -> Columns:
        """Scores of parts of a batch that fit into memory, one after the other."""
        options: dict[str, Any] = {}
        if self.paper:
            prior = sources.paper_prior
            law: Law | None = prior.law
            if self.alpha != 1.0:
                # The prior refuses directions that cancel out.
                mean = replace(prior.crowd, mean_direction=prior.mean_direction)
                law = replace(prior.law, directions=mean)
            options = {"recipe": "authors", "alpha": self.alpha, "random_state": rng}
        else:
            law = None if self.kind == "fisher" else sources.law_for(self.kind)
            if self.kind == "convex" and law and law.directions and law.directions.cancels:
                warnings.warn(
                    "the sources' directions cancel out, so that only the target's own is used",
                    CancellingSourcesWarning,
                    stacklevel=1,
                )
        size = len(batch)
        if self.kind == "hierarchical" or self.unlabelled:
            # The posterior of the class means mixes so many laws, of K d numbers each.
            n_laws = 36 if self.unlabelled else 4
            size = max(1, _LARGEST // (n_laws * (len(batch.classes) * batch.X.shape[1]) ** 2))
        parts = [batch.part(at, min(at + size, len(batch))) for at in range(0, len(batch), size)]
        rules = [_rule(part, law, self.kind, self.unlabelled, **options) for part in parts]
        found = [
            of_rule(part, rule, forecasts=law is not None, scores_only=self.paper)
            for part, rule in zip(parts, rules, strict=True)
        ]
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def _rule(
    batch: Batch, law: Law | None, kind: str, unlabelled: bool = False, **options: Any
) -> Rule:
    """Rules of all splits."""
    return fit_rule(
        batch.moments,
        law,
        kind,
        unlabelled=batch.X[batch.splits.test] if unlabelled else None,
        consecutive=batch.splits.consecutive,
        **options,
    )


def run_live(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    """The hierarchical blend, window by window, classes in turn, until the advice is to stop."""
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


def _in_turns(label: Places) -> Places:
    """Places of labelled windows (n,) in the order in which classes take turns."""
    rank = np.empty(label.size, np.intp)
    for name in np.unique(label).tolist():
        own = label == name
        rank[own] = np.arange(own.sum())
    return np.lexsort([label, rank])


def _first_windows(batch: Batch, splits: Places, places: Places) -> Batch:
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
