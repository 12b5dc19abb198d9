"""Priors that rehearse: what many earlier people say about a new one, and how well that works.

A `TaskPrior` is made from tasks, directions or a summary; it is added and released. It holds sums
over people, which the room `prior` reads, and rehearses itself: each source is left out in turn and
meets the others as a newcomer, with ever more labels.
"""

from crossfade.crowd._task_prior import TaskPrior

__all__ = ["TaskPrior"]

TaskPrior.__module__ = __name__
