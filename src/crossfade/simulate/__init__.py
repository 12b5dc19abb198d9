"""The paper's generative model, for tests and tutorials: directions and tasks drawn from it.

Directions are drawn from a von Mises-Fisher law, and each task has two normal classes at plus and
minus nu = Sigma omega, so that omega is its Fisher direction (equation 1).
"""

from crossfade.simulate._generate import draw_directions, simulate_tasks

__all__ = ["draw_directions", "simulate_tasks"]

for _name in __all__:
    globals()[_name].__module__ = __name__
