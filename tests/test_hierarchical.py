"""The hierarchical blend as an estimator: from no label on, one class, both; files and refusals."""

import pickle
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    forecast_labels,
)
from crossfade.exceptions import PriorMismatchError

BLENDS = (ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier)


@lru_cache(maxsize=64)
def draw(n_people=8, d=3, n_each=(12, 12), seed=0, names=(0, 1)):
    """Tasks of people whose class means lie near those of a crowd."""
    rng = np.random.default_rng([71, seed, d])
    label = np.repeat(np.arange(len(n_each)), n_each)
    crowd = 1.5 * rng.normal(size=(len(n_each), d)) + 5.0
    tasks = []
    for place in range(n_people):
        means = crowd + 0.5 * rng.normal(size=crowd.shape) + 0.3 * rng.normal(size=d)
        X = (rng.normal(size=(label.size, d)) + means[label]) * np.linspace(0.5, 3.0, d)
        tasks.append(Task(X, np.array(names)[label], f"p{place}"))
    return tasks


@pytest.fixture(scope="module")
def prior():
    return TaskPrior.from_tasks(draw(9)[1:])


@pytest.fixture(scope="module")
def person():
    """A newcomer to the prior."""
    return draw(9)[0]


@pytest.fixture(scope="module")
def few(person):
    return person.X[[0, 1, 2, 12, 13]], person.y[[0, 1, 2, 12, 13]]


@pytest.fixture(scope="module")
def many():
    return TaskPrior.from_tasks(draw(10, 4, (9, 8, 10), 1, ("a", "b", "c"))[1:])


@pytest.fixture(scope="module")
def of_many():
    task = draw(10, 4, (9, 8, 10), 1, ("a", "b", "c"))[0]
    return task.X[::4], task.y[::4]


def assert_same(mine, theirs, X, rtol=1e-9):
    """All that can be asked of two blends of one person."""
    assert list(mine.classes_) == list(theirs.classes_)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=rtol)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, rtol=rtol)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), rtol=rtol)
    assert mine.alpha_ == pytest.approx(theirs.alpha_, rel=rtol)
    assert mine.expected_accuracy_ == pytest.approx(theirs.expected_accuracy_, rel=rtol)
    assert mine.expected_accuracy_interval() == pytest.approx(
        theirs.expected_accuracy_interval(), rel=rtol
    )


@pytest.mark.parametrize("blend", BLENDS)
def test_labels_one_by_one_are_labels_at_once(prior, person, few, blend):
    X, y = few
    whole = blend(prior).fit(X, y)
    step = blend(prior).start()
    assert step.alpha_ == 0.0
    for place in (3, 0, 4, 1, 2):
        step.partial_fit(X[place : place + 1], y[place : place + 1])
        assert set(step.predict(person.X)) <= {0, 1}
    assert_same(step, whole, person.X)


@pytest.mark.parametrize("blend", BLENDS)
def test_labels_and_windows_without_one_in_any_order(prior, person, few, blend):
    """Mixed in one call with None or NaN, or in calls of their own: the result is the same."""
    X, y = few
    hidden = person.X[[5, 6, 20, 21, 22]]
    apart = blend(prior).start().partial_fit(hidden, None).partial_fit(X, y)
    for nothing in (None, np.nan):
        labels = [*y.tolist(), *[nothing] * 5]
        mixed = blend(prior).partial_fit(np.concatenate([X, hidden]), labels)
        assert_same(mixed, apart, person.X)
    as_floats = np.array([*y, *[np.nan] * 5], float)
    assert_same(blend(prior).partial_fit(np.concatenate([X, hidden]), as_floats), apart, person.X)
    series = pd.Series([*y.tolist(), *[None] * 5], dtype=object)
    assert_same(blend(prior).partial_fit(np.concatenate([X, hidden]), series), apart, person.X)
    nullable = pd.Series([*y.tolist(), *[pd.NA] * 5], dtype="Int64")
    assert_same(blend(prior).partial_fit(np.concatenate([X, hidden]), nullable), apart, person.X)
    later = blend(prior).partial_fit(X, y).partial_fit(hidden[:2], None)
    later.partial_fit(hidden[2:], [None] * 3)
    assert_same(later, apart, person.X)
    plain = blend(prior).fit(X, y)
    assert not np.allclose(plain.intercept_, apart.intercept_, rtol=1e-6)


def test_only_the_last_500_without_a_label_are_kept(prior, person, few):
    rng = np.random.default_rng(72)
    hidden = rng.normal(size=(700, 3)) + person.X.mean(0)
    at_once = HierarchicalBlendClassifier(prior).fit(*few).partial_fit(hidden, None)
    last = HierarchicalBlendClassifier(prior).fit(*few).partial_fit(hidden[-500:], None)
    streamed = HierarchicalBlendClassifier(prior).fit(*few)
    for part in np.array_split(hidden, 9):
        streamed.partial_fit(part, None)
    assert_same(at_once, last, person.X, rtol=0.0)
    assert_same(streamed, last, person.X, rtol=0.0)
    other = HierarchicalBlendClassifier(prior).fit(*few).partial_fit(hidden[-499:], None)
    assert (other.intercept_ != last.intercept_).all()


def test_fit_and_start_forget(prior, person, few):
    X, y = few
    blend = HierarchicalBlendClassifier(prior).start().partial_fit(person.X, None)
    assert_same(blend.fit(X, y), HierarchicalBlendClassifier(prior).fit(X, y), person.X, rtol=0.0)
    blend.partial_fit(person.X, None).start()
    assert_same(blend, HierarchicalBlendClassifier(prior).start(), person.X, rtol=0.0)
    assert_same(blend.partial_fit(X, y), HierarchicalBlendClassifier(prior).fit(X, y), person.X)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(prior, person, blend, label):
    """The crowd stands in for the other; the interval is that of a person about whom less is known.

    Both ways of giving the samples agree, and the second class may follow.
    """
    X = person.X[person.y == label][:3]
    one = blend(prior).fit(X, np.full(3, label))
    assert one.classes_.tolist() == [0, 1]
    assert_same(blend(prior).start().partial_fit(X, np.full(3, label)), one, person.X)
    assert np.mean(one.predict(person.X) == person.y) > 0.7
    lower, upper = one.expected_accuracy_interval(0.9)
    assert 0.0 <= lower < one.expected_accuracy_ < upper <= 1.0
    # It moves towards what was seen.
    start = blend(prior).start()
    assert not np.allclose(one.midpoint_, start.midpoint_)
    other = person.X[person.y != label][:3]
    both = one.partial_fit(other, np.full(3, 1 - label))
    rows = [X, other] if label == 0 else [other, X]
    assert_same(both, blend(prior).fit(np.concatenate(rows), np.repeat([0, 1], 3)), person.X)


def test_unlabelled_windows_of_one_class_only_do_not_turn_the_rule(prior, person, few):
    """Their proportions are unknown, and may be all of one: predictions stay what they were."""
    for label in (0, 1):
        hidden = person.X[person.y == label]
        for blend in (
            HierarchicalBlendClassifier(prior).start(),
            HierarchicalBlendClassifier(prior).fit(*few),
        ):
            before = np.mean(blend.predict(person.X) == person.y)
            blend.partial_fit(hidden, None)
            assert np.mean(blend.predict(person.X) == person.y) > before - 0.15
            assert np.isfinite(blend.expected_accuracy_interval()).all()
    same = HierarchicalBlendClassifier(prior).start().partial_fit(person.X[:1].repeat(600, 0), None)
    assert np.isfinite(same.coef_).all()


@pytest.mark.parametrize("mix", [0.0, 0.25, 0.5, 1.0])
def test_unlabelled_windows_of_any_mix_do_no_harm(mix):
    """Over 150 people with two labels a class: not more than 0.005 below the rule without them."""
    rng = np.random.default_rng(73)
    label, test = np.repeat([0, 1], 20), np.repeat([0, 1], 100)

    def means():
        h = np.array([0.8, 0.0, 0.0, 0.0]) + 0.3 * rng.normal(size=4)
        c = 0.8 * rng.normal(size=4)
        return np.stack([c - h, c + h])

    tasks = [Task(rng.normal(size=(40, 4)) + means()[label], label) for _ in range(25)]
    prior = TaskPrior.from_tasks(tasks, rehearse=False)
    found = []
    for _ in range(150):
        own = means()
        X = rng.normal(size=(4, 4)) + own[[0, 0, 1, 1]]
        hidden = rng.normal(size=(40, 4)) + own[(rng.random(40) < mix).astype(int)]
        new = rng.normal(size=(200, 4)) + own[test]
        blend = HierarchicalBlendClassifier(prior).fit(X, [0, 0, 1, 1])
        plain = np.mean(blend.predict(new) == test)
        found.append((plain, np.mean(blend.partial_fit(hidden, None).predict(new) == test)))
    plain, more = np.mean(found, axis=0)
    assert more > plain - 0.005


def test_proportions_move_the_threshold_before_the_first_label(prior, person):
    plain = HierarchicalBlendClassifier(prior).start()
    rare = HierarchicalBlendClassifier(prior, class_prior=(0.9, 0.1)).start()
    np.testing.assert_array_equal(rare.class_prior_, [0.9, 0.1])
    assert rare.predict(person.X).mean() <= plain.predict(person.X).mean()
    odds = [np.log(one.predict_proba(person.X)) @ [-1.0, 1.0] for one in (plain, rare)]
    np.testing.assert_allclose(odds[1] - odds[0], np.log(0.1 / 0.9), atol=1e-9)
    np.testing.assert_allclose(rare.midpoint_, plain.midpoint_)
    assert rare.expected_accuracy_ >= 0.89


def test_without_rehearsals_theory_stands_alone(prior, person, few):
    """The rule is the same, and the interval wider or not is another; nothing is refused."""
    told = HierarchicalBlendClassifier(prior).fit(*few)
    alone = HierarchicalBlendClassifier(prior.without("forecast_records")).fit(*few)
    np.testing.assert_array_equal(told.coef_, alone.coef_)
    assert told.expected_accuracy_ != alone.expected_accuracy_
    lower, upper = alone.expected_accuracy_interval()
    assert 0.0 <= lower < alone.expected_accuracy_ < upper <= 1.0
    assert alone.expected_accuracy_ >= 0.5
    assert alone.expected_accuracy_error_ > 0.0
    start = HierarchicalBlendClassifier(prior.without("forecast_records")).start()
    assert 0.5 <= start.expected_accuracy_ < 1.0


@pytest.mark.parametrize("blend", BLENDS[:2])
def test_settings_that_nobody_played_have_theorys_forecast(prior, few, blend):
    """A record belongs to a rule at its default settings."""
    other = {
        ConvexBlendClassifier: {"alpha": 0.5},
        PosteriorBlendClassifier: {"strength": 3.0},
    }[blend]
    mine = blend(prior, **other).fit(*few)
    alone = blend(prior.without("forecast_records"), **other).fit(*few)
    assert mine.expected_accuracy_ == alone.expected_accuracy_
    assert mine.expected_accuracy_interval(0.5) == alone.expected_accuracy_interval(0.5)
    default = blend(prior).fit(*few)
    assert (
        default.expected_accuracy_
        != blend(prior.without("forecast_records")).fit(*few).expected_accuracy_
    )


def test_many_classes_from_zero_labels_on(many, of_many):
    X, y = of_many
    blend = HierarchicalBlendClassifier(many).start()
    assert blend.alpha_ == 0.0
    assert blend.classes_.tolist() == ["a", "b", "c"]
    assert blend.predict_proba(X).shape == blend.decision_function(X).shape == (len(X), 3)
    np.testing.assert_allclose(blend.predict_proba(X).sum(1), 1.0)
    for place in range(len(y)):
        blend.partial_fit(X[place : place + 1], y[place : place + 1])
        best = blend.predict_proba(X).argmax(1)
        np.testing.assert_array_equal(blend.predict(X), blend.classes_[best])
    whole = HierarchicalBlendClassifier(many).fit(X, y)
    # Offsets that all classes share decide nothing, and are the same, too.
    assert_same(blend, whole, X)
    assert 0.0 < whole.alpha_ < 1.0
    assert whole.means_.shape == whole.coef_.shape == (3, 4)
    lower, upper = whole.expected_accuracy_interval(0.9)
    assert 0.0 <= lower < whole.expected_accuracy_ < upper <= 1.0
    assert whole.expected_accuracy_error_ > 0.0


def test_many_classes_forecast_more_labels(many, of_many):
    X, y = of_many
    blend = HierarchicalBlendClassifier(many).fit(X, y)
    counts = tuple(np.unique(y, return_counts=True)[1].tolist())
    now, more = forecast_labels(blend, [counts, 5]).accuracy
    assert now == pytest.approx(blend.expected_accuracy_)
    assert 0.0 < more < 1.0


def test_pickles_go_on_learning(prior, few, person, many, of_many):
    options = {"missing_class": "error", "class_prior": (0.4, 0.6), "consecutive": False}
    blend = HierarchicalBlendClassifier(prior, **options)
    hidden = HierarchicalBlendClassifier(prior).fit(*few).partial_fit(person.X, None)
    for one in (blend.fit(*few), hidden, HierarchicalBlendClassifier(prior).start()):
        back = pickle.loads(pickle.dumps(one))
        assert_same(back, one, person.X, rtol=0.0)
        assert_same(
            back.partial_fit(*few), pickle.loads(pickle.dumps(one)).partial_fit(*few), person.X
        )
    of_three = HierarchicalBlendClassifier(many).fit(*of_many)
    assert_same(pickle.loads(pickle.dumps(of_three)), of_three, of_many[0], rtol=0.0)


def test_a_fitted_blend_keeps_no_labelled_row(prior, few):
    kept = pickle.dumps(HierarchicalBlendClassifier(prior).fit(*few))
    for row in few[0]:
        assert row.tobytes() not in kept


def test_an_interval_grows_with_its_level(prior, few):
    blend = HierarchicalBlendClassifier(prior).fit(*few)
    ends = np.array([blend.expected_accuracy_interval(level) for level in (0.1, 0.5, 0.9, 0.99)])
    for (low, high), (lower, upper) in pairwise(ends):
        assert lower < low
        assert upper >= high
    assert blend.expected_accuracy_interval(1.0) == (0.0, 1.0)


HALF = {"no label": [None] * 5, "some labels": [0, 0, 1, 1, None]}
REFUSED = {
    "no class means": (lambda clf, X: clf.set_params(prior=bare(clf)).fit(X, [0, 0, 0, 1, 1])),
    "start, no class means": lambda clf, X: clf.set_params(prior=bare(clf)).start(),
    "start, no prior": lambda clf, X: clf.set_params(prior=None).start(),
    "unlabelled, no class means": (
        lambda clf, X: clf.set_params(prior=bare(clf)).partial_fit(X, None)
    ),
    "unlabelled, no prior": lambda clf, X: clf.set_params(prior=None).partial_fit(X, None),
    "unknown classes": (lambda clf, X: clf.set_params(prior=nameless(clf.prior)).start()),
    **{name: (lambda clf, X, y=y: clf.fit(X, y)) for name, y in HALF.items()},
    "labels of another number": lambda clf, X: clf.partial_fit(X, [None, 1]),
    "weights of another number": (
        lambda clf, X: clf.partial_fit(X, [None, 1, 0, 0, 1], sample_weight=[1.0, 1.0])
    ),
    "another class": lambda clf, X: clf.fit(X, [0, 0, 0, 7, 7]),
    "another kind of label": lambda clf, X: clf.start().partial_fit(X, list("aaabb")),
    "one class": lambda clf, X: clf.set_params(missing_class="error").fit(X, [0] * 5),
    **{
        f"classes {names}": lambda clf, X, names=names: clf.set_params(classes=names).start()
        for names in ([{}, {}], [{}], [[0], [1]])
    },
    "equal classes": lambda clf, X: clf.set_params(classes=("a", "a")).start(),
    "one name": lambda clf, X: clf.set_params(consecutive="yes").start(),
    "huge": lambda clf, X: clf.partial_fit(X * 1e200, None),
    "far away": lambda clf, X: clf.fit(X + 1e12, [0, 0, 0, 1, 1]),
    "level": lambda clf, X: clf.start().expected_accuracy_interval(90),
}


def nameless(prior):
    return replace(prior, space=replace(prior.space, classes=None))


def bare(clf):
    return clf.prior.without("class_means")


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(prior, few, case):
    clf = HierarchicalBlendClassifier(prior)
    with pytest.raises(ValueError):  # noqa: PT011
        REFUSED[case](clf, few[0])


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "interval", "forecast_labels"])
def test_nothing_is_told_before_there_is_anything(prior, ask):
    clf, X = HierarchicalBlendClassifier(prior), np.zeros((1, 3))
    calls = {
        "predict": lambda: clf.predict(X),
        "predict_proba": lambda: clf.predict_proba(X),
        "interval": lambda: clf.expected_accuracy_interval(),
        "forecast_labels": lambda: forecast_labels(clf, [4]),
    }
    with pytest.raises(NotFittedError):
        calls[ask]()
    assert not hasattr(clf, "expected_accuracy_")


def test_three_classes_have_no_direction(make_many):
    *others, person = make_many()
    prior = TaskPrior.from_tasks(others, rehearse=False)
    rule = HierarchicalBlendClassifier(prior).fit(person.X, person.y)
    assert not hasattr(rule, "projection_")


def test_what_is_refused_leaves_the_estimator_as_it_was(prior, person, few):
    X, y = few
    wrong = [
        (X[:, :2], None),
        (X[:, :2], y),
        (X, [9] * 5),
        (X, [None, 1]),
        (np.full((2, 3), np.nan), None),
    ]
    for blend in (
        HierarchicalBlendClassifier(prior).start(),
        HierarchicalBlendClassifier(prior).fit(X, y),
        HierarchicalBlendClassifier(prior).fit(X, y).partial_fit(person.X, None),
    ):
        before = blend.predict_proba(person.X)
        for rows, labels in wrong:
            with pytest.raises(ValueError, match=r".+"):
                blend.partial_fit(rows, labels)
            np.testing.assert_array_equal(blend.predict_proba(person.X), before)


def test_who_waits_for_a_class_answers_nothing(prior, few):
    X, y = few
    blend = HierarchicalBlendClassifier(prior, missing_class="error").start()
    blend.partial_fit(X[y == 0], y[y == 0])
    with pytest.raises(NotFittedError):
        blend.predict(X)
    assert_same(
        blend.partial_fit(X[y == 1], y[y == 1]), HierarchicalBlendClassifier(prior).fit(X, y), X
    )


def test_blends_of_directions_are_for_two_classes(many, of_many):
    for blend in BLENDS[:2]:
        with pytest.raises(PriorMismatchError, match="HierarchicalBlendClassifier"):
            blend(many).fit(*of_many)
    with pytest.raises(ValueError, match="two classes"):
        HierarchicalBlendClassifier(many).start().partial_fit(of_many[0], None)
    with pytest.raises(ValueError, match="class_prior"):
        HierarchicalBlendClassifier(many, class_prior=(0.2, 0.8)).fit(*of_many)


def test_other_names_of_many_classes(many, of_many):
    X, y = of_many
    plain = HierarchicalBlendClassifier(many).fit(X, y)
    names = dict(zip("abc", ("walk", "rest", "sit"), strict=True))
    other = HierarchicalBlendClassifier(many, classes=list(names.values()))
    other.fit(X, [names[one] for one in y])
    assert other.classes_.tolist() == ["rest", "sit", "walk"]
    assert other.predict(X).tolist() == [names[one] for one in plain.predict(X)]
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X)[:, [1, 2, 0]])
