"""Our methods and their variants: what the estimators do for one person, for all splits at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from crossfade.blend import (
    Blend,
    BlendClassifier,
    ConvexBlendClassifier,
    Fit,
    Goal,
    Hierarchical,
    ManyFit,
    PosteriorBlendClassifier,
    convex,
    enough,
    gains_ahead,
    hierarchical,
    posterior,
)
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.fisher import Direction, FisherDiscriminant, slope_of
from crossfade.prior import TaskPrior
from crossfade.risk import Outlook
from crossfade.study._batch import LEVELS, Array, Batch, Predictions
from crossfade.study._estimators import refitted
from crossfade.study._sources import Means, Sources

Rng = np.random.Generator


def _blended(batch: Batch, own: Direction, blend: Blend, rule: BlendClassifier) -> Predictions:
    """Predictions of blends; `rule` is the estimator that does the same for one split."""
    fit = Fit(
        own,
        blend,
        own.midpoint,
        own.scale,
        batch.moments.counts,
        rule.prior,
        rule._played(rule.prior),
    )
    return _mended(_of_fit(batch, fit), batch, own, rule)


def _of_fit(batch: Batch, fit: Fit) -> Predictions:
    """Predictions, probabilities and forecasts of what was learnt of each split."""
    length = np.linalg.vector_norm(fit.blend.omega, axis=-1, keepdims=True)
    unit = fit.blend.omega / np.where(length > 0.0, length, 1.0)
    n_splits, shape = len(batch), (len(batch), batch.X.shape[1])
    coef, midpoint = (np.broadcast_to(one, shape) for one in (unit / fit.scale, fit.midpoint))
    scores = batch.scores(coef, midpoint)
    outlook = Outlook(*(np.broadcast_to(one, (n_splits,)) for one in fit.outlook))
    each = Outlook(*(one[:, None] for one in outlook))
    odds = each.log_odds(scores / np.broadcast_to(fit.deviation, (n_splits,))[:, None])
    ends = [end for level in LEVELS for end in outlook.interval(level)]
    return Predictions.of_two(
        scores, expit(odds), fit.blend.alpha, outlook.accuracy(), np.stack(ends, -1)
    )


def _in_parts(
    batch: Batch, n_laws: int, run: Callable[[Batch], Predictions], n_features: int
) -> Predictions:
    """Predictions of parts of a batch that fit into memory, one after the other."""
    size = max(1, 2_000_000 // (n_laws * (2 * n_features) ** 2))
    starts = range(0, len(batch), size)
    return Predictions.joined(
        [run(batch.part(start, min(start + size, len(batch)))) for start in starts]
    )


def _linear(batch: Batch, own: Direction, omega: Array, gap: Array, variance: Array) -> Predictions:
    """Those of directions in scaled units, with the probabilities of equation 27.

    Along `omega` (n_splits, d) the classes are `gap` (n_splits,) from their midpoint and have
    `variance` (n_splits,) within.
    """
    scores = batch.scores(omega / own.scale, own.midpoint)
    return Predictions.of_two(scores, expit(slope_of(gap, variance)[:, None] * scores))


def _mended(found: Predictions, batch: Batch, own: Direction, rule: Any) -> Predictions:
    """The same, with the estimator's own predictions where a split has no direction of its own.

    Such a split is one whose classes do not differ, or only where nothing varies; estimators know
    what to do with it.
    """
    return refitted(found, np.flatnonzero(own.length == 0.0).tolist(), batch, rule)


# -- ours, and their variants ---------------------------------------------------------------------


def run_target_shrunk(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    own = batch.describe("oas", None)
    omega = own.omega
    gap, variance = np.vecdot(omega, own.nu), np.vecdot(omega, own.sigma.apply(omega))
    found = _mended(_linear(batch, own, omega, gap, variance), batch, own, FisherDiscriminant())
    return found._replace(alpha=np.ones(len(batch)))


def run_convex(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    prior = sources.prior_for("convex")
    rule = ConvexBlendClassifier(prior)
    if not batch.shows_all_classes:
        return _crowd_alone(prior, batch, rule)
    own = batch.describe_for(prior)
    if prior.cancels:
        warnings.warn(
            f"the directions of the {prior.n_tasks} sources cancel out, so that only the target's "
            "own is used",
            CancellingSourcesWarning,
            stacklevel=1,
        )
    return _blended(batch, own, convex(own, prior.crowd), rule)


def run_posterior(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    return _posterior_of(sources.prior_for("posterior"), batch)


def _posterior_of(prior: TaskPrior, batch: Batch) -> Predictions:
    rule = PosteriorBlendClassifier(prior)
    if not batch.shows_all_classes:
        return _crowd_alone(prior, batch, rule)
    own = batch.describe_for(prior)
    return _blended(batch, own, posterior(own, prior.crowd), rule)


def _crowd_alone(
    prior: TaskPrior, batch: Batch, rule: BlendClassifier, *, unlabelled: bool = False
) -> Predictions:
    """The crowd's direction through the posterior middle, where a class has no label."""
    means = _means(prior, batch, unlabelled=unlabelled)
    blend = Blend(prior.mean_direction, np.zeros(()), np.zeros(()))
    verb = rule._played(rule.prior)
    return _of_fit(batch, _fit_of_means(prior, batch, blend, means, verb, hints=unlabelled))


def _means(prior: TaskPrior, batch: Batch, *, unlabelled: bool = False) -> Hierarchical:
    """Posterior class means of each split."""
    assert prior.class_means is not None
    return hierarchical(
        batch.moments,
        prior.class_means.population,
        prior.feature_scale,
        unlabelled=batch.X[batch.splits.test] if unlabelled else None,
        in_a_row=batch.splits.in_a_row,
    )


def _fit_of_means(
    prior: TaskPrior,
    batch: Batch,
    blend: Blend,
    means: Hierarchical,
    verb: str | None,
    *,
    hints: bool,
) -> Fit:
    scale, moments = prior.feature_scale, batch.moments
    return Fit(
        None,
        blend,
        means.midpoint * scale,
        scale,
        moments.counts,
        prior,
        verb,
        means,
        (moments.means[..., 1, :] - moments.means[..., 0, :]) / (2.0 * scale),
        hints=hints,
    )


def run_hierarchical(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    if len(batch.classes) > 2:
        return _many_means(sources.means, batch)
    return _hierarchical_of(sources.prior_for("hierarchical"), batch, unlabelled=False)


def _many_means(known: Means, batch: Batch) -> Predictions:
    """The hierarchical blend of more than two classes."""
    return _in_parts(
        batch,
        4,
        lambda part: _of_many(part, _fit_many(known, part)),
        known.class_means.n_features * len(batch.classes) // 2,
    )


def _fit_many(known: Means, batch: Batch) -> ManyFit:
    population = known.class_means.population
    means = hierarchical(
        batch.moments, population, known.feature_scale, in_a_row=batch.splits.in_a_row
    )
    return ManyFit(means, batch.moments.counts, known)


def _of_many(batch: Batch, fit: ManyFit) -> Predictions:
    """Predictions, probabilities and forecasts of what was learnt of each split."""
    means = fit.means
    rows = batch.X[batch.splits.test] / fit.prior.feature_scale
    scores = rows @ means.coef.mT + means.offset[:, None, :]
    chances = softmax(fit.temperature[:, None, None] * scores, -1)
    outlook = Outlook(*(np.broadcast_to(one, (len(batch),)) for one in fit.outlook))
    ends = [end for level in LEVELS for end in outlook.interval(level)]
    return Predictions.of(
        scores.argmax(-1), chances, chances, means.alpha, outlook.accuracy(), np.stack(ends, -1)
    )


def run_hierarchical_unlabelled(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    return _hierarchical_of(sources.prior_for("hierarchical"), batch, unlabelled=True)


def _hierarchical_of(prior: TaskPrior, batch: Batch, *, unlabelled: bool) -> Predictions:
    def run(part: Batch) -> Predictions:
        return _of_fit(part, _fit_hierarchical(prior, part, unlabelled=unlabelled))

    return _in_parts(batch, 36 if unlabelled else 4, run, prior.n_features)


def _fit_hierarchical(prior: TaskPrior, batch: Batch, *, unlabelled: bool = False) -> Fit:
    means = _means(prior, batch, unlabelled=unlabelled)
    blend = Blend(means.omega, np.zeros(()), means.alpha)
    return _fit_of_means(prior, batch, blend, means, "hierarchical", hints=unlabelled)


#: What a live session asks for if nobody says otherwise.
_USUAL = Goal()


@dataclass(frozen=True)
class Live:
    """The hierarchical blend as in a live session: window by window, until the advice is to stop.

    Classes take turns, as the advice has it with as many windows of each; it is asked after every
    window from the first of each class on, and at the latest ends with the budget.
    """

    goal: Goal = _USUAL

    def __call__(self, sources: Sources, batch: Batch, rng: Rng) -> Predictions:
        """Predictions of each split with the windows that it took."""
        many = len(batch.classes) > 2
        known: Any = sources.means if many else sources.prior_for("hierarchical")
        fit_to: Any = _fit_many if many else _fit_hierarchical
        predict: Any = _of_many if many else _of_fit
        turns = _in_turns(batch.splits.label)
        n_seen, going = len(batch.classes), np.arange(len(batch))
        parts, places = [], []
        while going.size:
            part = _first_windows(batch, going, turns[:n_seen])
            fit = fit_to(known, part)
            counts = np.broadcast_to(part.moments.counts, (len(part), len(batch.classes)))
            stop = enough(fit, gains_ahead(fit, counts, self.goal.ahead), self.goal)
            stop |= n_seen >= turns.size
            if stop.any():
                found = predict(part, fit)._replace(used=np.full(len(part), float(n_seen)))
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


def run_unlabelled(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    prior = sources.prior_for("posterior")
    rule = PosteriorBlendClassifier(prior)

    def run(part: Batch) -> Predictions:
        if not part.shows_all_classes:
            return _crowd_alone(prior, part, rule, unlabelled=True)
        own = part.describe_for(prior)
        middle = _means(prior, part, unlabelled=True).midpoint * prior.feature_scale
        moved = own._replace(means=own.means + (middle - own.midpoint)[:, None, :])
        return _blended(part, moved, posterior(own, prior.crowd), rule)

    return _in_parts(batch, 36, run, prior.n_features)
