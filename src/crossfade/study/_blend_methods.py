"""Our methods, rules of `fit_rule` for all splits of a batch at once, and those of the paper.

The paper has a pseudo-inverse, raw units, balanced sources and a grid of 0.1 for alpha.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from crossfade._typing import Array, Places
from crossfade.blend import Rule, enough, fit_rule
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.fisher import Direction, learn_direction
from crossfade.prior import Law
from crossfade.risk import BlendLaw, least_risk
from crossfade.study._batch import Batch, Columns, measured, of_rule
from crossfade.study._sources import Sources
from crossfade.study._splits import Rng

#: Numbers that one array of class means may hold.
_LARGEST = 2_000_000
#: The paper's grid of alphas, and its draws at each.
GRID = np.linspace(0.0, 1.0, 11)
_N_DRAWS = 100


@dataclass(frozen=True)
class BlendOf:
    """A kind of blend, with or without the test windows as unlabelled ones."""

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
        parts = [batch.part(at, min(at + size, len(batch))) for at in range(0, len(batch), size)]
        rules = [_rule(part, law, self.kind, self.unlabelled) for part in parts]
        found = [
            of_rule(part, rule, forecasts=law is not None)
            for part, rule in zip(parts, rules, strict=True)
        ]
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def _rule(batch: Batch, law: Law | None, kind: str, unlabelled: bool = False) -> Rule:
    """Rules of all splits."""
    return fit_rule(
        batch.moments,
        law,
        kind,
        unlabelled=batch.X[batch.splits.test] if unlabelled else None,
        consecutive=batch.splits.consecutive,
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


def run_target(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    return _printed(batch, as_printed(batch).omega, 1.0)


def run_average_source(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    return _printed(batch, np.tile(sources.paper_crowd.mean_direction, (len(batch), 1)), 0.0)


def run_paper(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    own, crowd = as_printed(batch), sources.paper_crowd
    # As the estimator draws, but in those directions alone in which anything varies.
    law = BlendLaw(own, crowd.mean_direction, crowd.psi("authors")).within_reach()
    alpha = least_risk(law, GRID, "monte_carlo", _N_DRAWS, rng).alpha
    return _printed(batch, _blend(own, crowd.mean_direction, alpha), alpha)


def run_oracle(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    scores = _scores_on_grid(sources, batch)
    best = _best_on(scores, batch.splits.truth)
    return _rows(batch, scores[np.arange(len(best)), best], GRID[best])


def run_oracle_honest(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    scores = _scores_on_grid(sources, batch)
    found, alphas = np.empty((len(batch), scores.shape[-1])), []
    # Each half of the test windows is predicted with the alpha that is best on the other.
    for half, other in (
        (slice(0, None, 2), slice(1, None, 2)),
        (slice(1, None, 2), slice(0, None, 2)),
    ):
        best = _best_on(scores[..., other], batch.splits.truth[other])
        found[:, half] = scores[np.arange(len(best)), best, half]
        alphas.append(GRID[best])
    return _rows(batch, found, np.mean(alphas, axis=0))


def _scores_on_grid(sources: Sources, batch: Batch) -> Array:
    """Scores (n_splits, n_alphas, n_test) of the paper's blend with each alpha of its grid."""
    own, crowd = as_printed(batch), sources.paper_crowd
    blends = np.stack([_blend(own, crowd.mean_direction, alpha) for alpha in GRID.tolist()], 1)
    return batch.scores(blends, batch.midpoint())


def _best_on(scores: Array, truth: Places) -> Places:
    """Place (n_splits,) of the best alpha on windows of known classes, the largest among these."""
    positive, right = scores > 0.0, np.ones(scores.shape[:2])
    for name, sign in ((0, -1.0), (1, 1.0)):
        if (truth == name).any():
            right = right + sign * positive[..., truth == name].mean(-1)
    # Shares of windows differ by more than this, or are equal but for rounding.
    equal = right > right.max(1, keepdims=True) - 1e-9
    return GRID.size - 1 - equal[:, ::-1].argmax(1)


def as_printed(batch: Batch) -> Direction:
    """Target as in the paper; what it scales to a half gap of one is in the form "minus"."""
    return learn_direction(batch.moments, None, np.ones(batch.X.shape[1]), form="minus")


def _printed(batch: Batch, omega: Array, alpha: Array | float) -> Columns:
    """Scores of directions in raw units, at the midpoint of the labelled windows."""
    return _rows(batch, batch.scores(omega, batch.midpoint()), alpha)


def _rows(batch: Batch, scores: Array, alpha: Array | float) -> Columns:
    """The paper has neither probabilities nor forecasts."""
    found = measured(batch.splits.truth, scores[..., None])
    return found | {"alpha": np.broadcast_to(alpha, len(batch))}


def _blend(own: Direction, mu: Array, alpha: Array | float) -> Array:
    """Convex combinations (n_splits, d) of the person's directions and the crowd's."""
    weight = np.asarray(alpha)[..., None]
    return weight * own.omega + (1.0 - weight) * mu
