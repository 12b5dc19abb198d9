"""The three extensions of the paper's Discussion do what they say."""

import numpy as np
import pytest

from crossfade import Task
from crossfade.simulate import draw_directions
from reproduction.discussion.__main__ import methods_for, three_classes
from reproduction.discussion.common import compare, summarised
from reproduction.discussion.pairs import coupled


def test_coupled_probabilities_are_those_of_a_consistent_table():
    p = np.random.default_rng(0).dirichlet([1.0, 2.0, 3.0, 4.0], size=50)
    r = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    r[:, np.arange(4), np.arange(4)] = 0.0
    np.testing.assert_allclose(coupled(r), p, atol=1e-9)


@pytest.fixture(scope="module")
def of_two_kinds():
    """One half of the people differ in the first feature, the other half in the second."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 20)
    tasks = []
    for axis in (0, 1):
        mean = np.eye(8)[axis]
        for nu in draw_directions(12, 8, 100.0, mean_direction=mean, random_state=rng):
            X = rng.standard_normal((40, 8)) + np.outer(2 * y - 1, nu)
            tasks.append(Task(X, y, f"person {len(tasks)}"))
    wanted = ("hierarchical", "posterior", "convex", "two kinds", "per source")
    methods = {name: methods_for(2)[name] for name in wanted}
    found = compare(tasks, methods, budgets=[6], n_splits=4)
    return found.groupby(["method", "budget"])["accuracy"].mean()


@pytest.mark.parametrize("name", ["two kinds", "per source"])
def test_two_kinds_of_people_are_told_apart(of_two_kinds, name):
    assert of_two_kinds[name, 6] > of_two_kinds["convex", 6]
    assert of_two_kinds[name, 6] > of_two_kinds["posterior", 6] - 0.02


def test_pairs_of_three_classes_stand_beside_the_hierarchical_blend():
    found = compare(three_classes(6), methods_for(3), budgets=[3], n_splits=2)
    assert found["accuracy"].between(0.6, 1.0).all()
    assert list(summarised(found).index) == ["hierarchical", "pairs"]
