"""`TaskPrior`: sums over people that rehearse, each source in turn as a newcomer to the others."""

from crossfade.crowd._task_prior import TaskPrior

__all__ = ["TaskPrior"]

TaskPrior.__module__ = __name__
