"""How the features of a table were made, from the samples of a recording on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from crossfade._validate import check_choice, check_number

#: Features of a window: of bands of EEG, of the covariance of its channels, or of heartbeats.
_OF_BANDS = ("shares", "powers", "log-powers", "clr")
KINDS = (*_OF_BANDS, "tangent", "beats")
FILTERS = ("zero-phase", "causal")
CENTRES = ("session", "past")


@dataclass(frozen=True)
class Recipe:
    """How features were made from a recording: the same steps make the same features of a person.

    It travels with a table in Parquet, a prior and a model. Plain values only, so that JSON can
    hold it.

    Attributes
    ----------
    kind : {"shares", "powers", "log-powers", "clr", "tangent", "beats"}
        What is computed from a window, as ``crossfade features --features`` has it; "beats" is
        heart-rate variability.
    sfreq : float
        Samples per second.
    channels : tuple of str
        Channels that give features, in their order.
    window, overlap : float
        Length and overlap of the windows, in seconds.
    reference : {"average", "none"}
        Whether channels are referenced to the average of `averaged`.
    averaged : tuple of str
        Channels of the average; empty where the recordings differ in them.
    filter : {"zero-phase", "causal"} or None
        Filter that passes `band`, or None. A zero-phase filter needs later samples.
    band : (float, float) or None
        Ends of the band that the filter passes, in Hz.
    bands : tuple of (str, float, float)
        Names and ends in Hz of the frequency bands, for features of bands.
    beats : tuple of str
        Features of the heartbeats, such as ``pnn20``.
    centre : {"session", "past"} or None
        Whether tangent vectors are taken at the mean of all windows of a session, or at that of the
        windows so far; None for all other features.
    unit : str
        Unit of the samples, "uV".

    Examples
    --------
    >>> from crossfade import load_mental_math
    >>> recipe = load_mental_math().recipe
    >>> recipe.window, recipe.sfreq, recipe.filter
    (2.5, 500.0, 'zero-phase')
    >>> from dataclasses import replace
    >>> replace(recipe, window=4.0, sfreq=256.0).difference(recipe)
    "these windows have sfreq 256 and window 4; the prior's have sfreq 500 and window 2.5"
    """

    kind: str
    sfreq: float
    channels: tuple[str, ...]
    window: float
    overlap: float = 0.0
    reference: str = "none"
    averaged: tuple[str, ...] = ()
    filter: str | None = None
    band: tuple[float, float] | None = None
    bands: tuple[tuple[str, float, float], ...] = ()
    beats: tuple[str, ...] = ()
    centre: str | None = None
    unit: str = "uV"

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("reference", self.reference, ("average", "none"))
        check_choice("filter", self.filter, (*FILTERS, None))
        check_choice("centre", self.centre, (*CENTRES, None))
        plain: dict[str, Any] = {
            "sfreq": check_number("sfreq", self.sfreq, 1e-9, 1e9),
            "window": check_number("window", self.window, 1e-9, 1e9),
            "overlap": check_number("overlap", self.overlap, 0.0),
            "band": None if self.band is None else _ends("band", self.band),
            "bands": tuple(_band(one) for one in _list("bands", self.bands)),
            "unit": _text("unit", self.unit),
        }
        for name in ("channels", "averaged", "beats"):
            plain[name] = tuple(_text(name, one) for one in _list(name, getattr(self, name)))
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if self.overlap >= self.window:
            raise ValueError(f"overlap must be shorter than a window; got {self.overlap:g} s.")
        for name, belongs in (
            ("channels", True),
            ("band", self.filter is not None),
            ("bands", self.kind in _OF_BANDS),
            ("beats", self.kind == "beats"),
            ("centre", self.kind == "tangent"),
        ):
            if belongs != bool(getattr(self, name)):
                needs = "needs" if belongs else "must not have"
                raise ValueError(f"A recipe of {self.kind} with this filter {needs} {name}.")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features: ``Fz_theta``, or ``Fz_Cz`` of tangent vectors, or of the beats."""
        own = self.channels
        if self.kind == "tangent":
            return tuple(f"{one}_{two}" for i, one in enumerate(own) for two in own[i:])
        return self.beats or tuple(f"{name}_{band}" for name in own for band, *_ in self.bands)

    def to_dict(self) -> dict[str, Any]:
        """Values that JSON can hold; :meth:`from_dict` takes them."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Any) -> Recipe:
        """Make a recipe of what :meth:`to_dict` returned.

        Parameters
        ----------
        values : mapping of str to value
            The fields by name; those that have a default may be missing.

        Returns
        -------
        Recipe
            The recipe, every value of it checked.
        """
        known = [one.name for one in fields(cls)]
        needed = ("kind", "sfreq", "channels", "window")
        if not isinstance(values, Mapping) or not set(needed) <= set(values) <= set(known):
            raise ValueError(
                f"A recipe needs {', '.join(needed)} and may have {', '.join(known[4:])}; got "
                f"{list(values)}. Update Crossfade if a newer one wrote it."
            )
        return cls(**values)

    def difference(
        self, other: Recipe, mine: str = "these windows", theirs: str = "the prior's"
    ) -> str | None:
        """Say in which fields another recipe differs.

        Parameters
        ----------
        other : Recipe
            What to compare with.
        mine, theirs : str, optional
            What to call both in the sentence.

        Returns
        -------
        str or None
            A sentence with the first three differences, without a full stop; None without any.
        """
        names = [one.name for one in fields(self)]
        differ = [name for name in names if getattr(self, name) != getattr(other, name)]
        if not differ:
            return None
        own, others = (
            " and ".join(f"{name} {_said(getattr(one, name))}" for name in differ[:3])
            for one in (self, other)
        )
        return f"{mine} have {own}; {theirs} have {others}"

    def __str__(self) -> str:
        what = ", ".join(self.beats) or self.kind
        overlap = f" (overlap {self.overlap:g} s)" if self.overlap else ""
        parts = [
            f"{what} of {', '.join(self.channels)}",
            f"windows of {self.window:g} s{overlap} at {self.sfreq:g} Hz",
        ]
        if self.bands:
            parts.append(_said(self.bands))
        if self.band:
            parts.append(f"{self.filter} filter from {self.band[0]:g} to {self.band[1]:g} Hz")
        if self.reference == "average":
            parts.append(f"referenced to the average of {len(self.averaged) or 'all EEG'} channels")
        if self.centre:
            whose = "all windows" if self.centre == "session" else "the windows so far"
            parts.append(f"at the mean of {whose}")
        return "; ".join(parts)


def recipe_misfits(mine: Recipe | None, theirs: Recipe | None) -> list[str]:
    """Reason why windows do not fit a prior or a model, if both say how they were made."""
    if mine is None or theirs is None or mine == theirs:
        return []
    wrong = mine.difference(theirs)
    return [f"Features were made in another way: {wrong}. Make them again by the prior's recipe."]


def _said(value: Any) -> str:
    """A value of a field as people read it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(f"{name} {low:g}-{high:g} Hz" for name, low, high in value)
    return ", ".join(map(_said, value)) if isinstance(value, tuple) else str(value)


def _plain(value: Any) -> Any:
    """Lists instead of tuples."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _list(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise TypeError(f"{name} must be a list; got {value!r}.")
    return tuple(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise ValueError(f"{name} must be printable text; got {value!r}.")
    return value


def _ends(name: str, value: Any) -> tuple[float, float]:
    ends = [check_number(name, end, 0.0) for end in _list(name, value)]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise ValueError(f"{name} must be two frequencies, the lower first; got {value!r}.")
    return ends[0], ends[1]


def _band(value: Any) -> tuple[str, float, float]:
    name, *ends = _list("bands", value) or ("",)
    return (_text("The name of a band", name), *_ends(f"band {name!r}", ends))
