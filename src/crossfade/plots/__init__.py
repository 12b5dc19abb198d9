"""Rows in, figures out; matplotlib is loaded when the first one is drawn."""

from crossfade.plots.simulation import figure2, figure3, misspecified, newcomers

__all__ = ["figure2", "figure3", "misspecified", "newcomers"]
