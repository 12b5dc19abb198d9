"""Ledgers: every release of some people, what all of them spent together, and what may be spent.

A ledger is a JSON file beside the prior's. Releases of the same people compose exactly
(`_gaussian`): those with mu_1, mu_2, ... are as good as one with the root of the sum of squares.
People join and leave between two priors, so that the sum is kept for every digest of a task, and
the largest counts. Where a prior does not hold the digests of all its tasks, anybody may be in it,
and it counts for everybody.

The checksum finds damage, cuts and careless editing. It is no signature, and nobody notices a
ledger that was deleted, or replaced by an older copy.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfade._files import digest_of, is_intact, json_of, read_whole, write_whole
from crossfade._validate import check_number
from crossfade.exceptions import UncountedReleaseWarning
from crossfade.prior._gaussian import separation, spent_epsilon
from crossfade.prior._parts import names_of
from crossfade.prior._release import check_budget

if TYPE_CHECKING:
    from crossfade.prior._release import Release
    from crossfade.prior._task_prior import TaskPrior

#: Digests of each task of a prior; None where not all are known, and anybody may be in it.
Whose = list[list[str]] | None

_FORMAT, _VERSION = "crossfade-ledger", 2
_LARGEST = 1 << 26
#: What rounding may do to a budget that is spent to the last; results have a larger margin.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class _Entry:
    """One release: when, of how many people, of what, with which budget and noise."""

    date: str
    n_people: int
    holds: list[str]
    epsilon: float
    delta: float
    noise: float
    scale_covered: bool
    #: Of this release and all before it, at `at_delta`, by whoever spent most.
    spent_epsilon: float
    at_delta: float
    assumed_disjoint: bool = False

    @property
    def square(self) -> float:
        """Square of how far apart the release sets two people."""
        return separation(self.epsilon, self.delta) ** 2


@dataclass(frozen=True)
class _Content:
    """What a ledger says."""

    budget: tuple[float, float] | None = None
    releases: tuple[_Entry, ...] = ()
    #: Sum of mu^2 of the releases that anybody may be in, and by digest of the others.
    everybody: float = 0.0
    people: Mapping[str, float] = field(default_factory=dict)

    def spent(self, whose: Whose = None) -> float:
        """How far apart all releases together set those who spent most, of all or of some."""
        each = self.people.values() if whose is None else self._each(whose)
        return math.sqrt(self.everybody + max(each, default=0.0))

    def counts(self, whose: Whose) -> bool:
        """Whether some of these people are, or may be, in a release."""
        if not self.releases:
            return False
        return whose is None or self.everybody > 0.0 or any(self._each(whose))

    def after(self, whose: Whose, square: float) -> dict[str, Any]:
        """Sums of mu^2 with one release more."""
        if whose is None:
            return {"everybody": self.everybody + square, "people": self.people}
        sums = zip(whose, self._each(whose), strict=True)
        more = {name: known + square for names, known in sums for name in names}
        return {"everybody": self.everybody, "people": {**self.people, **more}}

    def _each(self, whose: list[list[str]]) -> list[float]:
        return [max(self.people.get(name, 0.0) for name in names) for names in whose]


class Ledger:
    """File of all releases of some people, and of the budget that they may not exceed.

    Parameters
    ----------
    path : str or path-like
        Where it is, or will be with the first release.
    budget : float or None, default=None
        Epsilon that all releases of the same people may spend together, at the delta of the release
        with which the budget is set. It is set once.

    Examples
    --------
    ::

        prior.released(0.5, 1e-5, ledger=Ledger("prior.ledger.json", budget=2.0))
    """

    def __init__(self, path: str | os.PathLike[str], budget: float | None = None) -> None:
        self.path = Path(path)
        self.budget = budget

    @property
    def releases(self) -> list[dict[str, Any]]:
        """What was released: date, people, parts, epsilon, delta, noise, and what is spent then."""
        found = self._read()
        return [] if found is None else [asdict(one) for one in found.releases]

    def spent(self, delta: float) -> float:
        """Epsilon that all releases together have spent, of those people who spent most.

        Parameters
        ----------
        delta : float
            The delta at which it holds.

        Returns
        -------
        float
            Epsilon of the composition, which is exact; 0 before the first release.
        """
        _, delta = check_budget(1.0, delta)
        found = self._read()
        return 0.0 if found is None or not found.releases else spent_epsilon(found.spent(), delta)

    def summary(self) -> str:
        """One line for a person: how many releases, what they spent, and of which budget."""
        found = self._read()
        if found is None:
            return f"{self.path}: no release yet"
        last, many = found.releases[-1], len(found.releases)
        text = f"{self.path}: {many} release{'s' if many > 1 else ''}, "
        text += f"epsilon={last.spent_epsilon:.4g} in all at delta={last.at_delta:g}"
        return text if found.budget is None else f"{text}, of a budget of {found.budget[0]:g}"

    def _enter(self, prior: TaskPrior, public: TaskPrior) -> None:
        """Write a release down, or refuse it; nobody else writes meanwhile."""
        release, whose = public.release, people_of(prior)
        assert release is not None
        with self._locked():
            found = self._read() or _Content()
            if found.releases and not found.counts(whose):
                raise ValueError(
                    f"{self.path} is the ledger of other people: none of this prior's tasks is in "
                    "a release of it. If these are the same people, whose windows were changed "
                    "since, build the prior from the windows as they were. If they are others, "
                    "give them a ledger of their own: ledger=PATH, or --ledger FILE."
                )
            budget = self._agreed(found.budget, release.delta)
            square = separation(release.epsilon, release.delta) ** 2
            if budget is not None:
                self._refuse_spent(found, budget, whose, release)
            at = release.delta if budget is None else budget[1]
            sums = found.after(whose, square)
            entry = _Entry(
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                n_people=public.n_tasks,
                holds=["direction_sum", *public.holds],
                epsilon=release.epsilon,
                delta=release.delta,
                noise=release.noise,
                scale_covered=release.scale_covered,
                spent_epsilon=spent_epsilon(_Content(**sums).spent(), at),
                at_delta=at,
                assumed_disjoint=bool(release.assumed_disjoint),
            )
            self._write(_Content(budget, (*found.releases, entry), **sums))

    def _agreed(
        self, known: tuple[float, float] | None, delta: float
    ) -> tuple[float, float] | None:
        """The budget of the file, or the one to set; refuses to change it."""
        if self.budget is None:
            return known
        wanted, _ = check_budget(self.budget, delta)
        if known is not None and wanted != known[0]:
            raise ValueError(
                f"{self.path} has a budget of epsilon={known[0]:g}, and a budget is set once; got "
                f"{wanted:g}. Leave it out."
            )
        return known or (wanted, delta)

    def _refuse_spent(
        self, found: _Content, budget: tuple[float, float], whose: Whose, release: Release
    ) -> None:
        most, before = separation(*budget), found.spent(whose)
        mu = math.hypot(before, separation(release.epsilon, release.delta))
        if mu <= most * (1.0 + _ROUNDING):
            return
        left = math.sqrt(max(most**2 - before**2, 0.0))
        room = math.floor(1e4 * spent_epsilon(left, release.delta)) / 1e4 if left > 1e-6 else 0.0
        many, spent = len(found.releases), spent_epsilon(mu, budget[1])
        # As many digits as it takes to tell the two apart.
        digits = next(n for n in range(4, 18) if f"{spent:.{n}g}" != f"{budget[0]:.{n}g}")
        raise ValueError(
            f"This release would bring what is spent to epsilon={spent:.{digits}g} at "
            f"delta={budget[1]:g}, past the budget of {budget[0]:.{digits}g} in {self.path}, after "
            f"{many} release{'' if many == 1 else 's'}. "
            + (f"At most epsilon={room:g} is left." if room else "Nothing is left of it.")
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f"{self.path.name}.lock")
        try:
            lock.open("x").close()
        except FileExistsError as reason:
            raise ValueError(
                f"Another release is being written to {self.path}. If none is, as after a crash, "
                f"delete {lock}."
            ) from reason
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)

    def _read(self) -> _Content | None:
        """What the file says, checked; None where there is none."""
        try:
            content = read_whole(self.path, _LARGEST)
        except FileNotFoundError:
            return None
        try:
            fields = json_of(content)
            checksum = fields.pop("sha256")
        except (ValueError, KeyError, AttributeError, TypeError):
            fields, checksum = None, ""
        if not isinstance(fields, dict) or not is_intact(fields, checksum):
            raise ValueError(
                f"{self.path} was cut or edited after it was written, or is no ledger: its "
                "checksum does not match. Restore it from a backup; without it nobody knows what "
                "was released."
            )
        version = fields.get("version")
        if fields.get("format") != _FORMAT or version not in (1, _VERSION):
            raise ValueError(
                f"{self.path} is no ledger that this Crossfade reads: its format is "
                f"{fields.get('format')!r}, version {version!r}. Update Crossfade."
            )
        try:
            budget = fields["budget"]
            entries = tuple(_Entry(**one) for one in fields["releases"])
            for one in entries:
                check_budget(one.epsilon, one.delta)
            known = None if budget is None else check_budget(*budget)
            if version == 1:
                # It does not say who was in a release.
                return _Content(known, entries, math.fsum(one.square for one in entries))
            everybody = check_number("everybody", fields["everybody"], 0.0)
            people = {
                name: check_number(name, one, 0.0) for name, one in dict(fields["people"]).items()
            }
            return _Content(known, entries, everybody, people)
        except (KeyError, TypeError, ValueError) as reason:
            raise ValueError(f"{self.path} holds no valid ledger: {reason}") from reason

    def _write(self, content: _Content) -> None:
        kind = {"format": _FORMAT, "version": _VERSION}
        fields = kind | json.loads(json.dumps(asdict(content)))
        sealed = fields | {"sha256": digest_of(fields)}
        write_whole(self.path, (json.dumps(sealed, indent=1) + "\n").encode())


def beside(path: Path) -> Path:
    """Where the ledger of a prior's file is."""
    return path.with_name(path.name.removesuffix(".npz") + ".ledger.json")


def ledger_of(prior: TaskPrior, ledger: Ledger | str | os.PathLike[str] | None) -> Ledger | None:
    """The ledger that was given, or the one beside the prior's file; refuses to begin a second."""
    home = None if prior._file is None else Ledger(beside(prior._file))
    if ledger is None:
        return home
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if home is not None and os.path.realpath(home.path) != os.path.realpath(book.path):
        found = home._read()
        if found is not None and found.counts(people_of(prior)):
            raise ValueError(
                f"{home.path} already counts releases of these people, and what was spent would "
                f"not be counted in {book.path}. Leave out the ledger; to keep it elsewhere, move "
                "that file there."
            )
    return book


def warn_uncounted() -> None:
    """Say that nobody counts."""
    warnings.warn(
        "This prior has no file, and so no ledger: nobody counts this release, and several of the "
        "same people add up. Save the prior first, or give ledger=PATH.",
        UncountedReleaseWarning,
        stacklevel=3,
    )


def people_of(prior: TaskPrior) -> Whose:
    """Digests of each task of a prior; None where not all are known."""
    return names_of(prior.parts) if prior._knows_all and prior.parts is not None else None
