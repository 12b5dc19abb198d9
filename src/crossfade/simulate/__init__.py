"""The paper's generative model: tasks drawn from it, and its simulation studies."""

from crossfade.simulate._figures import FIGURE3_PANELS, Cell, figure2, figure3, misspecified
from crossfade.simulate._generate import draw_directions, simulate_tasks
from crossfade.simulate._misspecified import Parameters
from crossfade.simulate._newcomers import newcomers
from crossfade.simulate._scenarios import SCENARIOS

__all__ = [
    "FIGURE3_PANELS",
    "SCENARIOS",
    "Cell",
    "Parameters",
    "draw_directions",
    "figure2",
    "figure3",
    "misspecified",
    "newcomers",
    "simulate_tasks",
]

for _thing in (
    Cell,
    Parameters,
    draw_directions,
    figure2,
    figure3,
    misspecified,
    newcomers,
    simulate_tasks,
):
    _thing.__module__ = __name__
