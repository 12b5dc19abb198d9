"""Figures of studies, simulations and directions; matplotlib is loaded when the first is drawn."""

from crossfade.plots._forecast import forecast
from crossfade.plots._needed import needed
from crossfade.plots._simulation import figure2, figure3, misspecified, newcomers
from crossfade.plots._study import (
    accuracy_by_budget,
    alphas,
    differences,
    effect_of_b,
    labels_saved,
)
from crossfade.plots._vectors import blend_geometry, embed_directions, projection_vectors

__all__ = [
    "accuracy_by_budget",
    "alphas",
    "blend_geometry",
    "differences",
    "effect_of_b",
    "embed_directions",
    "figure2",
    "figure3",
    "forecast",
    "labels_saved",
    "misspecified",
    "needed",
    "newcomers",
    "projection_vectors",
]
