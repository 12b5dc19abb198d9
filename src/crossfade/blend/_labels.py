"""What more labelled samples of the same person would bring (equation 46)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crossfade._typing import Array
from crossfade._validate import HEAVIEST
from crossfade.blend._classifier import BlendClassifier
from crossfade.blend._convex import ConvexBlendClassifier, convex
from crossfade.blend._fit import check_level
from crossfade.blend._many_means import PairsFit
from crossfade.blend._multiclass import MulticlassBlend, stacked
from crossfade.blend._posterior import Path, path_of
from crossfade.fisher import Direction, Spectrum, worth_of_runs
from crossfade.prior import Replay, rung_of
from crossfade.risk import Forecast, Outlook, expected_accuracy, forecast, shrunk_score

#: The target's separation is never taken for less than this share of what its samples show.
_LEAST_SHARE = 0.2


class LabelForecast(NamedTuple):
    """Accuracy to expect with so many labelled samples.

    Attributes
    ----------
    n_per_class : ndarray of shape (n_budgets,)
        Labelled samples of each class; of unequal numbers their harmonic mean.
    accuracy, error : ndarray of shape (n_budgets,)
        Expected accuracy of this person, and its standard error.
    lower, upper : ndarray of shape (n_budgets,)
        Interval that holds the accuracy as often as `level` says.
    budgets : tuple
        The numbers as they were given.
    """

    n_per_class: Array
    accuracy: Array
    error: Array
    lower: Array
    upper: Array
    budgets: tuple[Any, ...] = ()


def forecast_labels(
    blend: BlendClassifier | MulticlassBlend,
    n_per_class: ArrayLike | Sequence[Any],
    *,
    level: float = 0.9,
) -> LabelForecast:
    """What other numbers of labelled samples of the same target would bring (equations 46 and 60).

    With a prior that has replayed its people, they tell: those who looked like this one with as
    many samples, and what became of them with more. Without, theory does.

    Parameters
    ----------
    blend : BlendClassifier or MulticlassBlend
        A fitted blend.
    n_per_class : array-like of shape (n_budgets,), or sequence of int and of tuples of int
        Labelled samples of each class; a tuple has those of the first class, of the second, and
        so on. Fewer than there are already bring a warning.
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    LabelForecast
        Expected accuracies with their errors and intervals, for classes as frequent as
        ``blend.class_prior_``; with as many samples as there are it is
        ``blend.expected_accuracy_``.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfade import PosteriorBlendClassifier, TaskPrior, forecast_labels
    >>> rng = np.random.default_rng(0)
    >>> prior = TaskPrior.from_projections(rng.normal([3, 0, 0], 1, (30, 3)), normalize=True)
    >>> X = rng.normal(size=(8, 3)) + np.repeat([[-1, 0, 0], [1, 0, 0]], 4, axis=0)
    >>> blend = PosteriorBlendClassifier(prior).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> now, more = forecast_labels(blend, [4, 40]).accuracy
    >>> bool(more > now)
    True
    """
    if not isinstance(blend, BlendClassifier | MulticlassBlend):
        raise TypeError(f"blend must be one of Crossfade's; got {type(blend).__name__}.")
    level = check_level(level)
    if isinstance(blend, MulticlassBlend):
        return _of_pairs(blend, n_per_class, level)
    check_is_fitted(blend, "coef_", msg=blend._not_fitted())
    if isinstance(blend._fit, PairsFit):
        return _of_pairs(blend._fit.blend, n_per_class, level)
    record = blend._fit.record
    given, budgets = _budgets(n_per_class, _least(record), blend._moments.counts)
    rungs = np.asarray(rung_of(budgets), np.float64)
    outlook, accuracy, error = _law(blend, rungs)
    lower, upper = outlook.interval(level, blend._second())
    return LabelForecast(rungs, accuracy, error, lower, upper, given)


def _of_pairs(blend: MulticlassBlend, n_per_class: Any, level: float) -> LabelForecast:
    """The same for many classes: what the pairs would gain, coupled (equation 40)."""
    pairs = blend._forecasting_pairs()
    if len(pairs.fits) == 1:
        [rule] = pairs.rules.values()
        return forecast_labels(rule, n_per_class, level=level)
    least = max(_least(fit.record) for fit in pairs.fits)
    given, budgets = _budgets(n_per_class, least, blend._counts)
    places = zip(*np.triu_indices(len(blend.classes_), 1), strict=True)
    of_pairs = stacked(
        [
            _law(rule, np.asarray(rung_of(budgets[:, mine]), np.float64))[0]
            for rule, mine in zip(pairs.rules.values(), places, strict=True)
        ]
    )
    each = [Outlook(*(part[:, place] for part in of_pairs)) for place in range(len(budgets))]
    overall = stacked([pairs.law(one) for one in each])
    error = np.stack([one.error().mean() for one in each])
    lower, upper = overall.interval(level)
    return LabelForecast(rung_of(budgets), overall.accuracy(), error, lower, upper, given)


def _least(record: Replay | None) -> float:
    """Fewest labels of each class that can be told of."""
    return 2.0 if record is None else 0.0


def _law(blend: BlendClassifier, budgets: Array) -> tuple[Outlook, Array, Array]:
    """Law of the probit with so many labels (n_budgets,), the accuracy, and its error."""
    fit, class_prior = blend._fit, blend._second()
    if fit.record is None:
        return _by_theory(blend, budgets, class_prior)
    now = np.broadcast_to(fit.rung, budgets.shape)
    raw = np.broadcast_to(fit.raw, budgets.shape)
    outlook = Outlook(*fit.record.calibrate(raw, now, budgets))
    outlook = outlook.not_below_chance(fit.contrary, len(blend.classes_))
    return outlook, outlook.accuracy(class_prior), outlook.error(class_prior)


def _budgets(n_per_class: Any, least: float, counts: Array) -> tuple[tuple[Any, ...], Array]:
    """Budgets as given, and samples of each class (n_budgets, n_classes).

    `counts` are the samples that there are.
    """
    n_classes = len(counts)
    example = (24, *(2,) * (n_classes - 1))
    try:
        array = isinstance(n_per_class, np.ndarray)
        given = tuple(n_per_class.tolist() if array else n_per_class)
        numbers = [np.asarray(one, np.float64) for one in given]
        if any(one.shape not in ((), (n_classes,)) for one in numbers):
            raise ValueError(f"a budget is a number, or one for each of {n_classes} classes")
        each = np.stack([np.broadcast_to(one, (n_classes,)) for one in numbers])
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(
            "n_per_class must be a list of numbers of samples of each class, or of tuples with one "
            f"for each of {n_classes} classes, such as [4, 8, {example}]; got "
            f"{n_per_class!r}."
        ) from reason
    if not np.isfinite(each).all() or each.min() < least:
        raise ValueError(
            f"n_per_class must be numbers of at least {least:g} samples of each class; got "
            f"{n_per_class!r}."
        )
    if ((each > 0.0) & (each < 1.0)).any():
        raise ValueError(
            f"n_per_class must be numbers of samples, not shares of them; got {n_per_class!r}."
        )
    if each.max() > HEAVIEST:
        raise ValueError(
            f"n_per_class must be at most {HEAVIEST:g} samples of each class; got {n_per_class!r}."
        )
    fewer = (each < counts - 1e-9).any(1)
    if fewer.any():
        warnings.warn(
            f"The blend has {[round(float(one), 3) for one in counts]} labelled samples of its "
            f"classes, and {given[int(fewer.argmax())]!r} takes some of them back. Ask for at "
            "least as many, or ask a blend that start() has begun.",
            UserWarning,
            stacklevel=4,
        )
    return given, each


def _by_theory(
    blend: BlendClassifier, budgets: Array, class_prior: float
) -> tuple[Outlook, Array, Array]:
    """What theory alone says: today's forecast, and what better directions add to it."""
    # Of many classes only those who played know.
    prior = None if len(blend.classes_) > 2 else blend._oriented(blend.prior_)
    refusal = "What more labels would bring cannot be told of a blend"
    if prior is None:
        raise ValueError(
            f"{refusal} other than with a TaskPrior, or with a prior that has "
            "replayed its people: TaskPrior.from_tasks does."
        )
    person = blend._fit.person
    if blend._fit.means is not None and person is not None:
        raise ValueError(
            f"{refusal} of class means other than with a prior that has replayed its people: "
            "TaskPrior.from_tasks does."
        )
    if person is None or blend.target_projection_ is None:
        raise ValueError(f"{refusal} without labelled samples of both classes.")
    # The noise of equation 5 without the part that a learnt scale adds.
    path = path_of(
        person._replace(noise=_noise(person, person.length**2, person.mean_noise, person.dof)),
        prior.crowd,
    )
    crowd, strength = None, np.ones(())
    if isinstance(blend, ConvexBlendClassifier):
        # Without a curve there was nothing to choose, nor will there be: alpha was given, or the
        # crowd has no direction to speak of.
        alpha = blend.alpha_ if np.isnan(blend.risks_).all() else None
        crowd = _ConvexCrowd(prior.crowd.mean_direction, alpha)
        made = convex(person, prior.crowd, alpha=blend.alpha_)
    else:
        strength = np.asarray(min(getattr(blend, "strength_", 1.0), 1e12))
        made = path.at(strength)
    promise = forecast(person, made.omega, made.dof)
    own = np.clip(made.dof / np.maximum(person.rank, 1), 0.0, 1.0)
    return _more_labels(
        person, made.omega, promise, path, strength, budgets, own, crowd, class_prior
    )


class _ConvexCrowd(NamedTuple):
    """The crowd in a convex blend."""

    mu: Array  # (..., d): its direction
    alpha: float | None  # weight of the person, if it does not depend on the samples


def _more_labels(
    person: Direction,
    omega: Array,
    promise: Forecast,
    path: Path,
    strength: Array,
    budgets: Array,
    own: Array,
    crowd: _ConvexCrowd | None = None,
    class_prior: float = 0.5,
) -> tuple[Outlook, Array, Array]:
    """Forecast for other numbers of samples: today's, and what better directions add to it.

    The law of the probit, the accuracy for a proportion of the second class, and its error.
    """
    square = person.length**2
    inverse = person.sigma.inverse()
    square = np.maximum(square - person.mean_noise * inverse.trace(), _LEAST_SHARE * square)
    # Classes that do not differ teach nothing about what more samples would bring.
    square = np.maximum(square, 1e-200)
    later, freedom = _worth(person.correlation, budgets)
    noises = [_noise(person, square, person.mean_noise, person.dof)]
    noises += [_noise(person, square, *each) for each in zip(later, freedom, strict=True)]
    reach = _reach(path, person.sigma, strength, np.stack(noises, -1), crowd, person.rank)
    gain = np.sqrt(square)[..., None] * (reach[..., 1:] - reach[..., :1])
    with np.errstate(divide="ignore", invalid="ignore"):
        now = np.nan_to_num(promise.gap / np.sqrt(promise.variance))
        optimism = np.vecdot(omega, person.nu) - promise.gap
        rank = np.maximum(person.rank, 1)
        doubt = np.nan_to_num(2.0 * optimism**2 / (promise.variance * rank))[..., None]
    # As in the forecast, but that the threshold will be as noisy as so many samples make it.
    noise = person.mean_noise
    doubt = np.minimum(doubt, 0.5)
    own_score = now[..., None] + gain
    score = own_score / np.sqrt(np.maximum(1.0 + later - noise - doubt, 0.5))
    spread = np.sqrt(noise + doubt + score**2 / (2.0 * person.dof))
    contrary = np.asarray(np.vecdot(omega, person.nu) < 0.0)[..., None]
    dof = np.broadcast_to(person.dof[..., None], score.shape)
    outlook = Outlook.of_theory(score, spread, dof, contrary, own[..., None])
    if class_prior == 0.5:
        return outlook, outlook.accuracy(), outlook.error()
    own_score, left = shrunk_score(own_score, spread, contrary, own[..., None])
    accuracy, error = expected_accuracy(own_score, doubt, noise, left, class_prior, 0.0, later)
    # Where classes hardly differ the correction for bold thresholds would make the curve fall.
    now, left = shrunk_score(now[..., None], spread, contrary, own[..., None])
    today, _ = expected_accuracy(now, doubt, noise, left, class_prior)
    return outlook, np.maximum(accuracy, np.where(later <= noise, today, 0.0)), error


def _worth(correlation: Array | None, budgets: Array) -> tuple[Array, Array]:
    """Noise of the half gap and degrees of freedom, with so many samples of each class in a row."""
    noise, freedom = 0.5 / budgets, np.maximum(2.0 * budgets - 2.0, 1.0)
    if correlation is not None and correlation.size:
        for place, count in enumerate(budgets):
            worth = worth_of_runs(correlation, np.full(2, round(count)))
            noise[place] *= worth.crowding[0]
            freedom[place] = max(freedom[place] * worth.dof, 1.0)
    return noise, freedom


def _noise(
    person: Direction, square: Array, of_gap: Array | float, freedom: Array | float
) -> Array:
    """Noise a of the direction (equation 5), given that of the gap and the squared length."""
    length = np.where(person.length > 0.0, person.length, np.inf)
    along = np.vecdot(person.nu, person.omega) / length
    means = of_gap / np.maximum(square, 1e-200)
    noise: Array = means + (1.0 - person.shrinkage) ** 2 * along / freedom
    return noise


def _reach(
    path: Path,
    sigma: Spectrum,
    strength: Array,
    noise: Array,
    crowd: _ConvexCrowd | None,
    rank: Array,
) -> Array:
    """Mean score of blends made with noises of shape (..., n_budgets), for a gap of length one.

    What is known of the best direction is its posterior so far. Coordinates that the path does
    not list are all alike: they are added as one that counts as often as there are such.
    """
    often = np.append(np.ones(path.values.shape[-1]), path.n_rest)
    values = np.concatenate([path.values, path.rest[..., None]], -1)
    own = np.concatenate([path.own, np.zeros_like(path.rest)[..., None]], -1)
    drift = np.matvec(path.back.mT, sigma.apply(path.mean))
    drift = np.concatenate([drift, np.zeros_like(path.rest)[..., None]], -1)
    level = np.vecdot(path.mean, sigma.apply(path.mean))
    pull = strength[..., None] * values
    doubt = path.noise[..., None] / (pull + path.noise[..., None])
    best = (1.0 - doubt) * own
    square = best**2 + strength[..., None] * doubt
    if crowd is not None:
        whole = level + (often * (2.0 * drift * best + values * square)).sum(-1)
        likely = path.mean + np.matvec(path.back, best[..., :-1])
        return _convex_reach(sigma, whole, likely, noise * rank[..., None], crowd)
    pull, best, square = pull[..., None, :], best[..., None, :], square[..., None, :]
    drift, values, noise = drift[..., None, :], values[..., None, :], noise[..., None]
    taken = pull / (pull + noise)
    gap = often * ((1.0 + taken) * drift * best + values * taken * square)
    variance = often * (2.0 * taken * drift * best + taken**2 * (values * square + noise))
    level = level[..., None]
    # Where neither crowd nor person has a direction, nothing is reached.
    reach: Array = (level + gap.sum(-1)) / np.sqrt(np.maximum(level + variance.sum(-1), 1e-300))
    return reach


def _convex_reach(
    sigma: Spectrum, whole: Array, likely: Array, noise: Array, crowd: _ConvexCrowd
) -> Array:
    """The same for convex blends, each with the alpha that reaches furthest."""
    shared = np.vecdot(crowd.mu, sigma.apply(likely))[..., None]
    theirs = np.vecdot(crowd.mu, sigma.apply(crowd.mu))[..., None]
    whole = whole[..., None]
    if crowd.alpha is None:
        apart = np.maximum(whole * theirs - shared**2, 0.0)
        pulled = np.maximum(noise * shared, 0.0)
        alpha = apart / np.maximum(apart + pulled, 1e-300)
    else:
        alpha = np.full_like(noise, crowd.alpha)
    gap = alpha * whole + (1.0 - alpha) * shared
    variance = alpha**2 * (whole + noise) + 2.0 * alpha * (1.0 - alpha) * shared
    variance = variance + (1.0 - alpha) ** 2 * theirs
    reach: Array = gap / np.sqrt(np.maximum(variance, 1e-300))
    return reach
