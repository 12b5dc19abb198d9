"""Ledgers: every release of one population, what they spent together, and what may be spent.

The checksum finds damage, not fraud: a ledger that was deleted, or replaced by an older copy, goes
unnoticed.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crossfade._files import check_writable, digest_of, is_intact, json_of, read_whole, write_whole
from crossfade._validate import check_number
from crossfade.prior._gaussian import separation, spent_epsilon
from crossfade.prior._parts import check_budget

if sys.platform != "win32":
    import fcntl

_FORMAT, _VERSION = "crossfade-ledger", 3
_LARGEST = 1 << 26
#: What rounding may do to a budget that is spent to the last; results have a larger margin.
_ROUNDING = 1e-10


class Ledger:
    """File of all releases of one population, and of the budget that they may not exceed.

    Every release that names the ledger is charged to all its people, whether or not they were in
    the released prior. For people who were in none of its releases, start a new ledger.

    Parameters
    ----------
    path : str or path-like
        Where it is, or will be with the first release.
    budget : float or None, default=None
        Epsilon that all releases may spend together, at the delta of the release with which the
        budget is set. It is set once.

    Examples
    --------
    ::

        prior.released(0.5, 1e-5, ledger=Ledger("ledger.json", budget=2.0))
    """

    def __init__(self, path: str | os.PathLike[str], budget: float | None = None) -> None:
        self.path = Path(path)
        self.budget = None if budget is None else check_number("budget", budget, 1e-300)

    @property
    def releases(self) -> list[dict[str, Any]]:
        """Releases so far: date, people, parts, epsilon, delta, noise, and what is spent then."""
        return list(self._read()["releases"])

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
        mu = _composed(self._read()["releases"])
        return spent_epsilon(mu, delta) if mu else 0.0

    def summary(self) -> str:
        """One line of text: number of releases, what they spent, and the budget."""
        found = self._read()
        if not found["releases"]:
            return f"{self.path}: no release yet"
        last, many = found["releases"][-1], len(found["releases"])
        text = f"{self.path}: {many} release{'s' if many > 1 else ''}, "
        text += f"epsilon={last['spent_epsilon']:.4g} in all at delta={last['at_delta']:g}"
        return text if found["budget"] is None else f"{text}, of a budget of {found['budget'][0]:g}"

    def charge(self, epsilon: float, delta: float, draw: Callable[[], Any]) -> Any:
        """Return the release that `draw` makes, once it is written down.

        Parameters
        ----------
        epsilon, delta : float
            What the release spends; refused before the draw if that exceeds the budget.
        draw : callable
            Returns the released prior.

        Returns
        -------
        TaskPrior
            The released prior.
        """
        epsilon, delta = check_budget(epsilon, delta)
        path = Path(os.path.realpath(self.path))
        check_writable(path)
        with _locked(path):
            found = self._read()
            mu = math.hypot(_composed(found["releases"]), separation(epsilon, delta))
            budget = self._agreed(found["budget"], delta)
            if budget is not None:
                self._refuse_excess(mu, found["releases"], budget, delta)
            public = draw()
            at = delta if budget is None else budget[1]
            entry = {
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "n_people": public.n_tasks,
                "holds": list(public.holds),
                "epsilon": epsilon,
                "delta": delta,
                "noise": public.release.noise,
                "scale_covered": public.release.scale_covered,
                "spent_epsilon": spent_epsilon(mu, at),
                "at_delta": at,
            }
            _write(path, {"budget": budget, "releases": [*found["releases"], entry]})
        return public

    def _agreed(self, known: Any, delta: float) -> list[float] | None:
        """The budget of the file, or the one to set."""
        if self.budget is None or known is not None:
            if self.budget not in (None, known and known[0]):
                raise ValueError(f"{self.path} has a budget of {known[0]:g} already. Leave it out.")
            return None if known is None else list(known)
        return list(check_budget(self.budget, delta))

    def _refuse_excess(
        self, mu: float, releases: list[Any], budget: list[float], delta: float
    ) -> None:
        """Refuse what would exceed the budget."""
        most = separation(*budget)
        if mu <= most * (1.0 + _ROUNDING):
            return
        left = math.sqrt(max(most**2 - _composed(releases) ** 2, 0.0))
        room = math.floor(1e4 * spent_epsilon(left, delta)) / 1e4 if left > 1e-6 else 0.0
        raise ValueError(
            f"This release would bring what is spent to epsilon={spent_epsilon(mu, budget[1]):.4g},"
            f" past the budget of {budget[0]:g} in {self.path}. At most epsilon={room:g} is left."
        )

    def _read(self) -> dict[str, Any]:
        """Content of the file, checked; without a file there is no release."""
        try:
            content = read_whole(self.path, _LARGEST)
        except FileNotFoundError:
            return {"budget": None, "releases": []}
        try:
            fields = json_of(content)
            checksum = fields.pop("sha256")
        except (ValueError, KeyError, AttributeError, TypeError):
            fields, checksum = {}, ""
        if not is_intact(fields, checksum) or fields.get("format") != _FORMAT:
            raise ValueError(f"{self.path} is damaged, or not a ledger. Restore it from a backup.")
        if fields.get("version") != _VERSION:
            raise ValueError(
                f"{self.path} is not a ledger of this version. Use the version of Crossfade that "
                "wrote it; start a new ledger only for people who are in none of its releases."
            )
        return _checked(fields)


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Budget and releases of a ledger, the numbers that matter checked."""
    try:
        budget = fields["budget"]
        for one in fields["releases"]:
            check_budget(one["epsilon"], one["delta"])
            if not math.isfinite(one["spent_epsilon"] + one["at_delta"]):
                raise ValueError("what was spent must be finite.")
        known = None if budget is None else list(check_budget(*budget))
    except (KeyError, TypeError, ValueError) as reason:
        raise ValueError(f"This is not a valid ledger: {reason} Restore a backup.") from reason
    return {"budget": known, "releases": fields["releases"]}


def _composed(releases: list[Any]) -> float:
    """Composed mu of all releases: the root of the sum of mu^2."""
    return math.sqrt(math.fsum(separation(one["epsilon"], one["delta"]) ** 2 for one in releases))


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a ledger whole, under a checksum."""
    fields = {"format": _FORMAT, "version": _VERSION, **content}
    sealed = fields | {"sha256": digest_of(fields)}
    write_whole(path, (json.dumps(sealed, indent=1) + "\n").encode())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the ledger: by its folder, since the file itself is replaced."""
    if sys.platform == "win32":
        warnings.warn(
            "Windows cannot lock a ledger. Make one release at a time.",
            UserWarning,
            stacklevel=5,
        )
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
