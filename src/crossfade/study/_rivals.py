"""Baselines: what people use without Crossfade.

scikit-learn's discriminant of the person's windows, of everybody's, and with calibrated
probabilities; logistic regression that is fine-tuned from the crowd's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from crossfade._typing import Array
from crossfade.fisher import ClassMoments
from crossfade.study._batch import Batch, Columns, of_odds
from crossfade.study._sources import Sources
from crossfade.study._splits import Rng


class Centred(NamedTuple):
    """Windows (n, d) of people less the middle of their class means, and the mean (d,) of these."""

    X: Array
    y: NDArray[Any]
    middle: Array


def lda(n_classes: int) -> LinearDiscriminantAnalysis:
    """scikit-learn's discriminant with automatic shrinkage, its classes equally likely."""
    equal = np.full(n_classes, 1.0 / n_classes)
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)


#: Least ratio of the eigenvalues of a covariance whose inverse does not depend on how it is found.
_WELL_CONDITIONED = 1e-6


def run_lda(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    """scikit-learn's LDA of the labelled windows."""
    return of_odds(batch.splits.truth, lda_odds(batch))


def lda_odds(batch: Batch) -> Array:
    """Log odds (n_splits, n_test, n_classes), up to a constant, for all splits at once."""
    # The covariance is the mean over the classes of (1 - s) E + s I, in units of their deviations,
    # with E the covariance of the standardised windows and s Ledoit and Wolf's weight.
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
    odds = batch.scores(coef, np.zeros((len(batch), n_features)))
    odds = (odds - 0.5 * np.vecdot(means, coef)[..., None]).mT
    # Where rounding decides, scikit-learn's own decides.
    for place in np.flatnonzero(~able).tolist():
        rule = lda(n_classes).fit(X[place], batch.splits.label)
        odds[place] = _per_class(rule.decision_function(batch.X[batch.splits.test[place]]))
    return odds


def _per_class(odds: Array) -> Array:
    """Log odds (..., n_classes) of scores that may have no axis for two classes."""
    return np.stack([np.zeros_like(odds), odds], -1) if odds.ndim == 1 else odds


def centred_windows(sources: Sources) -> Centred:
    """Windows of the sources, each less the middle of its person."""
    X, label, task = sources.in_windows
    kept, middles = np.zeros(len(X), bool), []
    for name in np.unique(task):
        own = task == name
        moments = ClassMoments.of(X[own], label[own], n_classes=len(sources.classes))
        # One that lacks a class has no middle.
        if moments.counts.all():
            kept |= own
            middles.append(moments.means.mean(0))
            X[own] -= middles[-1]
    return Centred(X[kept], sources.classes[label[kept]], np.mean(middles, axis=0))


def centred_rule(sources: Sources) -> LinearDiscriminantAnalysis:
    """One discriminant of these."""
    known = sources.once(centred_windows)
    return lda(len(sources.classes)).fit(known.X, known.y)


def run_lda_pooled(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    """Discriminant of the sources, at the person's middle; while that is unknown, the crowd's."""
    rule = sources.once(centred_rule)
    middle = np.tile(sources.once(centred_windows).middle, (len(batch), 1))
    if batch.shows_all_classes:
        middle = batch.midpoint()
    coef = np.broadcast_to(rule.coef_, (len(batch), *rule.coef_.shape))
    odds = batch.scores(coef, middle).mT + rule.intercept_
    if odds.shape[-1] == 1:
        odds = np.concatenate([np.zeros_like(odds), odds], -1)
    return of_odds(batch.splits.truth, odds)


def logistic_of_crowd(sources: Sources) -> tuple[Array, Array]:
    """Logistic regression of the sources, of two classes: scale (d,), weights, offset (d + 1,)."""
    known, scale = sources.once(centred_windows), sources.feature_scale
    rule = LogisticRegression(max_iter=1000).fit(known.X / scale, known.y)
    return scale, np.append(rule.coef_[0], rule.intercept_)


def run_logistic(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    """Weights w of least sum of log losses + |w - crowd|^2 / 2, by Newton's steps."""
    scale, crowd = sources.once(logistic_of_crowd)
    middle = batch.midpoint()
    rows = (batch.X[batch.splits.labelled] - middle[:, None, :]) / scale
    rows = np.concatenate([rows, np.ones((*rows.shape[:2], 1))], -1)
    truth = batch.splits.label.astype(np.float64)
    w, eye = np.tile(crowd, (len(batch), 1)), np.eye(len(crowd))
    for _ in range(_N_STEPS):
        p = expit((rows @ w[..., None])[..., 0])
        slope = ((p - truth)[:, None, :] @ rows)[:, 0] + w - crowd
        bend = (rows * (p * (1.0 - p))[..., None]).mT @ rows + eye
        step = np.linalg.solve(bend, slope[..., None])[..., 0]
        # Far from the minimum a whole step may overshoot.
        w -= step / np.maximum(1.0, np.linalg.vector_norm(step, axis=-1, keepdims=True) / 2.0)
    odds = batch.scores(w[:, :-1] / scale, middle) + w[:, -1:]
    return of_odds(batch.splits.truth, np.stack([np.zeros_like(odds), odds], -1))


#: Newton's steps, of which a few would do.
_N_STEPS = 30


#: Parts that labelled windows are cut into to calibrate probabilities, and inverse temperatures.
_N_PARTS, _SLOPES = 5, np.geomspace(0.01, 4.0, 49)


def run_lda_calibrated(sources: Sources, batch: Batch, rng: Rng) -> Columns:
    """LDA with softmax(s log p), s by cross-validation of the labelled windows, Platt's targets."""
    label, labelled = batch.splits.label, batch.splits.labelled
    counts = np.bincount(label)
    # Parts are runs, since neighbours are alike.
    place = np.concatenate([np.arange(count) for count in counts])
    part = place * min(_N_PARTS, int(counts.min())) // counts[label]
    losses = np.zeros((len(batch), _SLOPES.size))
    for name in np.unique(part):
        held = part == name
        splits = batch.splits._replace(
            labelled=labelled[:, ~held], label=label[~held], test=labelled[:, held]
        )
        odds = lda_odds(replace(batch, splits=splits))
        own = (counts[label[held]] + 1.0) / (counts[label[held]] + 2.0)
        target = np.broadcast_to((1.0 - own)[:, None] / (len(counts) - 1.0), odds.shape[1:]).copy()
        target[np.arange(len(own)), label[held]] = own
        for column, slope in enumerate(_SLOPES):
            losses[:, column] -= (target * log_softmax(slope * odds, -1)).sum((-2, -1))
    slopes = _SLOPES[losses.argmin(1)][:, None, None]
    return of_odds(batch.splits.truth, lda_odds(batch), slopes)
