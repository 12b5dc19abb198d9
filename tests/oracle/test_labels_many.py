"""What more labels of many classes would bring, against what they did bring to drawn people."""

import numpy as np
import pytest

from crossfade import (
    ConvexBlendClassifier,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    forecast_labels,
)
from crossfade.exceptions import MissingPartWarning

#: Curves begin with fewer labels than there are, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:The blend has")

N_FEATURES, NAMES = 6, np.array(["a", "b", "c"])
BLENDS = (PosteriorBlendClassifier, ConvexBlendClassifier)


def people(n_people, n_each, seed):
    """Newcomers and their class means: around those of one crowd, as uncertain as noise makes."""
    crowd = np.random.default_rng(7).normal(size=(3, N_FEATURES))
    rng = np.random.default_rng(seed)
    for _ in range(n_people):
        means = crowd + 0.6 * rng.normal(size=crowd.shape) + rng.normal(size=N_FEATURES)
        label = np.tile(np.arange(3), n_each)
        yield Task(means[label] + rng.normal(size=(label.size, N_FEATURES)), NAMES[label]), means


@pytest.fixture(scope="module")
def prior():
    return MulticlassPrior.from_tasks([task for task, _ in people(40, 40, 1)])


def true_accuracy(blend, means, rng):
    label = np.repeat(np.arange(3), 500)
    X = means[label] + rng.normal(size=(label.size, N_FEATURES))
    return np.mean(blend.predict(X) == NAMES[label])


@pytest.mark.parametrize("kind", BLENDS)
@pytest.mark.parametrize("counts", [(3, 3, 3), (6, 2, 4)])
def test_as_many_labels_as_there_are_bring_what_is_expected(prior, kind, counts):
    [(task, _)] = people(1, 8, 2)
    few = np.concatenate(
        [np.flatnonzero(task.y == n)[:k] for n, k in zip(NAMES, counts, strict=True)]
    )
    blend = MulticlassBlend(kind(prior)).fit(task.X[few], task.y[few])
    told = forecast_labels(blend, [counts], level=0.8)
    assert told.accuracy[0] == pytest.approx(blend.expected_accuracy_, rel=1e-12)
    assert told.error[0] == pytest.approx(blend.expected_accuracy_error_, rel=1e-12)
    interval = (told.lower[0], told.upper[0])
    assert interval == pytest.approx(blend.expected_accuracy_interval(0.8), rel=1e-12)


@pytest.mark.parametrize("kind", BLENDS)
def test_intervals_hold_what_more_labels_brought(prior, kind):
    """From 3 labels of each class to 12, for 60 people: 80 % intervals, and the mean."""
    rng = np.random.default_rng(3)
    inside, promised, found = [], [], []
    for task, means in people(60, 12, 4):
        few = MulticlassBlend(kind(prior)).fit(task.X[:9], task.y[:9])
        told = forecast_labels(few, [12], level=0.8)
        later = true_accuracy(MulticlassBlend(kind(prior)).fit(task.X, task.y), means, rng)
        inside.append(told.lower[0] <= later <= told.upper[0])
        promised.append(told.accuracy[0])
        found.append(later)
    assert 0.65 <= np.mean(inside) <= 0.97
    assert np.mean(promised) == pytest.approx(np.mean(found), abs=0.04)


@pytest.mark.parametrize("kind", BLENDS)
def test_theory_tells_where_nobody_has_played(prior, kind):
    pairs = {pair: one.without("replay") for pair, one in prior.priors.items()}
    bare = MulticlassPrior("pairwise", prior.classes, pairs)
    [(task, _)] = people(1, 4, 5)
    blend = MulticlassBlend(kind(bare)).fit(task.X, task.y)
    told = forecast_labels(blend, [4, 16, 64])
    assert told.accuracy[0] == pytest.approx(blend.expected_accuracy_, abs=0.01)
    assert (np.diff(told.accuracy) > 0.0).all()
    with pytest.raises(ValueError, match="at least 2 samples of each class"):
        forecast_labels(blend, [0])
    blend = MulticlassBlend(kind(bare)).fit(task.X, task.y)
    with pytest.warns(MissingPartWarning, match="no replay of what became of others"):
        assert blend.expected_accuracy_ > 1 / 3


def test_budgets_of_another_number_of_classes(prior):
    [(task, _)] = people(1, 4, 6)
    blend = MulticlassBlend(PosteriorBlendClassifier(prior)).fit(task.X, task.y)
    with pytest.raises(ValueError, match="one for each of 3 classes"):
        forecast_labels(blend, [(4, 2)])
    rests = MulticlassPrior.from_tasks(
        [task for task, _ in people(8, 10, 1)], strategy="one-vs-rest"
    )
    blend = MulticlassBlend(PosteriorBlendClassifier(rests), "one-vs-rest").fit(task.X, task.y)
    with pytest.raises(AttributeError, match="set against the rest"):
        forecast_labels(blend, [4])


def test_a_sum_says_what_it_gives_up():
    tasks = [Task(task.X, (task.y == "a").astype(int)) for task, _ in people(10, 10, 8)]
    first = TaskPrior.from_tasks(tasks[:5])
    second = TaskPrior.from_tasks(tasks[5:], feature_scale=first.feature_scale)
    both = first + second
    assert both.replay is not None
    with pytest.warns(MissingPartWarning, match=r"Only one .* holds what forecasts were worth"):
        assert (first + second.without("replay")).replay is None
    with pytest.warns(MissingPartWarning, match="holds class means: the merged prior"):
        assert (first.without("class_means") + second).class_means is None


def test_a_site_of_one_person_takes_no_replay_away():
    tasks = [Task(task.X, (task.y == "a").astype(int)) for task, _ in people(8, 10, 8)]
    most = TaskPrior.from_tasks(tasks[:7])
    one = TaskPrior.from_tasks(tasks[7:], feature_scale=most.feature_scale)
    assert (most + one).replay == most.replay
    blend = PosteriorBlendClassifier(one).fit(tasks[0].X[:9], tasks[0].y[:9])
    with pytest.warns(
        MissingPartWarning, match=r"fewer than 5 people .* Build .* from more people"
    ):
        assert blend.expected_accuracy_ >= 0.5


def test_two_classes_say_what_is_missing():
    tasks = [Task(task.X, (task.y == "a").astype(int)) for task, _ in people(6, 10, 9)]
    prior = TaskPrior.from_tasks(tasks[1:], replay=False)
    for ask in (
        lambda blend: blend.expected_accuracy_,
        lambda blend: blend.expected_accuracy_interval(),
    ):
        blend = PosteriorBlendClassifier(prior).fit(tasks[0].X[:9], tasks[0].y[:9])
        with pytest.warns(MissingPartWarning, match="so the forecast is theory's alone"):
            ask(blend)
        # Once for one fitted blend: warnings are errors here.
        assert 0.0 < blend.expected_accuracy_error_ < 1.0
