"""Windows of one person: arrays or tables in, tasks out."""

from crossfade.tasks._task import Task, TaskSet, read_tasks

__all__ = ["Task", "TaskSet", "read_tasks"]

for _name in __all__:
    globals()[_name].__module__ = __name__
