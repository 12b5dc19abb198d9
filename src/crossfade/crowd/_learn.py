"""A prior from the moments of tasks: sums, and what a rehearsal of their people adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from crossfade._validate import check_names, check_number
from crossfade.crowd._rehearsal import rehearsal
from crossfade.fisher import TaskMoments
from crossfade.prior import (
    Origin,
    Space,
    Sums,
    check_labels,
    is_centred,
    learn_sums,
    scale_of,
    shares_of,
)


def learn(
    moments: TaskMoments,
    *,
    shrinkage: str | float | None = "oas",
    feature_scale: ArrayLike | str | None = "auto",
    isotropic: bool = False,
    rehearse: bool | Sequence[str] = True,
    centred_per_person: bool | str = "auto",
    mean_norm_bound: float | None = None,
    groups: Sequence[str | None] | None = None,
    classes: Sequence[Any] | None = None,
    feature_names: Sequence[str] | None = None,
    called: Callable[[int], str] = "Task {}".format,
) -> tuple[Space, dict[str, Sums], Origin]:
    """Space, sums and origin of the prior of these tasks; `called` names a task by its place."""
    bound = mean_norm_bound
    if bound is not None:
        bound = check_number("mean_norm_bound", bound, 1e-100, 1e100)
    scale = scale_of(moments, feature_scale, called)
    sums = learn_sums(
        moments, scale, shrinkage, isotropic=isotropic, bound=bound, groups=groups, called=called
    )
    centred = centred_per_person
    if centred == "auto":
        # With a bound nobody looks, since one person could change what is found.
        centred = bound is None and "class_means" in sums and is_centred(moments, scale)
    space = Space(
        scale,
        check_names(feature_names, scale.size),
        check_labels(classes),
        centred_per_person=bool(centred),
        mean_norm_bound=bound,
    )
    if rehearse and not isotropic:
        kinds = None if rehearse is True else tuple(rehearse)
        shares = None if groups is None or bound is None else shares_of(groups)
        records = rehearsal(moments, space, sums, kinds, shrinkage=shrinkage, shares=shares)
        sums |= named(records)
    return space, sums, Origin(scale_learnt=isinstance(feature_scale, str))


def named(records: dict[str, Any]) -> dict[str, Any]:
    """Forecast records by the names under which a prior holds them."""
    return {f"forecast_records.{kind}": one for kind, one in records.items()}
