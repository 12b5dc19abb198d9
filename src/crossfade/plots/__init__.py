"""Figures of studies; matplotlib is loaded when the first is drawn."""

from crossfade.plots._forecast import forecast
from crossfade.plots._methods import looks as looks
from crossfade.plots._methods import method_of as method_of
from crossfade.plots._needed import needed
from crossfade.plots._study import (
    accuracy_by_budget,
    differences,
)
from crossfade.plots._style import for_files as for_files
from crossfade.plots._style import render as render
from crossfade.plots._style import told_by as told_by
from crossfade.plots._svg import inline as inline
from crossfade.plots._svg import marker as marker

__all__ = [
    "accuracy_by_budget",
    "differences",
    "forecast",
    "needed",
]
