"""Windows of one person: features, labels and names.

A task is one participant or one session: n windows of d features each, with a label for every
window, in the order of time. In the paper's words it is a data set (X, y) drawn from a distribution
of its own, and all tasks have the same features and the same two classes. Sessions of one person
share a `group`, so that they never count as strangers to each other.

Tables with one row for each window become tasks by `read_tasks` and `TaskSet.from_frame`
(``docs/task-table.md``). Features come from the room `signals`, or from anywhere else; a `Recipe`
says how they were made, where that is known.
"""

from crossfade.tasks._recipe import Recipe
from crossfade.tasks._task import Task, TaskSet, read_tasks

__all__ = ["Recipe", "Task", "TaskSet", "read_tasks"]

for _name in __all__:
    globals()[_name].__module__ = __name__
