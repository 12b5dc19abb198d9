"""The person alone: Fisher's discriminant of the labelled windows, without a crowd."""

from __future__ import annotations

from crossfade.blend._along import rule_along
from crossfade.blend._rule import Newcomer, Rule
from crossfade.prior import Law


def fisher(newcomer: Newcomer, law: Law | None = None) -> Rule:
    """Rule of the person alone, in the units of the law or else in the person's own."""
    person = newcomer.direction(law)
    return rule_along(newcomer, law, person, person.omega, alpha=1.0, dof=person.rank)
