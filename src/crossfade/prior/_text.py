"""A prior in, a few lines for a person out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crossfade.prior._task_prior import TaskPrior


def describe(prior: TaskPrior) -> str:
    """Summarise a prior in plain text.

    Parameters
    ----------
    prior : TaskPrior
        The prior.

    Returns
    -------
    str
        Several lines.
    """
    kept = ["sum of directions"]
    if prior.outer_sum is not None:
        kept.append("sum of outer products")
    if prior.within_covariance is not None:
        kept.append("average covariance within classes")
    if prior.half_gap is not None:
        kept.append("average half gap")
    if prior.autocorrelation is not None:
        kept.append("likeness of neighbouring samples")
    if prior.direction_noise is not None:
        kept.append("noise of the directions")
    if prior.directions is not None:
        kept.append("the direction of every single task")
    classes = "not given"
    if prior.classes is not None:
        classes = f"{prior.classes[0]!r} and {prior.classes[1]!r} (directions point to the second)"
    agreement, concentration = f"{prior.trusted_length:.3f}", f"{prior.concentration:.3g}"
    if prior.release is not None and prior.cancels:
        agreement = concentration = "hidden by noise"
    lines = [
        f"Prior of {prior.n_tasks} task{'s' if prior.n_tasks > 1 else ''}, "
        f"{prior.n_features} feature{'s' if prior.n_features > 1 else ''}",
        f"  classes        {classes}",
        f"  agreement R    {agreement}  (1: all alike, 0: they cancel out)",
        f"  concentration  {concentration}",
        f"  holds          {', '.join(kept)}",
    ]
    if prior.release is not None:
        lines.append(f"  privacy        {prior.release}")
    if prior.cancels:
        lines.append("  warning        the directions cancel out: no mean direction to rely on")
        return "\n".join(lines)
    names = prior.feature_names or [f"feature {place}" for place in range(prior.n_features)]
    order = np.argsort(-np.abs(prior.mean_direction), kind="stable")[:5]
    strongest = ", ".join(f"{names[place]} {prior.mean_direction[place]:+.2f}" for place in order)
    lines.append(f"  mean direction {strongest}{', ...' if prior.n_features > 5 else ''}")
    return "\n".join(lines)
