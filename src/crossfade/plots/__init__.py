"""Figures of studies; matplotlib is loaded when the first is drawn."""

from crossfade.plots._forecast import forecast
from crossfade.plots._methods import looks, method_of
from crossfade.plots._needed import needed
from crossfade.plots._study import accuracy_by_budget, differences
from crossfade.plots._style import for_files, render, told_by
from crossfade.plots._svg import inline, marker

__all__ = ["accuracy_by_budget", "differences", "forecast", "needed"]
