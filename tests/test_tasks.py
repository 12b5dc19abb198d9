"""Task and TaskSet: plain containers that refuse what they cannot hold."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from crossfade import Task, TaskSet


def test_task_holds_arrays_and_says_what_it_is():
    task = Task([[1, 2], [3, 4]], ["b", "a"], name="p1", group="g", feature_names=["u", "v"])
    assert task.X.dtype == np.float64
    np.testing.assert_array_equal(task.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(task.y, ["b", "a"])
    np.testing.assert_array_equal(task.classes, ["a", "b"])
    assert task.feature_names == ("u", "v")
    assert (task.name, task.group) == ("p1", "g")
    assert repr(task) == "Task('p1', n_samples=2, n_features=2)"
    assert repr(Task([[1.0]], [0])) == "Task(n_samples=1, n_features=1)"


def test_task_takes_the_column_names_of_a_frame():
    frame = pd.DataFrame({"alpha": [1.0, 2.0], "beta": [3.0, 4.0]})
    assert Task(frame, [0, 1]).feature_names == ("alpha", "beta")
    assert Task(frame, pd.Series([0, 1]), feature_names=["x", "y"]).feature_names == ("x", "y")


def test_task_cannot_be_assigned_to():
    task = Task([[1.0]], [0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name = "other"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, np.nan]], [0]), "X of a task must be finite; found NaN"),
        (([[np.inf]], [0], "p3"), "X of task 'p3' must be finite"),
        ((["a"], [0]), "X of a task must be numbers"),
        (([1.0, 2.0], [0, 1]), "X of a task must have at least 2 axes"),
        (([[1.0], [2.0]], [0]), r"got X of shape \(2, 1\) and y of shape \(1,\)"),
        (([[[1.0]]], [0]), r"one label per row; got X of shape \(1, 1, 1\)"),
        (([[1.0]], [[0]]), r"y of shape \(1, 1\)"),
        (([[1.0, 2.0]], [0], None, None, ["u"]), "has 2 features but 1 feature names"),
    ],
)
def test_task_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Task(*arguments)


def test_task_set_is_a_sequence_of_tasks():
    tasks = [Task([[float(i)], [1.0]], [0, 1], name=str(i)) for i in range(4)]
    together = TaskSet(iter(tasks))
    assert len(together) == 4
    assert list(together) == tasks
    assert together[2] is tasks[2]
    assert together[-1] is tasks[3]
    assert isinstance(together[1:3], TaskSet)
    assert list(together[1:3]) == tasks[1:3]
    assert tasks[0] in together
    assert repr(together) == "TaskSet(n_tasks=4, n_features=1)"
    assert together.feature_names is None


def test_empty_task_set():
    empty = TaskSet([])
    assert len(empty) == 0
    assert empty.feature_names is None
    assert repr(empty) == "TaskSet(n_tasks=0, n_features=0)"


def test_task_set_refuses_what_does_not_go_together():
    one = Task([[1.0]], [0], name="one", feature_names=["u"])
    with pytest.raises(TypeError, match="A TaskSet holds Task objects; got tuple"):
        TaskSet([one, ([[1.0]], [0])])
    with pytest.raises(ValueError, match=r"must have the same features; Task\('two'"):
        TaskSet([one, Task([[1.0, 2.0]], [0], name="two")])
    with pytest.raises(ValueError, match=r"same feature names; .* has \('v',\)"):
        TaskSet([one, Task([[1.0]], [0], feature_names=["v"])])
    with pytest.raises(ValueError, match=r"same feature names; .* has None"):
        TaskSet([one, Task([[1.0]], [0])])
