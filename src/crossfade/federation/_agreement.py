"""What all sites of a round fix before anybody computes anything."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from crossfade._files import refuse_same_file, write_whole
from crossfade._typing import Array
from crossfade._validate import (
    check_choice,
    check_classes,
    check_finite,
    check_integer,
    check_names,
    check_scale,
)
from crossfade._version import __version__
from crossfade.federation._files import code_of, content_of, digest_of, read_fields
from crossfade.federation._keys import Site, read_site, site_fields, site_of
from crossfade.federation._layout import (
    MOST_SITES,
    PARTS,
    STEP,
    largest_sum,
    n_words,
    shapes_of,
)
from crossfade.federation._scale import read_scale
from crossfade.prior._bounded import check_clip

KIND = "crossfade-agreement"
FEWEST_SITES = 3
#: Sites with the same compute the same sums.
SERIES = ".".join(__version__.split(".")[:2])


@dataclass(frozen=True, eq=False)
class Agreement:
    """What all sites of a round have fixed: sites, features, scale, classes, and what is summed.

    Make one with :func:`agree`. Its `digest` goes into every mask and signature, so that files of
    two agreements cannot be mixed.

    Attributes
    ----------
    sites : tuple of Site
        Who takes part; three at least, and all must.
    feature_names : tuple of str
        Names of the features, in this order.
    feature_scale : ndarray of shape (n_features,)
        What every site divides its features by.
    classes : tuple
        The two labels, sorted; directions point to the second.
    parts : tuple of str
        What is summed beside the directions.
    min_tasks : int
        Fewest tasks, and fewest people, of all sites together.
    max_tasks : int
        Most tasks of one site.
    round_id : str
        Random, so that no two agreements are the same.
    clip : float or None
        Largest length of anybody's class means, so that they can be released; None for no bound.
    crossfade : str
        Version of Crossfade, such as "0.2", that all sites have.
    """

    sites: tuple[Site, ...]
    feature_names: tuple[str, ...]
    feature_scale: Array
    classes: tuple[Any, Any]
    parts: tuple[str, ...]
    min_tasks: int
    max_tasks: int
    round_id: str
    clip: float | None = None
    crossfade: str = SERIES

    def __post_init__(self) -> None:
        _check_sites(self.sites)
        scale = check_finite("feature_scale", self.feature_scale, 1)
        scale = check_scale(scale, scale.shape[-1]).copy()
        scale.flags.writeable = False
        object.__setattr__(self, "feature_scale", scale)
        object.__setattr__(self, "feature_names", check_names(self.feature_names, scale.size))
        if len(set(self.feature_names)) < scale.size:
            twice = next(name for name in self.feature_names if self.feature_names.count(name) > 1)
            raise ValueError(f"The scale has the feature {twice!r} twice. Keep one.")
        object.__setattr__(self, "classes", check_classes(self.classes))
        for part in self.parts:
            check_choice("part", part, PARTS)
        check_clip(self.clip, "class_means" in self.parts)
        check_integer("min_tasks", self.min_tasks, 2)
        check_integer("max_tasks", self.max_tasks, 1)
        if self.min_tasks > len(self.sites) * self.max_tasks:
            raise ValueError(
                f"{len(self.sites)} sites of at most {self.max_tasks} tasks cannot have "
                f"{self.min_tasks} tasks. Lower min_tasks, or raise max_tasks."
            )

    def __repr__(self) -> str:
        return (
            f"Agreement(n_sites={len(self.sites)}, n_features={self.n_features}, "
            f"classes={self.classes})"
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.feature_scale.size

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything that was agreed on."""
        return digest_of(KIND, self._fields())

    @property
    def code(self) -> str:
        """The digest, to be compared by phone."""
        return code_of(self.digest)

    def _fields(self) -> dict[str, Any]:
        """What the file holds, but for the digest."""
        scales = zip(self.feature_names, self.feature_scale.tolist(), strict=True)
        fixed_point = {
            "step": STEP,
            "largest_sum": largest_sum(len(self.sites)),
            "n_words": n_words(shapes_of(self.n_features, self.parts)),
        }
        return {
            "crossfade": self.crossfade,
            "round_id": self.round_id,
            "sites": [site_fields(site) for site in self.sites],
            "features": [{"name": name, "scale": scale} for name, scale in scales],
            "classes": list(self.classes),
            "parts": list(self.parts),
            "clip": self.clip,
            "min_tasks": self.min_tasks,
            "max_tasks": self.max_tasks,
            "fixed_point": fixed_point,
        }

    def _marks(self) -> dict[str, str]:
        """What the file says of itself."""
        return {"digest": self.digest.hex(), "code": self.code}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agreement to a file that people can read.

        Parameters
        ----------
        path : str or path-like
            Where to; by custom ``agreement.json``.
        """
        write_whole(path, content_of(KIND, self._fields() | self._marks()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an agreement; refuses one that was altered.

        Parameters
        ----------
        path : str or path-like
            A file that :meth:`save` wrote.

        Returns
        -------
        Agreement
            The agreement.
        """
        fields = read_fields(path, KIND)
        try:
            agreement = cls(
                tuple(site_of(one, path) for one in fields["sites"]),
                tuple(one["name"] for one in fields["features"]),
                np.array([one["scale"] for one in fields["features"]]),
                tuple(fields["classes"]),
                tuple(fields["parts"]),
                fields["min_tasks"],
                fields["max_tasks"],
                str(fields["round_id"]),
                fields.get("clip"),
                str(fields["crossfade"]),
            )
            whole = agreement._fields() | agreement._marks() == fields
        except (KeyError, TypeError, ValueError, OverflowError) as reason:
            why = f"{reason} is missing." if isinstance(reason, KeyError) else reason
            raise ValueError(f"{path} holds no valid agreement: {why}") from reason
        if not whole:
            raise ValueError(
                f"{path} was altered after it was made, or made by another version of Crossfade: "
                "its digest does not match. Ask for it again."
            )
        return agreement


def agree(
    sites: Iterable[str | os.PathLike[str]],
    scale: str | os.PathLike[str],
    classes: Sequence[Any],
    out: str | os.PathLike[str],
    *,
    min_tasks: int = 10,
    max_tasks: int = 10_000,
    without: Sequence[str] = (),
    clip: float | None = None,
) -> Agreement:
    """Fix who takes part in a round and what is summed, in a file for all sites.

    Parameters
    ----------
    sites : iterable of path-like
        The ``.pub`` files of all sites, three or more.
    scale : path-like
        Table with the columns ``feature`` and ``scale``, as :func:`write_scale` writes it.
    classes : pair of labels
        The two labels, in any order.
    out : path-like
        File to write.
    min_tasks : int, default=10
        Fewest tasks, and fewest people, of all sites together: the sum of a few says too much
        about each.
    max_tasks : int, default=10_000
        Most tasks of one site.
    without : sequence of str, default=()
        Parts of a prior that are not summed: "within_covariance", "half_gap", "autocorrelation",
        "direction_noise", "class_means" or "replay".
    clip : float or None, default=None
        Largest length of anybody's class means, in units of the scale, with which the sum can be
        released with its class means: see :meth:`TaskPrior.from_tasks`.

    Returns
    -------
    Agreement
        What was written.
    """
    for part in without:
        check_choice("without", part, PARTS)
    sites = list(sites)
    refuse_same_file(out, scale, *sites)
    names, numbers = read_scale(scale)
    try:
        low, high = sorted(classes)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"classes must be two different labels; got {classes!r}.") from reason
    if low == high:
        raise ValueError(f"classes must be two different labels; got {low!r} twice.")
    agreement = Agreement(
        tuple(read_site(path) for path in sites),
        names,
        numbers,
        (low, high),
        tuple(part for part in PARTS if part not in without),
        min_tasks,
        max_tasks,
        secrets.token_hex(16),
        check_clip(clip),
    )
    agreement.save(out)
    return agreement


def _check_sites(sites: Sequence[Site]) -> None:
    """Refuse too few sites, too many, and two of the same name or key."""
    if not FEWEST_SITES <= len(sites) <= MOST_SITES:
        raise ValueError(
            f"A secure sum needs {FEWEST_SITES} to {MOST_SITES} sites; got {len(sites)}. Of two, "
            "each could subtract its own part and see the other's."
        )
    for what in ("name", "exchange", "signing"):
        known: dict[Any, Site] = {}
        for site in sites:
            other = known.setdefault(getattr(site, what), site)
            if other is not site:
                shared = "one name" if what == "name" else "one key"
                raise ValueError(
                    f"Two sites have {shared}: {other.name!r} and {site.name!r}. Give the .pub "
                    "file of each site once; every site makes a key of its own, with its own name."
                )
