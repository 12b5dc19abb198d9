"""From a direction to a rule: what every blend of directions has in common."""

from __future__ import annotations

import numpy as np

from crossfade._typing import Array
from crossfade.blend._about import About
from crossfade.blend._means import posterior_means
from crossfade.blend._rule import Newcomer, Rule, rule_of_two
from crossfade.exceptions import PriorMismatchError
from crossfade.fisher import Direction, FisherDiscriminant
from crossfade.prior import Crowd, Law
from crossfade.risk import DirectionTheory, MeansTheory, Slope, Stated, log_odds


def crowd_of(law: Law) -> Crowd:
    """Law of directions; more than two classes have none."""
    if law.directions is None:
        raise PriorMismatchError(
            "This blend needs a prior with directions of two classes. Give one, or use "
            "HierarchicalBlendClassifier."
        )
    return law.directions


def rule_along(
    newcomer: Newcomer,
    law: Law | None,
    person: Direction,
    omega: Array,
    *,
    alpha: Array | float,
    dof: Array | float,
    **details: Array,
) -> Rule:
    """Rule along `omega` (..., d), which follows the person's own direction with trace `dof`."""
    means = person.means
    if law is not None:
        lost = person.length == 0.0
        if lost.any():
            # Classes that do not differ have no direction of their own.
            omega = np.where(lost[..., None], crowd_of(law).mean_direction, omega)
            alpha, dof = np.where(lost, 0.0, alpha), np.where(lost, 0.0, dof)
        if newcomer.unlabelled is not None:
            # The direction stays; the threshold moves to where all windows together suggest it.
            found = posterior_means(newcomer, law).means * law.feature_scale
            means = means + (found.mean(-2) - person.midpoint)[..., None, :]
    contradicts = np.asarray(np.vecdot(omega, person.nu) < 0.0)
    within = None if law is None else law.within
    return rule_of_two(
        newcomer,
        omega,
        means.mean(-2),
        person.scale,
        alpha=alpha,
        means=means,
        theory=DirectionTheory(person, omega, np.asarray(dof), within, contradicts),
        contradicts=contradicts,
        details=details,
    )


def rule_of_crowd(newcomer: Newcomer, law: Law) -> Rule:
    """Rule along the crowd's direction, with the threshold between the posterior class means."""
    omega = crowd_of(law).mean_direction
    found = posterior_means(newcomer, law)
    assert law.class_means is not None
    gap = np.vecdot(omega, found.means[..., 1, :] - found.means[..., 0, :]) / 2.0
    # The class means imply the average covariance within the classes.
    whitened = np.matvec(law.class_means.unwhiten.mT, omega)
    within = np.vecdot(whitened, whitened)
    weights = found.weights()
    _, variance, doubt = found.along((weights[..., 1, :] - weights[..., 0, :]) / 2.0)
    # If the means agree on no direction, any accuracy is as likely as any other.
    share = np.divide(doubt, variance, out=np.ones(np.shape(variance)), where=variance > 0.0)
    means = found.means * law.feature_scale
    return rule_of_two(
        newcomer,
        omega,
        means.mean(-2),
        law.feature_scale,
        alpha=0.0,
        means=means,
        theory=MeansTheory(omega, gap, within, within * share, np.asarray(False)),
    )


def rule_of_discriminant(model: FisherDiscriminant, about: About) -> Rule:
    """Rule of a fitted discriminant, which makes no forecast."""
    second = 0.5 if model.priors is None else float(np.asarray(model.priors)[1])
    slope = np.asarray(model.slope_)
    return Rule(
        classes=model.classes_,
        coef=model.coef_,
        intercept=model.intercept_,
        class_prior=np.array([1.0 - second, second]),
        shift=np.asarray(log_odds(second) / slope),
        alpha=np.ones(()),
        n_labelled=model.class_count_,
        theory=Stated(None, Slope(slope, np.zeros(()))),
        about=about,
    )
