"""Our methods and their variants: what the estimators do for one person, for all splits at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crossfade.blend import Rule, enough, fit_rule, places_of
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.fisher import FisherDiscriminant
from crossfade.prior import Law, usable_records
from crossfade.study._batch import LEVELS, Batch, Predictions
from crossfade.study._estimators import refitted
from crossfade.study._sources import Sources

Rng = np.random.Generator


@dataclass(frozen=True)
class BlendOf:
    """A blend of the table of kinds, with or without the test windows as unlabelled ones."""

    kind: str
    unlabelled: bool = False

    def __call__(self, sources: Sources, batch: Batch, rng: Rng) -> Predictions:
        """Predictions of parts of a batch that fit into memory, one after the other."""
        law = _law(sources, self.kind, batch)
        if self.kind == "convex" and law.directions is not None and law.directions.cancels:
            warnings.warn(
                "the directions of the sources cancel out, so that only the target's own is used",
                CancellingSourcesWarning,
                stacklevel=1,
            )
        size = len(batch)
        if self.kind == "hierarchical" or self.unlabelled:
            # The posterior of the class means mixes so many laws, of K d numbers each.
            n_laws = 36 if self.unlabelled else 4
            size = max(1, 2_000_000 // (n_laws * (law.n_classes * batch.X.shape[1]) ** 2))
        parts = [batch.part(at, min(at + size, len(batch))) for at in range(0, len(batch), size)]
        return Predictions.joined(
            [_predictions(one, _rule(one, law, self.kind, self.unlabelled)) for one in parts]
        )


def _law(sources: Sources, kind: str, batch: Batch) -> Law:
    """What the sources say about the target."""
    n_classes = len(batch.classes)
    if n_classes == 2:
        return sources.prior_for(kind).law
    known = sources.means
    means, records = known.class_means.population, usable_records(known.replay)
    return Law(n_classes, known.feature_scale, class_means=means, records=records)


def _rule(batch: Batch, law: Law | None, kind: str, unlabelled: bool = False) -> Rule:
    """Rules of all splits."""
    return fit_rule(
        batch.moments,
        law,
        kind,
        unlabelled=batch.X[batch.splits.test] if unlabelled else None,
        consecutive=batch.splits.in_a_row,
    )


def _predictions(batch: Batch, rule: Rule) -> Predictions:
    """Predictions, probabilities and forecasts of the rules of all splits."""
    places = batch.splits.test[..., None]
    scores = np.take_along_axis(rule.scores(batch.X), places, -2)
    chances = rule.probabilities(scores)
    ends = [end for level in LEVELS for end in rule.interval(level)]
    two = len(rule.classes) == 2
    return Predictions.of(
        places_of(scores),
        scores if two else chances,
        chances[..., 1:] if two else chances,
        rule.alpha,
        rule.expected_accuracy,
        np.stack([np.broadcast_to(end, (len(batch),)) for end in ends], -1),
    )


def run_target_shrunk(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    rule = _rule(batch, None, "fisher")
    found = _predictions(batch, rule)
    found = found._replace(
        expected=np.full(len(batch), np.nan), interval=np.full((len(batch), 4), np.nan)
    )
    # Where the classes differ only in what does not vary, the estimator knows what to do.
    lost = np.flatnonzero(~rule.coef.any((-2, -1))).tolist()
    return refitted(found, lost, batch, FisherDiscriminant())


@dataclass(frozen=True)
class Live:
    """The hierarchical blend as in a live session: window by window, until the advice is to stop.

    Classes take turns, as the advice has it with as many windows of each; it is asked after every
    window from the first of each class on, and at the latest ends with the budget.
    """

    def __call__(self, sources: Sources, batch: Batch, rng: Rng) -> Predictions:
        """Predictions of each split with the windows that it took."""
        law = _law(sources, "hierarchical", batch)
        turns = _in_turns(batch.splits.label)
        n_seen, going = len(batch.classes), np.arange(len(batch))
        parts, places = [], []
        while going.size:
            part = _first_windows(batch, going, turns[:n_seen])
            rule = _rule(part, law, "hierarchical")
            stop = enough(rule) | (n_seen >= turns.size)
            if stop.any():
                found = _predictions(part, rule)._replace(used=np.full(len(part), float(n_seen)))
                parts.append(Predictions._make(one[stop] for one in found))
                places.append(going[stop])
            going, n_seen = going[~stop], n_seen + 1
        order = np.concatenate(places).argsort()
        return Predictions._make(one[order] for one in Predictions.joined(parts))


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
