"""The paper's generative model: tasks drawn from it, and its simulation studies.

Directions are drawn from a von Mises-Fisher law, and each task has two normal classes at plus and
minus nu = Sigma omega, so that omega is its Fisher direction (equation 1). `figure2` and `figure3`
are the paper's studies with its own values beside ours; `misspecified` asks what happens where the
model is wrong, and `newcomers` what a user of the estimators would see. All rules are blends of the
room `blend`, for many people at once.
"""

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
