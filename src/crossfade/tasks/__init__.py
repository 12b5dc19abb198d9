"""Windows of one person: features, labels and names.

A task is one participant or one session: n windows of d features each, with a label for every
window, in the order of time. In the paper's words it is a data set (X, y) drawn from a distribution
of its own, and all tasks have the same features and the same classes. Sessions of one person share
a `group`, so that they never count as strangers to each other.

Tables with one row for each window become tasks by `read_tasks` and `TaskSet.from_frame`
(``docs/tables.md``). Features come from the room `signals`, or from anywhere else; a `Recipe`
says how they were made, where that is known.
"""

from crossfade.tasks._parquet import sealed as sealed
from crossfade.tasks._parquet import unsealed as unsealed
from crossfade.tasks._parquet import write_parquet as write_parquet
from crossfade.tasks._recipe import Recipe
from crossfade.tasks._recipe import recipe_misfits as recipe_misfits
from crossfade.tasks._table import read_windows as read_windows
from crossfade.tasks._table import with_about as with_about
from crossfade.tasks._table import write_frame as write_frame
from crossfade.tasks._task import Task, TaskSet, read_tasks
from crossfade.tasks._task import check_class_names as check_class_names
from crossfade.tasks._task import common_recipe as common_recipe

__all__ = ["Recipe", "Task", "TaskSet", "read_tasks"]

for _name in __all__:
    globals()[_name].__module__ = __name__
