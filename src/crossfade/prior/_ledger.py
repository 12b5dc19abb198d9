"""Ledgers: every release of a prior, what all of them spent together, and what may be spent.

A ledger is a JSON file beside the prior's. Releases of the same people compose exactly
(`_gaussian`): those with mu_1, mu_2, ... are as good as one with the root of the sum of squares.
The checksum finds damage, cuts and careless editing. It is no signature, and nobody notices a
ledger that was deleted, or replaced by an older copy.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfade._files import digest_of, is_intact, json_of, read_whole, write_whole
from crossfade.exceptions import UncountedReleaseWarning
from crossfade.prior._gaussian import separation, spent_epsilon
from crossfade.prior._release import check_budget

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior

_FORMAT, _VERSION = "crossfade-ledger", 1
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
    #: Of this release and all before it, at `at_delta`.
    spent_epsilon: float
    at_delta: float


@dataclass(frozen=True)
class _Content:
    """What a ledger says."""

    prior: str
    budget: tuple[float, float] | None = None
    releases: tuple[_Entry, ...] = ()

    @property
    def mu(self) -> float:
        """How far apart all releases together set two people."""
        return math.hypot(*(separation(one.epsilon, one.delta) for one in self.releases))


class Ledger:
    """File of all releases of one prior, and of the budget that they may not exceed.

    Parameters
    ----------
    path : str or path-like
        Where it is, or will be with the first release.
    budget : float or None, default=None
        Epsilon that all releases of the prior may spend together, at the delta of the release with
        which the budget is set. It is set once.

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
        """Epsilon that all releases together have spent.

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
        return 0.0 if found is None or not found.releases else spent_epsilon(found.mu, delta)

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
        release, whose = public.release, identity_of(prior)
        assert release is not None
        with self._locked():
            found = self._read() or _Content(whose)
            if found.prior != whose:
                raise ValueError(
                    f"{self.path} is the ledger of another prior. Keep it, and give this prior a "
                    "ledger of its own: ledger=PATH, or --ledger FILE."
                )
            budget = self._agreed(found.budget, release.delta)
            mu = math.hypot(found.mu, separation(release.epsilon, release.delta))
            if budget is not None:
                self._refuse_spent(found, budget, mu, release.delta)
            at = release.delta if budget is None else budget[1]
            entry = _Entry(
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                n_people=public.n_tasks,
                holds=["direction_sum", *public.holds],
                epsilon=release.epsilon,
                delta=release.delta,
                noise=release.noise,
                scale_covered=release.scale_covered,
                spent_epsilon=spent_epsilon(mu, at),
                at_delta=at,
            )
            self._write(_Content(whose, budget, (*found.releases, entry)))

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
        self, found: _Content, budget: tuple[float, float], mu: float, delta: float
    ) -> None:
        most = separation(*budget)
        if mu <= most * (1.0 + _ROUNDING):
            return
        left = math.sqrt(max(most**2 - found.mu**2, 0.0))
        room = math.floor(1e4 * spent_epsilon(left, delta)) / 1e4 if left > 1e-6 else 0.0
        many = len(found.releases)
        raise ValueError(
            f"This release would bring what is spent to epsilon={spent_epsilon(mu, budget[1]):.4g} "
            f"at delta={budget[1]:g}, past the budget of {budget[0]:g} in {self.path}, after "
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
        if (fields.get("format"), fields.get("version")) != (_FORMAT, _VERSION):
            raise ValueError(
                f"{self.path} is no ledger that this Crossfade reads: its format is "
                f"{fields.get('format')!r}, version {fields.get('version')!r}. Update Crossfade."
            )
        try:
            budget = fields["budget"]
            entries = tuple(_Entry(**one) for one in fields["releases"])
            for one in entries:
                check_budget(one.epsilon, one.delta)
            known = None if budget is None else check_budget(*budget)
            return _Content(str(fields["prior"]), known, entries)
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
    """The ledger that was given, or the one beside the prior's file."""
    if ledger is None:
        return None if prior._file is None else Ledger(beside(prior._file))
    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)


def warn_uncounted() -> None:
    """Say that nobody counts."""
    warnings.warn(
        "This prior has no file, and so no ledger: nobody counts this release, and several of the "
        "same people add up. Save the prior first, or give ledger=PATH.",
        UncountedReleaseWarning,
        stacklevel=3,
    )


def identity_of(prior: TaskPrior) -> str:
    """Digest of whose data a prior is of: of all its parts, or else of its sums."""
    if prior.parts is not None and len(prior.parts) == prior.n_tasks:
        return sha256(prior.parts.tobytes()).hexdigest()
    people = prior._by_person
    return sha256(f"{people.n_people}".encode() + people.direction_sum.tobytes()).hexdigest()
