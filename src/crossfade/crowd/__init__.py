"""Priors: what many earlier people say about a new one, and how well that works.

A `TaskPrior` is made from tasks, directions or a summary; it is added, released, saved and loaded.
It holds sums over people (room `prior`) and rehearses itself: each source is left out in turn and
meets the others as a newcomer, with ever more labels.

=============== ====================================================================================
`_task_prior`   `TaskPrior`: building, adding, sharing, files
`_prior_sums`   what its sums say
`_learn`        from the moments of tasks
`_rehearsal`    leave one person out: how accurate forecasts turn out
`_card`         cards and summaries
=============== ====================================================================================
"""

from crossfade.crowd._rehearsal import rehearsal as rehearsal
from crossfade.crowd._task_prior import TaskPrior

__all__ = ["TaskPrior"]

TaskPrior.__module__ = __name__
