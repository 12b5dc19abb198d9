"""The methods that a study compares: one record each, and how it predicts.

A method is a function of the target's sources, a batch of its splits and a random generator. What
follows from the sources alone is kept by them, so that it is computed once for a target. A new
method is a function and a record at the end of this file; commands, verdicts, figures and reports
read the records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone

from crossfade.blend import (
    Blend,
    ConvexBlendClassifier,
    Hierarchical,
    MulticlassBlend,
    PosteriorBlendClassifier,
    convex,
    hierarchical,
    meet,
    mixture,
    per_task,
    posterior,
)
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._fit import Fit
from crossfade.blend._many_means import ManyFit
from crossfade.exceptions import CancellingSourcesWarning
from crossfade.fisher import FisherDiscriminant
from crossfade.fisher._direction import Direction
from crossfade.fisher._linear import slope_of
from crossfade.prior._multiclass import MulticlassPrior
from crossfade.prior._release import Release, noise_scale, repaired, sensitivity
from crossfade.prior._task_prior import TaskPrior
from crossfade.risk._choose import least_risk
from crossfade.risk._law import BlendLaw
from crossfade.risk._outlook import Outlook
from crossfade.study._evaluate import (
    LEVELS,
    Batch,
    FitEach,
    Predictions,
    fit_and_predict,
    outputs_of,
)
from crossfade.study._sources import Means, Sources, lda

Array = NDArray[np.float64]
Rng = np.random.Generator

#: The paper's grid of alphas, and its draws at each.
GRID = np.linspace(0.0, 1.0, 11)
_N_DRAWS = 100
#: Privacy budget of "private".
EPSILON, DELTA = 1.0, 1e-5


class Sees(Flag):
    """What a method is given."""

    LABELLED = auto()
    """Labelled windows of the target."""
    UNLABELLED = auto()
    """Its test windows, all together, without their labels."""
    TEST_LABELS = auto()
    """Their labels."""
    SUMS = auto()
    """Sums over the sources: no row of anybody's windows, and no direction of a single one."""
    DIRECTIONS = auto()
    """The direction of each source."""
    WINDOWS = auto()
    """Windows of the sources."""


@dataclass(frozen=True)
class Method:
    """One method of a study.

    `label` is what people read and `text` what it does. `family` is "paper" (its five
    methods), "ours", "usual" (what one would take otherwise), "variant", "classes" (for more than
    two) or "own" (an estimator of the user's). In a verdict the first method with the role "new" is
    compared with the first of the role "rival", by `rank`; a "bound" is not for comparison. `many`
    says whether it can tell more than two classes apart, `zero` whether it can predict before each
    class has a labelled window, and `fewest` the windows of each that it needs otherwise; with
    fewer it has no rows.
    """

    name: str
    label: str
    run: Callable[[Sources, Batch, Rng], Predictions]
    family: str
    sees: Sees
    colour: str
    marker: str
    text: str
    role: str = "new"
    rank: int = 9
    many: bool = False
    zero: bool = False
    fewest: int = 1

    @property
    def spoken(self) -> str:
        """What it is called within a sentence: "the posterior blend"."""
        first = self.label[0]
        return f"the {first.lower()}{self.label[1:]}" if first.isupper() else self.label

    @property
    def given(self) -> str:
        """What it knows that nobody has when a calibration ends; empty for most."""
        if Sees.TEST_LABELS in self.sees:
            return "knows the answers"
        return "sees unlabelled test windows" if Sees.UNLABELLED in self.sees else ""


def own_method(name: str, estimator: Any) -> Method:
    """Method of an estimator of the user's, which has no look of its own."""
    text = "An estimator that was fitted to the labelled windows."
    run = FitEach(estimator)
    return Method(name, name, run, "own", Sees.LABELLED, "", "", text, many=True)


# -- the paper's five: pseudo-inverse, raw units, balanced sources, grid of 0.1 -------------------


def _run_target(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    return _printed(batch, as_printed(batch).omega, 1.0)


def _run_average_source(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    return _printed(batch, np.tile(sources.paper_prior.mean_direction, (len(batch), 1)), 0.0)


def _run_paper(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    own, prior = as_printed(batch), sources.paper_prior
    # As the estimator draws, but in those directions alone in which anything varies.
    law = BlendLaw(own, prior.mean_direction, prior.crowd.psi("authors")).within_reach()
    alpha = least_risk(law, GRID, "monte_carlo", _N_DRAWS, rng).alpha
    return _printed(batch, convex(own, prior.crowd, alpha=alpha).omega, alpha)


def _run_oracle(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    scores = _scores_on_grid(sources, batch)
    best = _best_on(scores, batch.splits.truth)
    return Predictions.of_two(scores[np.arange(len(best)), best], alpha=GRID[best])


def _run_oracle_honest(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
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
    return Predictions.of_two(found, alpha=np.mean(alphas, axis=0))


def _scores_on_grid(sources: Sources, batch: Batch) -> Array:
    """Scores (n_splits, n_alphas, n_test) of the paper's blend with each alpha of its grid."""
    own, crowd = as_printed(batch), sources.paper_prior.crowd
    blends = np.stack([convex(own, crowd, alpha=alpha).omega for alpha in GRID.tolist()], 1)
    return batch.scores(blends, batch.midpoint())


def _best_on(scores: Array, truth: NDArray[np.intp]) -> NDArray[np.intp]:
    """Place (n_splits,) of the best alpha on windows of known classes, the largest among these."""
    positive, right = scores > 0.0, np.ones(scores.shape[:2])
    for name, sign in ((0, -1.0), (1, 1.0)):
        if (truth == name).any():
            right = right + sign * positive[..., truth == name].mean(-1)
    best: NDArray[np.intp] = GRID.size - 1 - right[:, ::-1].argmax(1)
    return best


def _run_random_alpha(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    alpha = rng.choice(GRID, len(batch))
    blend = convex(as_printed(batch), sources.paper_prior.crowd, alpha=alpha)
    return _printed(batch, blend.omega, alpha)


def as_printed(batch: Batch) -> Direction:
    """Target as in the paper; what it scales to a half gap of one is in the form "minus"."""
    return batch.describe(None, np.ones(batch.X.shape[1]), form="minus")


def _printed(batch: Batch, omega: Array, alpha: Array | float) -> Predictions:
    """Those of directions in raw units; the paper has neither probabilities nor forecasts."""
    return Predictions.of_two(batch.scores(omega, batch.midpoint()), alpha=alpha)


# -- blends: what the estimators do for one person, for all splits at once ------------------------


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
    return _refitted(found, np.flatnonzero(own.length == 0.0).tolist(), batch, rule)


def _refitted(found: Predictions, places: list[int], batch: Batch, rule: Any) -> Predictions:
    """The same, with the predictions of an estimator for the splits at some places."""
    if not places:
        return found
    parts = [fit_and_predict(clone(rule), batch.part(place, place + 1)) for place in places]
    return found.patched(places, Predictions.joined(parts))


# -- ours, and their variants ---------------------------------------------------------------------


def _run_target_shrunk(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    own = batch.describe("oas", None)
    omega = own.omega
    gap, variance = np.vecdot(omega, own.nu), np.vecdot(omega, own.sigma.apply(omega))
    found = _mended(_linear(batch, own, omega, gap, variance), batch, own, FisherDiscriminant())
    return found._replace(alpha=np.ones(len(batch)))


def _run_convex(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
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


def _run_posterior(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
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
        unlabelled=batch.X[batch.unlabelled] if unlabelled else None,
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
    scale, counts = prior.feature_scale, batch.moments.counts
    return Fit(None, blend, means.midpoint * scale, scale, counts, prior, verb, means, hints=hints)


def _run_hierarchical(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    if len(batch.classes) > 2:
        return _many_means(sources.means, batch)
    return _hierarchical_of(sources.prior_for("hierarchical"), batch, unlabelled=False)


def _many_means(known: Means, batch: Batch) -> Predictions:
    """The hierarchical blend of more than two classes."""
    population = known.class_means.population

    def run(part: Batch) -> Predictions:
        means = hierarchical(
            part.moments, population, known.feature_scale, in_a_row=part.splits.in_a_row
        )
        fit = ManyFit(means, part.moments.counts, known)
        rows = part.X[part.splits.test] / known.feature_scale
        scores = rows @ means.coef.mT + means.offset[:, None, :]
        chances = softmax(fit.temperature[:, None, None] * scores, -1)
        outlook = Outlook(*(np.broadcast_to(one, (len(part),)) for one in fit.outlook))
        ends = [end for level in LEVELS for end in outlook.interval(level)]
        return Predictions.of(
            scores.argmax(-1),
            chances,
            chances,
            means.alpha,
            outlook.accuracy(),
            np.stack(ends, -1),
        )

    return _in_parts(batch, 4, run, known.class_means.n_features * len(batch.classes) // 2)


def _run_hierarchical_unlabelled(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    return _hierarchical_of(sources.prior_for("hierarchical"), batch, unlabelled=True)


def _hierarchical_of(prior: TaskPrior, batch: Batch, *, unlabelled: bool) -> Predictions:
    def run(part: Batch) -> Predictions:
        means = _means(prior, part, unlabelled=unlabelled)
        blend = Blend(means.omega, np.zeros(()), means.alpha)
        fit = _fit_of_means(prior, part, blend, means, "hierarchical", hints=unlabelled)
        return _of_fit(part, fit)

    return _in_parts(batch, 36 if unlabelled else 4, run, prior.n_features)


def _run_mixture(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    prior = sources.mixture
    rule = PosteriorBlendClassifier(prior)
    own = batch.describe_for(prior.pooled)
    return _blended(batch, own, mixture(own, prior.crowds), rule)


def _run_convex_mixture(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    prior = sources.mixture
    own = batch.describe_for(prior.pooled)
    crowd, _ = meet(own, prior.crowds)
    return _blended(batch, own, convex(own, crowd), ConvexBlendClassifier(prior))


def _run_per_task(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    prior = sources.prior
    own = batch.describe_for(prior)
    rule = ConvexBlendClassifier(prior, weights="per-task")
    return _blended(batch, own, per_task(own, np.asarray(prior.directions)), rule)


def _run_private(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    exact = sources.prior
    noise = noise_scale(sensitivity(exact.n_tasks, False), EPSILON, DELTA)
    return _posterior_of(as_if_released(exact, noise, rng), batch)


def as_if_released(exact: TaskPrior, noise: float, rng: Rng) -> TaskPrior:
    """What ``exact.released`` gives, but that its noise follows from the study's seed."""
    size = exact.n_features
    moved = rng.normal(0.0, noise, (size, size))
    # Outer products are released as a triangle, what is off the diagonal times the root of two.
    moved = np.triu(moved, 1) / np.sqrt(2.0) + np.diag(np.diagonal(moved)) / 2.0
    sums = exact.direction_sum + rng.normal(0.0, noise, size), exact.outer_sum + moved + moved.T
    direction_sum, outer_sum = repaired(*sums, exact.n_tasks, noise)
    return TaskPrior(
        n_tasks=exact.n_tasks,
        direction_sum=direction_sum,
        outer_sum=outer_sum,
        feature_scale=exact.feature_scale,
        classes=exact.classes,
        scale_learnt=True,
        release=Release(EPSILON, DELTA, noise, scale_covered=False),
    )


def _run_unlabelled(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
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


# -- what one would take otherwise, and more than two classes -------------------------------------


#: Least ratio of the eigenvalues of a covariance whose inverse does not depend on how it is found.
_WELL_CONDITIONED = 1e-6


def _run_lda(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    """scikit-learn's LDA for all splits at once; by itself where its own rounding decides.

    The covariance is the mean over the classes of (1 - s) E + s I, in units of their deviations,
    with E the covariance of the standardised windows x and Ledoit and Wolf's s = min(1, b / c),
    b = (mean |x|^4 - |E|^2) / n, c = |E - I|^2.
    """
    n_classes, n_features = len(batch.classes), batch.X.shape[1]
    means, scale = np.empty((2, len(batch), n_classes, n_features))
    within = np.empty((len(batch), n_classes, n_features, n_features))
    X = batch.X[batch.splits.labelled]
    for name in range(n_classes):
        own = X[:, batch.splits.label == name]
        means[:, name], scale[:, name] = own.mean(1), own.std(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = (own - means[:, name, None]) / scale[:, name, None]
            plain = rows.mT @ rows / own.shape[1]
            square = (plain**2).sum((-2, -1))
            noise = (((rows**2).sum(-1) ** 2).mean(-1) - square) / own.shape[1]
            weight = np.minimum(noise / (square - n_features), 1.0)[..., None, None]
        within[:, name] = (1.0 - weight) * plain + weight * np.eye(n_features)
    sigma = (within * scale[..., None] * scale[..., None, :]).mean(1)
    able = (scale > 1e-6 * np.abs(means)).all((1, 2)) & np.isfinite(sigma).all((1, 2))
    sigma[~able] = 0.0
    values = np.linalg.eigvalsh(sigma)
    able = values[:, 0] > _WELL_CONDITIONED * values[:, -1]
    sigma[~able] = np.eye(n_features)
    coef = np.linalg.solve(sigma[:, None], means[..., None])[..., 0]
    scores = batch.scores(coef, np.zeros((len(batch), n_features)))
    scores = (scores - 0.5 * np.vecdot(means, coef)[..., None]).mT
    if n_classes == 2:
        scores = scores[..., 1] - scores[..., 0]
        found = Predictions.of_two(scores, expit(scores))
    else:
        chances = softmax(scores, -1)
        found = Predictions.of(scores.argmax(-1), chances, chances)
    return _refitted(found, np.flatnonzero(~able).tolist(), batch, lda(n_classes))


def _run_pooled(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    test = batch.splits.test
    predicted, scores, chances = outputs_of(sources.pooled_rule, batch.X, batch.classes)
    return Predictions.of(predicted[test], scores[test], chances[test])


def _run_lda_pooled(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    rule = sources.centred_rule
    coef = np.broadcast_to(rule.coef_, (len(batch), *rule.coef_.shape))
    scores = batch.scores(coef, batch.midpoint()).mT + rule.intercept_
    if len(batch.classes) == 2:
        return Predictions.of_two(scores[..., 0], expit(scores[..., 0]))
    chances = softmax(scores, -1)
    return Predictions.of(scores.argmax(-1), chances, chances)


#: Windows of each class from which on probabilities are calibrated, parts that these are cut into,
#: and inverse temperatures.
_FEWEST_TO_CALIBRATE, _N_PARTS, _SLOPES = 4, 5, np.geomspace(0.01, 4.0, 49)


def _run_lda_calibrated(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    """LDA with p = softmax(s log p), s being best for labelled windows that it was not fitted to.

    These are cut into parts, each of which is predicted from the others; their targets are Platt's,
    (n + 1) / (n + 2) for the own one of n windows.
    """
    found = _run_lda(sources, batch, rng)
    label, labelled = batch.splits.label, batch.splits.labelled
    counts = np.bincount(label)
    if counts.min() < _FEWEST_TO_CALIBRATE:
        return found
    # Parts are runs, since neighbours are alike.
    place = np.concatenate([np.arange(count) for count in counts])
    part = place * min(_N_PARTS, int(counts.min())) // counts[label]
    losses = np.zeros((len(batch), _SLOPES.size))
    for name in np.unique(part):
        held = part == name
        splits = batch.splits._replace(
            labelled=labelled[:, ~held],
            label=label[~held],
            test=labelled[:, held],
            truth=label[held],
        )
        odds = _log_odds(_run_lda(sources, replace(batch, splits=splits), rng))
        own = (counts[label[held]] + 1.0) / (counts[label[held]] + 2.0)
        target = np.broadcast_to((1.0 - own)[:, None] / (len(counts) - 1.0), odds.shape[1:]).copy()
        target[np.arange(len(own)), label[held]] = own
        for column, slope in enumerate(_SLOPES):
            losses[:, column] -= (target * log_softmax(slope * odds, -1)).sum((-2, -1))
    slope = _SLOPES[losses.argmin(1)][:, None, None]
    columns = slice(None) if len(counts) > 2 else slice(1, None)
    return found._replace(probability=softmax(slope * _log_odds(found), -1)[..., columns])


def _log_odds(found: Predictions) -> Array:
    """Logarithms (n_splits, n_test, n_classes) of the odds of the classes, up to a constant."""
    if found.scores.shape[-1] == 1:
        return np.concatenate([np.zeros_like(found.scores), found.scores], -1)
    return np.log(np.maximum(found.probability, 1e-300))


def _run_pairwise(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    # Two classes are one pair, and the rest of one is the other.
    if len(batch.classes) == 2:
        return _run_posterior(sources, batch, rng)
    return _coupled(sources.pairs, batch)


def _run_one_vs_rest(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    if len(batch.classes) == 2:
        return _run_posterior(sources, batch, rng)
    return _coupled(sources.rests, batch)


def _coupled(prior: MulticlassPrior, batch: Batch) -> Predictions:
    known: Any = prior
    rule = PosteriorBlendClassifier(known, in_a_row=batch.splits.in_a_row)
    estimator = MulticlassBlend(rule, prior.strategy)
    parts = [batch.part(place, place + 1) for place in range(len(batch))]
    return Predictions.joined([fit_and_predict(clone(estimator), part) for part in parts])


# -- the records ----------------------------------------------------------------------------------

_SUMS, _DIRECTIONS = Sees.LABELLED | Sees.SUMS, Sees.LABELLED | Sees.SUMS | Sees.DIRECTIONS

_RECORDS = (
    Method(
        name="target",
        label="Person alone",
        run=_run_target,
        family="paper",
        sees=Sees.LABELLED,
        colour="#d55e00",
        marker="v",
        text="The person alone, as in the paper: Fisher's discriminant of the labelled windows, "
        "with a pseudo-inverse.",
        role="rival",
        rank=1,
    ),
    Method(
        name="average-source",
        label="Crowd alone",
        run=_run_average_source,
        family="paper",
        sees=_SUMS,
        colour="#0072b2",
        marker="^",
        text="The crowd alone, as in the paper: the mean direction of the sources, at the midpoint "
        "of the labelled windows.",
        role="rival",
        rank=4,
    ),
    Method(
        name="paper",
        label="Paper's blend",
        run=_run_paper,
        family="paper",
        sees=_SUMS,
        colour="#009e73",
        marker="s",
        text="Algorithm 1 of the paper: alpha times the person's direction plus 1 − alpha times "
        "the crowd's. Of the alphas 0, 0.1, ..., 1 it takes that of least expected risk, over 100 "
        "draws of both directions.",
        rank=3,
    ),
    Method(
        name="oracle",
        label="Oracle alpha",
        run=_run_oracle,
        family="paper",
        sees=_SUMS | Sees.UNLABELLED | Sees.TEST_LABELS,
        colour="#7f7f7f",
        marker="x",
        text="The paper's blend with the alpha that is best on the test windows. Nobody can know "
        "it: it is a bound.",
        role="bound",
    ),
    Method(
        name="oracle-honest",
        label="Honest oracle",
        run=_run_oracle_honest,
        family="variant",
        sees=_SUMS | Sees.UNLABELLED | Sees.TEST_LABELS,
        colour="#5a5a5a",
        marker="8",
        text="The paper's blend with the alpha that is best on every second test window, for the "
        "others, and the reverse: what the oracle is worth without its luck.",
        role="bound",
        rank=10,
    ),
    Method(
        name="random-alpha",
        label="Random alpha",
        run=_run_random_alpha,
        family="paper",
        sees=_SUMS,
        colour="#b0a08a",
        marker="+",
        text="The paper's blend with one of its alphas, drawn at random.",
        role="rival",
        rank=5,
    ),
    Method(
        name="target-shrunk",
        label="Person alone (shrunk)",
        run=_run_target_shrunk,
        family="ours",
        sees=Sees.LABELLED,
        colour="#e69f00",
        marker="<",
        text="The person alone, with a shrunk covariance (oracle approximating shrinkage).",
        role="rival",
        rank=2,
    ),
    Method(
        name="convex",
        label="Convex blend",
        run=_run_convex,
        family="ours",
        sees=_SUMS,
        colour="#56b4e9",
        marker="D",
        text="The paper's blend with a shrunk covariance, and with the alpha of least expected "
        "risk among all from 0 to 1, found without draws.",
        rank=3,
        zero=True,
    ),
    Method(
        name="posterior",
        label="Posterior blend",
        run=_run_posterior,
        family="ours",
        sees=_SUMS,
        colour="#000000",
        marker="o",
        text="The crowd as a distribution: its mean direction plus a matrix times (own direction − "
        "mean direction). The matrix is the scatter between people, divided by the sum of that "
        "scatter and the noise of the own direction.",
        rank=1,
        zero=True,
    ),
    Method(
        name="hierarchical",
        label="Hierarchical blend",
        run=_run_hierarchical,
        family="ours",
        sees=_SUMS,
        colour="#117733",
        marker="h",
        text="The crowd as a distribution over class means: what the labelled windows say of this "
        "person's means is weighed against what the crowd knows of them, so that it predicts from "
        "no label on.",
        rank=0,
        many=True,
        zero=True,
    ),
    Method(
        name="hierarchical-unlabelled",
        label="Hierarchical blend (unlabelled)",
        run=_run_hierarchical_unlabelled,
        family="ours",
        sees=_SUMS | Sees.UNLABELLED,
        colour="#44aa99",
        marker="H",
        text="The same, with the test windows, without their labels and in unknown proportions, as "
        "one more observation of the class means.",
        rank=2,
        zero=True,
    ),
    Method(
        name="posterior-unlabelled",
        label="Posterior blend (unlabelled)",
        run=_run_unlabelled,
        family="ours",
        sees=_SUMS | Sees.UNLABELLED,
        colour="#332288",
        marker="p",
        text="The posterior blend, with its threshold at the middle that the class means of the "
        "crowd, the labelled windows and the test windows, without their labels, suggest.",
        rank=2,
        zero=True,
    ),
    Method(
        name="lda",
        label="scikit-learn's LDA",
        run=_run_lda,
        family="usual",
        sees=Sees.LABELLED,
        colour="#cc79a7",
        marker="P",
        text="scikit-learn's linear discriminant analysis with automatic shrinkage and equally "
        "likely classes, fitted to the labelled windows: what one would take otherwise.",
        role="rival",
        rank=0,
        many=True,
        fewest=2,
    ),
    Method(
        name="pooled",
        label="Pooled LDA",
        run=_run_pooled,
        family="usual",
        sees=Sees.WINDOWS,
        colour="#882255",
        marker="*",
        text="scikit-learn's linear discriminant analysis, fitted to the windows of all sources "
        "and to none of the person's.",
        role="rival",
        rank=3,
        many=True,
        zero=True,
    ),
    Method(
        name="lda-pooled",
        label="Pooled LDA (centred)",
        run=_run_lda_pooled,
        family="variant",
        sees=Sees.LABELLED | Sees.WINDOWS,
        colour="#44aa99",
        marker="d",
        text="scikit-learn's linear discriminant analysis, fitted to the windows of all sources, "
        "each less the mean of the class means of its person; the person's own windows are centred "
        "at the mean of the class means of the labelled ones.",
        role="rival",
        rank=6,
        many=True,
    ),
    Method(
        name="lda-calibrated",
        label="scikit-learn's LDA (calibrated)",
        run=_run_lda_calibrated,
        family="variant",
        sees=Sees.LABELLED,
        colour="#e78ac3",
        marker="H",
        text="scikit-learn's linear discriminant analysis, its probabilities calibrated by a "
        "temperature that suits labelled windows it was not fitted to, from four of each class on.",
        role="rival",
        rank=7,
        many=True,
        fewest=2,
    ),
    Method(
        name="mixture",
        label="Mixture blend",
        run=_run_mixture,
        family="variant",
        sees=_DIRECTIONS,
        colour="#0b6e4f",
        marker="1",
        text="The posterior blend with a crowd of several kinds of people: a mixture of von "
        "Mises-Fisher laws, its components weighed by how well they explain the own direction.",
    ),
    Method(
        name="convex-mixture",
        label="Convex mixture",
        run=_run_convex_mixture,
        family="variant",
        sees=_DIRECTIONS,
        colour="#c07a00",
        marker="2",
        text="The convex blend with such a mixture.",
    ),
    Method(
        name="per-task",
        label="Per-task blend",
        run=_run_per_task,
        family="variant",
        sees=_DIRECTIONS,
        colour="#b3446c",
        marker="3",
        text="A convex blend of the own direction with every single source, each with a weight of "
        "its own; sources have to share their directions for it.",
    ),
    Method(
        name="private",
        label="Private posterior",
        run=_run_private,
        family="variant",
        sees=_SUMS,
        colour="#4b4b9a",
        marker="4",
        text="The posterior blend with a prior that was released under differential privacy, "
        "epsilon = 1 and delta = 0.00001; its noise is drawn anew for every person and budget.",
    ),
    Method(
        name="pairwise",
        label="Pairwise blend",
        run=_run_pairwise,
        family="classes",
        sees=_SUMS,
        colour="#1b7837",
        marker="X",
        text="The posterior blend of each pair of classes, their probabilities coupled; of two "
        "classes there is one pair.",
        many=True,
    ),
    Method(
        name="one-vs-rest",
        label="One-vs-rest blend",
        run=_run_one_vs_rest,
        family="classes",
        sees=_SUMS,
        colour="#8c510a",
        marker=">",
        text="The posterior blend of each class against all others together, their probabilities "
        "coupled; of two classes it is the posterior blend.",
        many=True,
    ),
)
#: All methods that have a name.
METHODS = {one.name: one for one in _RECORDS}
#: Names of the paper's methods, and of those that a study compares: the paper's, ours, the usual.
PAPER = tuple(one.name for one in _RECORDS if one.family == "paper")
COMPARED = tuple(one.name for one in _RECORDS if one.family in ("paper", "ours", "usual"))


def by_role(role: str) -> list[Method]:
    """Methods of one role, the first in a verdict first."""
    return sorted((one for one in _RECORDS if one.role == role), key=lambda one: one.rank)
