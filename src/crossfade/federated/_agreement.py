"""What the sites of a federation fix beforehand in, one checked object out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._atomic import write_whole
from crossfade._validate import check_classes, check_finite, check_integer, check_names, check_scale

FEWEST_SITES = 3
MOST_TASKS = 1024
LONGEST_NAME = 80


class FederationError(RuntimeError):
    """A federation that gave no prior; the message says at which stage, and what to do."""


def printable(text: Any, longest: int = 2000) -> str:
    """Words of another machine, safe to show: one line that cannot steer a terminal.

    Parameters
    ----------
    text : object
        What it sent.
    longest : int, default=2000
        Characters to keep.

    Returns
    -------
    str
        The same, with a mark for each character that cannot be seen.
    """
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in str(text)[:longest])


def sites_needed(n_sites: int) -> int:
    """Sites that must stay to the end of a secure sum among `n_sites`.

    More than two thirds, so that no server can play two halves of the sites against each other,
    and never fewer than three: of two, each could subtract its own part.

    Parameters
    ----------
    n_sites : int
        Sites that begin, at least three.

    Returns
    -------
    int
        How many must stay.

    Examples
    --------
    >>> from crossfade.federated import sites_needed
    >>> [sites_needed(n_sites) for n_sites in (3, 4, 5, 6, 10)]
    [3, 3, 4, 5, 7]
    """
    n_sites = check_integer("n_sites", n_sites, 1)
    if n_sites < FEWEST_SITES:
        raise ValueError(
            f"A secure sum needs at least {FEWEST_SITES} sites; got {n_sites}. With fewer, a site "
            "could subtract its own part and see another's. Find more sites."
        )
    return max(FEWEST_SITES, 2 * n_sites // 3 + 1)


@dataclass(frozen=True, eq=False)
class Agreement:
    """What all sites of a federation have fixed before anybody computes anything.

    Attributes
    ----------
    feature_scale : ndarray of shape (n_features,)
        What every site divides its features by; equal to the bit.
    classes : tuple
        The two labels, sorted; directions point to the second.
    feature_names : tuple of str or None
        Names of the features, in this order.
    max_tasks : int
        Most tasks that one site may bring.

    Examples
    --------
    >>> from crossfade.federated import Agreement
    >>> Agreement([1.0, 2.5], classes=["rest", "task"], feature_names=["alpha", "beta"])
    Agreement(n_features=2, classes=('rest', 'task'), max_tasks=64)
    """

    feature_scale: NDArray[np.float64]
    classes: tuple[Any, Any]
    feature_names: tuple[str, ...] | None = None
    max_tasks: int = 64

    def __post_init__(self) -> None:
        scale = check_finite("feature_scale", self.feature_scale, 1)
        scale = check_scale(scale, scale.shape[-1]).copy()
        scale.flags.writeable = False
        object.__setattr__(self, "feature_scale", scale)
        if self.classes is None:
            raise ValueError(
                "classes must be two labels: sites that order them differently would cancel out."
            )
        object.__setattr__(self, "classes", check_classes(self.classes))
        object.__setattr__(self, "feature_names", check_names(self.feature_names, scale.size))
        object.__setattr__(self, "max_tasks", check_integer("max_tasks", self.max_tasks, 1))
        if self.max_tasks > MOST_TASKS:
            raise ValueError(
                f"max_tasks must be at most {MOST_TASKS}, so that sums stay exact to nine digits; "
                f"got {self.max_tasks}. A larger site can join as two, with its tasks shared out."
            )

    def __repr__(self) -> str:
        return (
            f"Agreement(n_features={self.n_features}, classes={self.classes}, "
            f"max_tasks={self.max_tasks})"
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.feature_scale.size

    def difference(self, other: Agreement) -> str:
        """First thing in which another agreement differs, in words; empty if nothing does.

        Parameters
        ----------
        other : Agreement
            What somebody else holds.

        Returns
        -------
        str
            For instance "classes: ('rest', 'task') here, ('a', 'b') there".
        """
        names = ("n_features", "feature_names", "classes", "max_tasks")
        for name in names:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name.replace('_', ' ')}: {mine} here, {theirs} there"
        unlike = np.flatnonzero(self.feature_scale != other.feature_scale)
        if unlike.size:
            place = int(unlike[0])
            called = self.feature_names[place] if self.feature_names else f"feature {place}"
            return (
                f"feature scale of {called}: {float(self.feature_scale[place])!r} here, "
                f"{float(other.feature_scale[place])!r} there"
            )
        return ""

    def to_text(self) -> str:
        """Write the agreement as JSON, numbers to the last bit.

        Returns
        -------
        str
            What :meth:`from_text` reads.
        """
        return json.dumps(
            {
                "feature_scale": self.feature_scale.tolist(),
                "classes": self.classes,
                "feature_names": self.feature_names,
                "max_tasks": self.max_tasks,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Agreement:
        """Read an agreement that :meth:`to_text` wrote.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        Agreement
            The agreement.
        """
        return cls(**json.loads(text))


def write_scale(path: str | os.PathLike[str], names: Sequence[str], scale: Any) -> None:
    """Write a table with the columns ``feature`` and ``scale``, numbers to the last bit.

    Parameters
    ----------
    path : path-like
        CSV file to write.
    names : sequence of str
        Names of the features.
    scale : array-like of shape (n_features,)
        What each is divided by.
    """
    import pandas as pd

    numbers = [repr(float(number)) for number in scale]
    table = pd.DataFrame({"feature": list(names), "scale": numbers})
    write_whole(path, table.to_csv(index=False).encode())


def read_scale(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Read the names and scales of features from a table with ``feature`` and ``scale``.

    Parameters
    ----------
    path : path-like
        CSV file, as :func:`write_scale` writes it.

    Returns
    -------
    names : tuple of str
        Names of the features.
    scale : ndarray of shape (n_features,)
        What each is divided by.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str)
    except ValueError as reason:
        raise ValueError(f"{path} is not a table of scales: {reason}.") from reason
    if list(table.columns) != ["feature", "scale"]:
        raise ValueError(
            f"{path} must have the columns feature and scale; found "
            f"{', '.join(map(str, table.columns))}. `crossfade federate scale` writes such a file."
        )
    # As text, since float() reads what repr() wrote to the last bit.
    scale = check_scale(check_finite(f"scale in {path}", table["scale"].tolist(), 1), len(table))
    return tuple(table["feature"]), scale
