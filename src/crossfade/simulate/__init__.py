"""The paper's generative model (equation 1), for tests and tutorials."""

from crossfade.simulate._generate import draw_directions, simulate_tasks

__all__ = ["draw_directions", "simulate_tasks"]

for _name in __all__:
    globals()[_name].__module__ = __name__
