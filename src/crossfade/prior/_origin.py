"""Where the sums of a prior come from, and how they may be shared."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from crossfade.prior._release import Release, check_budget


def new_build() -> frozenset[str]:
    """Random identifier of one build, which says nothing about its tasks."""
    return frozenset([secrets.token_hex(8)])


@dataclass(frozen=True)
class Origin:
    """Builds that a prior was made from, what is said about it, and how it was released."""

    #: Random identifiers of the builds that went into it.
    builds: frozenset[str] = field(default_factory=new_build, compare=False)
    about: tuple[tuple[str, str], ...] = ()  # text by key: made_by, units, date
    scale_learnt: bool = False  # whether the feature scale was learnt from these tasks
    summarised: bool = False  # whether a part comes from from_summary
    release: Release | None = None  # budget and noise of a released prior

    def joined(self, other: Origin) -> Origin:
        """Origin of the sum of two priors: what both say, and all who made them."""
        if self.builds & other.builds:
            raise ValueError(
                "Both priors hold the same build: its tasks would count twice. Add priors of "
                "different people, or build one prior from all tasks."
            )
        mine, theirs = dict(self.about), dict(other.about)
        about = {key: text for key, text in mine.items() if theirs.get(key) == text}
        if "made_by" in mine or "made_by" in theirs:
            makers = [
                name
                for one in (mine, theirs)
                for name in one.get("made_by", "not named").split("; ")
            ]
            about["made_by"] = "; ".join(dict.fromkeys(makers))
        return Origin(
            self.builds | other.builds,
            tuple(about.items()),
            self.scale_learnt or other.scale_learnt,
            self.summarised or other.summarised,
        )

    def released(self, epsilon: float, delta: float, noise: float) -> Origin:
        """Origin of a release, which is a build of its own."""
        release = Release(float(epsilon), float(delta), noise, not self.scale_learnt)
        return replace(self, builds=new_build(), release=release)

    def longer(self) -> Origin:
        """Origin of a prior with more directions."""
        return replace(self, builds=self.builds | new_build())

    def saying(self, about: Mapping[str, str]) -> Origin:
        """The same with more said about it."""
        return replace(self, about=tuple({**dict(self.about), **check_about(about)}.items()))

    def privacy(self) -> dict[str, Any]:
        """How the prior protects its people, for cards and models."""
        if self.release is not None:
            return {"kind": "released", **asdict(self.release)}
        return {"kind": "summary" if self.summarised else "exact sums"}

    def header(self) -> dict[str, Any]:
        """Fields of the origin for the header of a file."""
        release = None if self.release is None else asdict(self.release)
        known = {"scale_learnt": self.scale_learnt, "summarised": self.summarised}
        said = {"builds": sorted(self.builds), "about": dict(self.about)}
        return {**known, **said, "release": release}

    @classmethod
    def of_header(cls, known: Mapping[str, Any]) -> Origin:
        """Origin from the header of a file."""
        release = None if known["release"] is None else Release(**known["release"])
        if release is not None:
            check_budget(release.epsilon, release.delta)
        return cls(
            frozenset(known["builds"]),
            tuple(check_about(known["about"]).items()),
            bool(known["scale_learnt"]),
            bool(known["summarised"]),
            release,
        )


def check_about(about: Mapping[str, Any]) -> dict[str, str]:
    """Text about a prior by key; refuses text that is not printable."""
    for key, text in about.items():
        if not isinstance(text, str) or not f"{key}{text}".isprintable():
            raise ValueError(f"about must be printable text on one line; {key!r} is {text!r}.")
    return dict(about)


def privacy_text(privacy: Mapping[str, Any]) -> str:
    """How a prior protects its people, in words."""
    if privacy["kind"] == "summary":
        return "a mean direction and its standard error, exact: it cannot be released"
    if privacy["kind"] != "released":
        return "exact sums: anyone who knows all tasks but one can recover that one"
    covered = "" if privacy["scale_covered"] else "; the scale is not covered"
    return (
        f"released with epsilon = {privacy['epsilon']:g}, delta = {privacy['delta']:g}; a person "
        f"counts once with all sessions of their group{covered}"
    )


def table_of(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Lines of a table in Markdown."""
    # A bar would end the cell.
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
