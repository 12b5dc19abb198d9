"""What a blend has learnt of one person, and what follows: rule, forecast and probabilities."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_number
from crossfade.blend._hierarchical import Hierarchical
from crossfade.blend._verb import Blend
from crossfade.exceptions import ContradictionWarning, MissingPartWarning
from crossfade.fisher import Direction
from crossfade.prior import CROWD_DOF, FEWEST, Replay, TaskPrior, rung_of, usable
from crossfade.risk import LEFT_OUT, Forecast, Outlook, expected_accuracy, forecast, shrunk_score


@dataclass(frozen=True, eq=False)
class Fit:
    """All that was learnt of one person, or of a batch; the public attributes follow from it.

    Attributes
    ----------
    person : Direction or None
        The person's own direction; None before both classes have a label.
    blend : Blend
        The blended direction.
    midpoint : ndarray of shape (n_features,)
        Where the threshold lies, in the user's units.
    scale : ndarray of shape (n_features,)
        What features are divided by.
    counts : ndarray of shape (2,)
        Labelled samples of each class.
    prior : TaskPrior or None
        What the crowd knows.
    verb : str or None
        Whose replay tells what a forecast is worth; None for a rule that nobody has played.
    means : Hierarchical or None
        Posterior of the class means, where the rule or its midpoint comes from that.
    nu : ndarray of shape (n_features,) or None
        Half the gap between the class means of the labelled samples, in scaled units; None where
        `person` has it, or where a class has none.
    given_gap : ndarray of shape () or None
        Half the distance of the classes along the direction, if it is the crowd's.
    played : bool
        Whether its settings are those that were replayed.
    hints : bool
        Whether samples without a label were seen.
    """

    person: Direction | None
    blend: Blend
    midpoint: Array
    scale: Array
    counts: Array
    prior: TaskPrior | None = None
    verb: str | None = None
    means: Hierarchical | None = None
    nu: Array | None = None
    given_gap: Array | None = None
    played: bool = True
    hints: bool = False

    @cached_property
    def theory(self) -> Forecast:
        """What theory says of the blend of directions, for equally likely classes."""
        assert self.person is not None
        return forecast(self.person, self.blend.omega, self.blend.dof, self.given_gap)

    @cached_property
    def by_theory(self) -> Outlook:
        """Accuracy as theory alone has it, where nobody has played the newcomer."""
        if self.means is not None:
            gap, variance, doubt = self._by_means
            gap = np.maximum(gap - self._optimism, 0.0) if self.verb == "hierarchical" else gap
            score = gap / np.sqrt(variance)
            spread = np.sqrt(doubt / variance)
            law = Outlook(score, spread, np.asarray(CROWD_DOF), LEFT_OUT)
            return law.not_below_chance(self.contrary)
        assert self.person is not None
        known = self.theory
        score = known.score / np.sqrt(1.0 - known.doubt)
        return Outlook.of_theory(score, known.spread, self.person.dof, *self._doubts)

    @cached_property
    def outlook(self) -> Outlook:
        """Accuracy of this one person, by the record of those who played the newcomer."""
        record = self.record
        if record is None:
            return self.by_theory
        return Outlook(*record.calibrate(self.raw, self.rung)).not_below_chance(self.contrary)

    @property
    def rung(self) -> Array:
        """Labelled samples of each class that it is judged by.

        Samples without a label are worth less than one label of each class, and more than none.
        """
        rung = rung_of(self.counts)
        return np.maximum(rung, np.sqrt(0.5)) if self.hints else rung

    def promise(self, class_prior: float) -> tuple[Array, Array]:
        """Accuracy to expect for such a proportion of the second class, and its error."""
        by_theory = self.person is not None and self.means is None and self.record is None
        if class_prior == 0.5 or not by_theory:
            return self.outlook.accuracy(class_prior), self.outlook.error(class_prior)
        assert self.person is not None
        known = self.theory
        score, spread = shrunk_score(known.score, known.spread, *self._doubts)
        noise = self.person.mean_noise
        return expected_accuracy(score, known.doubt, noise, spread, class_prior)

    @property
    def _doubts(self) -> tuple[Array, Array]:
        """Whether samples contradict the crowd, and how far the direction is the person's own."""
        assert self.person is not None
        own = np.clip(self.blend.dof / np.maximum(self.person.rank, 1), 0.0, 1.0)
        return self.contrary, np.asarray(own)

    @property
    def contrary(self) -> Array:
        """Whether the labelled samples lie the other way round along the rule, of shape (...).

        Only where both classes have one: what the crowd says of the other class contradicts no one.
        """
        nu = self.nu if self.person is None else self.person.nu
        if nu is None:
            return np.asarray(False)
        along = np.vecdot(self.blend.omega, nu)
        return np.asarray((self.counts > 0.0).all(-1) & (along < 0.0))

    @property
    def record(self) -> Replay | None:
        """What forecasts of this rule were worth, if anybody has played the newcomer."""
        if not self.played or self.verb is None or self.prior is None:
            return None
        return usable(self.prior.replay, self.verb)

    @property
    def raw(self) -> Array:
        """Forecast as those who played the newcomer made it."""
        if self.verb == "hierarchical" and self.means is not None:
            return self.means.accuracy()
        if self.means is not None:
            return self.by_theory.accuracy()
        return self.theory.accuracy

    @cached_property
    def deviation(self) -> Array:
        """Deviation of samples within their class along the unit direction, of shape (...).

        The crowd's and the person's own, the latter by its degrees of freedom: that of few samples
        alone would make probabilities too sure.
        """
        omega = self.blend.omega
        length = np.linalg.vector_norm(omega, axis=-1)
        if self.means is not None:
            variance = self._by_means[1] + self._by_means[2]
        else:
            assert self.person is not None
            variance = self.theory.variance
            spectrum = None if self.prior is None else self.prior.within_spectrum
            if spectrum is not None:
                share = self.person.dof / (self.person.dof + CROWD_DOF)
                own = np.vecdot(omega, self.person.sigma.apply(omega))
                theirs = np.vecdot(omega, spectrum.apply(omega))
                variance = (1.0 - share) * theirs + share * own
        safe = np.where(length > 0.0, length, 1.0)
        return np.asarray(np.sqrt(np.maximum(variance, 1e-300)) / safe)

    @cached_property
    def _by_means(self) -> tuple[Array, Array, Array]:
        """Half gap, variance within and doubt of the gap, by the posterior of the class means."""
        means = self.means
        assert means is not None
        own = means.along((means.weights[..., 1, :] - means.weights[..., 0, :]) / 2.0)
        if self.verb == "hierarchical":
            return own
        # Along another direction than that of the means themselves.
        _, variance, doubt = own
        omega = self.blend.omega
        gap = np.vecdot(omega, means.means[..., 1, :] - means.means[..., 0, :]) / 2.0
        assert self.prior is not None
        assert self.prior.class_means is not None
        # The class means imply the average covariance within the classes.
        whitened = np.matvec(self.prior.class_means.population.unwhiten.mT, omega)
        within = np.vecdot(whitened, whitened)
        # Where the means themselves have no direction, any accuracy is as likely as any other.
        share = np.divide(doubt, variance, out=np.ones(np.shape(variance)), where=variance > 0.0)
        return np.asarray(gap), np.asarray(within), np.asarray(within * share)

    @cached_property
    def _said(self) -> list[str]:
        """What was said already."""
        return []

    @property
    def _optimism(self) -> Array:
        """What noise adds to the gap of class means of a released prior (equation 69).

        Its law over class means is as wide as the noise, so that the posterior believes whatever
        few samples say: with h* = h + noise of covariance C, w'h* is too large by tr(M^-1 C), and
        what is left of it is that of James and Stein, (p - 2) / p times as much.
        """
        means, prior = self.means, self.prior
        if means is None or prior is None or prior.release is None or prior.class_means is None:
            return np.zeros(())
        release, sums, alpha = prior.release, prior.class_means, means.alpha
        assert sums.clip is not None
        population = sums.population
        # Of half the gap; what has no label adds nothing, since alpha is then that of the crowd.
        seen = np.where(self.counts > 0.0, self.counts, np.inf)
        own = population.mean_noise(seen).sum(-1) / 4.0
        crowd = (release.noise / sums.n_people * sums.clip) ** 2 / 2.0
        # In whitened features, where it is much the same in all directions.
        crowd = crowd * (population.whiten**2).sum() / population.whiten.shape[-1]
        noise = (alpha**2 * own)[..., None, None] * means.sigma
        noise = noise + ((1.0 - alpha) ** 2 * crowd)[..., None, None] * np.eye(noise.shape[-1])
        added = np.trace(np.linalg.solve(means.scatter.mean(-3), noise), axis1=-2, axis2=-1)
        rank = means.sigma.shape[-1]
        return np.asarray(added * max(rank - 2, 0) / rank)

    def warn(self, stacklevel: int = 4) -> None:
        """Say what the forecast lacks, and where samples contradict the crowd."""
        if self.prior is None:
            return
        unknown = self.played and self.verb is not None and self.record is None
        if unknown and not self._said:
            # Whoever asks for forecast, error and interval is told once.
            self._said.append("replay")
            warn_without_replay(self.prior.replay is not None, stacklevel + 1)
        if self.contrary and self.outlook.mean < 0.0:
            warnings.warn(
                "The labelled samples contradict the crowd: along the blended direction their "
                "classes lie the other way round, so that the forecast is below chance. Check that "
                "the labels mean the same as the prior's, or label more samples.",
                ContradictionWarning,
                stacklevel=stacklevel,
            )


def check_level(level: object) -> float:
    """Probability of an interval; people write 90 for 0.9."""
    try:
        return check_number("level", level, 0.0, 1.0)
    except ValueError as reason:
        if isinstance(level, int | float) and 1.0 < level <= 100.0:
            raise ValueError(f"{reason} For {level:g} % pass {level / 100.0:g}.") from None
        raise


def warn_without_means(how: str, stacklevel: int) -> None:
    """Say that a prior knows directions only."""
    warnings.warn(
        "This prior holds no class means, so that the posterior blend of directions is used: "
        "knowing where the middle of the classes lies would help with few labels. Build the prior "
        f"with {how}.",
        MissingPartWarning,
        stacklevel=stacklevel + 1,
    )


def warn_without_replay(tried: bool, stacklevel: int) -> None:
    """Say that nobody, or too few people, have tried what a forecast of this prior is worth."""
    found = (
        f"fewer than {FEWEST} people with enough windows for a replay"
        if tried
        else "no replay of what became of others"
    )
    remedy = (
        "Build the prior from more people."
        if tried
        else "Build the prior from tasks, with TaskPrior.from_tasks or `crossfade prior build`; a "
        "released one leaves it out, since everybody's record depends on all others."
    )
    warnings.warn(
        f"This prior holds {found}, so the forecast is theory's alone and its interval wide. "
        f"{remedy}",
        MissingPartWarning,
        stacklevel=stacklevel,
    )
