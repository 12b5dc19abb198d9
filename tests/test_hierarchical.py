"""The hierarchical blend as an estimator: from no label on, one class, both; files and refusals."""

import json
import pickle
import warnings
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    TaskSet,
    forecast_labels,
    load_model,
    save_model,
)
from crossfade._files import digest_of
from crossfade.exceptions import MissingPartWarning, PriorMismatchError
from crossfade.prior._archive import content_of, pack, unpack

OLD = Path(__file__).parent / "contracts/golden/files"
BLENDS = (ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier)
VERBS = {"convex", "posterior", "hierarchical"}


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
    return MulticlassPrior.from_tasks(draw(10, 4, (9, 8, 10), 1, ("a", "b", "c"))[1:])


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


# -- from zero labels on ---------------------------------------------------------------------------


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


def test_from_the_first_label_on_the_crowd_gives_way(prior, few):
    X, y = few
    blend = HierarchicalBlendClassifier(prior).start()
    alphas = [blend.alpha_]
    for place in range(len(y)):
        alphas.append(blend.partial_fit(X[place : place + 1], y[place : place + 1]).alpha_)
    assert alphas[0] == 0.0
    assert all(0.0 < alpha < 1.0 for alpha in alphas[1:])
    more = HierarchicalBlendClassifier(prior).fit(np.tile(X, (20, 1)), np.tile(y, 20))
    assert more.alpha_ > alphas[-1]
    assert HierarchicalBlendClassifier(prior, in_a_row=False).fit(X, y).alpha_ > 0.0


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
    later = blend(prior).partial_fit(X, y).partial_fit(hidden[:2], None)
    later.partial_fit(hidden[2:], [None] * 3)
    assert_same(later, apart, person.X)
    plain = blend(prior).fit(X, y)
    assert not np.allclose(plain.intercept_, apart.intercept_, rtol=1e-6)


def test_text_labels_with_none_between(person):
    tasks = draw(9, names=("rest", "task"))
    prior = TaskPrior.from_tasks(tasks[1:])
    X = person.X[[0, 1, 12, 13, 14]]
    labels = np.array(["rest", None, "task", None, "task"], dtype=object)
    blend = HierarchicalBlendClassifier(prior).partial_fit(X, labels)
    assert blend.classes_.tolist() == ["rest", "task"]
    apart = HierarchicalBlendClassifier(prior).partial_fit(X[[1, 3]], None)
    apart.partial_fit(X[[0, 2, 4]], ["rest", "task", "task"])
    assert_same(blend, apart, person.X)


def test_weights_belong_to_the_labelled_samples(prior, person):
    X = person.X[[0, 1, 12, 13]]
    weighted = HierarchicalBlendClassifier(prior).partial_fit(
        X, [0, None, 1, None], sample_weight=[2.0, 9.0, 1.0, 0.0]
    )
    plain = HierarchicalBlendClassifier(prior).partial_fit(X[[0, 0, 2]], [0, 0, 1])
    assert_same(weighted, plain.partial_fit(X[[1, 3]], None), person.X)


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
    assert one.target_projection_ is None
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
    prior = TaskPrior.from_tasks(tasks, replay=False)
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
    print(f"mix {mix}: {plain:.4f} without, {more:.4f} with")
    assert more > plain - 0.005


# -- names, classes and proportions ----------------------------------------------------------------


def test_other_names_in_the_order_of_the_prior(prior, person, few):
    X, y = few
    plain = HierarchicalBlendClassifier(prior).fit(X, y)
    same = HierarchicalBlendClassifier(prior, classes=("calm", "stress"))
    same.fit(X, np.array(["calm", "stress"])[y])
    np.testing.assert_allclose(same.coef_, plain.coef_)
    # Names that sort the other way: the second is positive still.
    turned = HierarchicalBlendClassifier(prior, classes=("work", "idle"))
    turned.fit(X, np.array(["work", "idle"])[y])
    assert turned.classes_.tolist() == ["idle", "work"]
    np.testing.assert_allclose(turned.coef_, -plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(turned.intercept_, -plain.intercept_, rtol=1e-8)
    np.testing.assert_allclose(turned.means_, plain.means_[::-1], rtol=1e-8)
    assert turned.expected_accuracy_ == pytest.approx(plain.expected_accuracy_, rel=1e-8)
    first = HierarchicalBlendClassifier(prior, classes=("work", "idle")).start()
    names = np.where(HierarchicalBlendClassifier(prior).start().predict(person.X), "idle", "work")
    np.testing.assert_array_equal(first.predict(person.X), names)
    one = first.partial_fit(X[:2], ["work", "work"])
    wanted = HierarchicalBlendClassifier(prior).fit(X[:2], [0, 0])
    np.testing.assert_allclose(one.decision_function(X), -wanted.decision_function(X), rtol=1e-8)


def test_column_names_are_the_priors():
    columns = ["theta", "alpha", "beta"]
    tasks = [Task(pd.DataFrame(one.X, columns=columns), one.y) for one in draw(9)]
    prior = TaskPrior.from_tasks(tasks[1:])
    table = pd.DataFrame(np.asarray(tasks[0].X), columns=columns)
    blend = HierarchicalBlendClassifier(prior).start().partial_fit(table.iloc[:4], None)
    assert blend.feature_names_in_.tolist() == columns
    blend.partial_fit(table.iloc[[0, 12]], [0, 1])
    with pytest.raises(ValueError, match="feature names should match"):
        blend.predict(table[["alpha", "theta", "beta"]])
    wrong = table.rename(columns={"beta": "gamma"})
    with pytest.raises(PriorMismatchError, match=r"'gamma' stands where the prior has 'beta'"):
        HierarchicalBlendClassifier(prior).partial_fit(wrong, None)
    with pytest.raises(PriorMismatchError, match="Reorder or rename the columns"):
        HierarchicalBlendClassifier(prior).fit(wrong.iloc[[0, 12]], [0, 1])


def test_proportions_move_the_threshold_before_the_first_label(prior, person):
    plain = HierarchicalBlendClassifier(prior).start()
    rare = HierarchicalBlendClassifier(prior, class_prior=(0.9, 0.1)).start()
    np.testing.assert_array_equal(rare.class_prior_, [0.9, 0.1])
    assert rare.predict(person.X).mean() <= plain.predict(person.X).mean()
    odds = [np.log(one.predict_proba(person.X)) @ [-1.0, 1.0] for one in (plain, rare)]
    np.testing.assert_allclose(odds[1] - odds[0], np.log(0.1 / 0.9), atol=1e-9)
    np.testing.assert_allclose(rare.midpoint_, plain.midpoint_)
    assert rare.expected_accuracy_ >= 0.89


# -- priors that lack something, and other kinds of priors -----------------------------------------


@pytest.mark.parametrize("cell", ["without", "projections", "isotropic"])
def test_without_class_means_it_is_the_posterior_blend_and_says_so(prior, person, few, cell):
    known = {
        "without": lambda: prior.without("class_means"),
        "projections": lambda: TaskPrior.from_projections(
            np.eye(3) + np.array([3.0, 0.0, 0.0]), normalize=True
        ),
        "isotropic": lambda: TaskPrior.from_tasks(draw(9)[1:], isotropic=True),
    }[cell]()
    blend = HierarchicalBlendClassifier(known)
    with pytest.warns(
        MissingPartWarning, match=r"no class means, so that .*would help with few labels\. Build"
    ) as caught:
        blend.fit(*few)
    # It points to who called.
    assert [one.filename for one in caught] == [__file__]
    wanted = PosteriorBlendClassifier(known).fit(*few)
    np.testing.assert_array_equal(blend.coef_, wanted.coef_)
    assert blend.alpha_ == wanted.alpha_
    np.testing.assert_array_equal(blend.predict(person.X), wanted.predict(person.X))


def test_without_a_replay_theory_stands_alone(prior, person, few):
    """The rule is the same, and the interval wider or not is another; nothing is refused."""
    told = HierarchicalBlendClassifier(prior).fit(*few)
    alone = HierarchicalBlendClassifier(prior.without("replay")).fit(*few)
    np.testing.assert_array_equal(told.coef_, alone.coef_)
    assert told.expected_accuracy_ != alone.expected_accuracy_
    lower, upper = alone.expected_accuracy_interval()
    assert 0.0 <= lower < alone.expected_accuracy_ < upper <= 1.0
    assert alone.expected_accuracy_ >= 0.5
    assert alone.expected_accuracy_error_ > 0.0
    start = HierarchicalBlendClassifier(prior.without("replay")).start()
    assert 0.5 <= start.expected_accuracy_ < 1.0


@pytest.mark.parametrize("blend", BLENDS)
def test_settings_that_nobody_played_have_theorys_forecast(prior, few, blend):
    """A record belongs to a rule at its default settings."""
    other = {
        ConvexBlendClassifier: {"alpha": 0.5},
        PosteriorBlendClassifier: {"strength": 3.0},
        HierarchicalBlendClassifier: {"protect": False},
    }[blend]
    mine = blend(prior, **other).fit(*few)
    alone = blend(prior.without("replay"), **other).fit(*few)
    assert mine.expected_accuracy_ == alone.expected_accuracy_
    assert mine.expected_accuracy_interval(0.5) == alone.expected_accuracy_interval(0.5)
    default = blend(prior).fit(*few)
    assert default.expected_accuracy_ != blend(prior.without("replay")).fit(*few).expected_accuracy_


def test_without_a_prior_it_is_the_person_alone(few, person):
    blend = HierarchicalBlendClassifier().fit(*few)
    assert blend.alpha_ == 1.0
    plain = FisherDiscriminant().fit(*few)
    np.testing.assert_allclose(blend.projection_, plain.projection_)
    np.testing.assert_array_equal(blend.predict(person.X), plain.predict(person.X))
    assert blend.prior_ is None
    np.testing.assert_allclose(blend.means_[0], few[0][few[1] == 0].mean(0))


def test_sources_and_target_in_one_table(few, person):
    """skada's convention: the class means are those of the sources in the table."""
    tasks = draw(9)[1:]
    X = np.concatenate([*(one.X for one in tasks), few[0]])
    y = np.concatenate([*(one.y for one in tasks), few[1]])
    domain = np.concatenate([np.repeat(range(1, 9), 24), np.full(len(few[1]), -9)])
    blend = HierarchicalBlendClassifier().fit(X, y, sample_domain=domain)
    assert blend.prior_.n_tasks == 8
    wanted = HierarchicalBlendClassifier(TaskPrior.from_tasks(tasks)).fit(*few)
    assert_same(blend, wanted, person.X)


def test_a_multiclass_prior_of_two_classes_is_the_same(few, person, prior):
    two = MulticlassPrior.from_tasks(draw(9)[1:])
    assert two.class_means == prior.class_means
    assert two.replay["hierarchical"] == prior.replay["hierarchical"]
    for fit in (lambda one: one.fit(*few), lambda one: one.start()):
        mine, theirs = (fit(HierarchicalBlendClassifier(known)) for known in (two, prior))
        assert_same(mine, theirs, person.X)
        assert mine.member_ == pytest.approx(theirs.member_)
    unlabelled = HierarchicalBlendClassifier(two).fit(*few).partial_fit(person.X, None)
    assert_same(
        unlabelled,
        HierarchicalBlendClassifier(prior).fit(*few).partial_fit(person.X, None),
        person.X,
    )


# -- many classes ----------------------------------------------------------------------------------


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


def test_many_classes_without_class_means_are_the_posterior_blend(of_many, tmp_path):
    """As of two classes: with a warning, and all that can be asked of the other can be of this."""
    X, y = of_many
    tasks = draw(10, 4, (9, 8, 10), 1, ("a", "b", "c"))[1:]
    whole = MulticlassPrior.from_tasks(tasks)
    for prior in (
        whole.without("class_means"),
        MulticlassPrior.from_tasks(tasks, class_means=False),
    ):
        blend = HierarchicalBlendClassifier(prior)
        with pytest.warns(
            MissingPartWarning, match="holds no class means.*MulticlassPrior"
        ) as said:
            blend.fit(X, y)
        assert [one.filename for one in said] == [__file__]
        pairs = MulticlassBlend(PosteriorBlendClassifier(prior)).fit(X, y)
        np.testing.assert_allclose(blend.predict_proba(X), pairs.predict_proba(X), atol=1e-12)
        np.testing.assert_array_equal(blend.predict(X), pairs.predict(X))
        assert blend.expected_accuracy_ == pairs.expected_accuracy_
        assert blend.expected_accuracy_interval(0.8) == pairs.expected_accuracy_interval(0.8)
        more, wanted = (forecast_labels(one, [8]) for one in (blend, pairs))
        assert more.accuracy == wanted.accuracy
        save_model(blend, tmp_path / "model.json")
        loaded = load_model(tmp_path / "model.json")
        np.testing.assert_allclose(loaded.predict_proba(X), pairs.predict_proba(X), atol=1e-9)
        with pytest.raises(ValueError, match="Call fit with all of them"):
            blend.partial_fit(X, y)
        with pytest.raises(ValueError, match="only a crowd can answer that knows class means"):
            HierarchicalBlendClassifier(prior).start()


def test_what_a_prior_of_many_classes_holds(many):
    assert {"class_means", "replay", "half_gap"} <= set(many.holds)
    assert many.without("replay").replay is None
    assert "replay" not in many.without("replay").holds
    bare = many.without("class_means", "half_gap")
    assert not {"class_means", "half_gap"} & set(bare.holds)
    assert bare.replay is None
    # The pairs have records of their own, of the blends of directions.
    assert "replay" in bare.holds
    with pytest.raises(ValueError, match="part must be"):
        many.without("directionz")


def test_many_classes_of_which_some_have_no_label(many, of_many):
    X, y = of_many
    seen = y != "b"
    blend = HierarchicalBlendClassifier(many).fit(X[seen], y[seen])
    assert "b" in blend.predict(X)
    assert np.mean(blend.predict(X) == y) > 0.6


def test_many_classes_forecast_more_labels(many, of_many):
    X, y = of_many
    blend = HierarchicalBlendClassifier(many).fit(X, y)
    counts = tuple(np.unique(y, return_counts=True)[1].tolist())
    now, more = forecast_labels(blend, [counts, 5]).accuracy
    assert now == pytest.approx(blend.expected_accuracy_)
    assert 0.0 < more < 1.0


def test_many_classes_in_a_row_are_worth_less(many, of_many):
    X, y = of_many
    apart = HierarchicalBlendClassifier(many, in_a_row=False).fit(X, y)
    assert apart.alpha_ != HierarchicalBlendClassifier(many).fit(X, y).alpha_


# -- scikit-learn ----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def prior_for(n_features):
    """A prior with class means, as wide as X, that does not know the names of its classes."""
    rng = np.random.default_rng(75)
    label = np.repeat([0, 1], 10)
    # In the units of the checks, whose features are of about unit size.
    tasks = [
        Task(rng.normal(size=(20, n_features)) + rng.normal(size=(2, n_features))[label], label)
        for _ in range(8)
    ]
    return replace(TaskPrior.from_tasks(tasks, replay=n_features < 12), classes=None)


class HierarchicalWithPrior(HierarchicalBlendClassifier):
    """The hierarchical blend with a prior that it gets when it is fitted."""

    def fit(self, X, y, sample_domain=None, sample_weight=None):
        return self._with_a_prior(super().fit, X, y, sample_domain, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        return self._with_a_prior(super().partial_fit, X, y, classes, sample_weight)

    def _with_a_prior(self, fit, X, y, *more):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        wide = len(shape) == 2 and shape[1] > 0
        self.prior = prior_for(shape[1]) if wide else None
        try:
            return fit(X, y, *more)
        finally:
            # Parameters are as they were given.
            self.prior = None


# The checks have features of any size, which no one prior can have.
@pytest.mark.filterwarnings("ignore::crossfade.exceptions.UnitsWarning")
@parametrize_with_checks([HierarchicalBlendClassifier(), HierarchicalWithPrior()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_prior_of_the_checks_is_used(few):
    fitted = HierarchicalWithPrior().fit(*few)
    assert fitted.prior_.class_means is not None
    assert fitted.alpha_ < 1.0


def test_parameters_clone_and_pickle(prior, few, person, many, of_many):
    options = {
        "prior": prior,
        "protect": False,
        "on_missing_class": "prior",
        "classes": (0, 1),
        "class_prior": (0.4, 0.6),
        "in_a_row": False,
    }
    blend = HierarchicalBlendClassifier(**options)
    assert blend.get_params() == options
    again = clone(blend)
    assert again.prior is prior
    assert again.get_params() == options
    hidden = HierarchicalBlendClassifier(prior).fit(*few).partial_fit(person.X, None)
    for one in (blend.fit(*few), hidden, HierarchicalBlendClassifier(prior).start()):
        back = pickle.loads(pickle.dumps(one))
        assert_same(back, one, person.X, rtol=0.0)
        assert_same(
            back.partial_fit(*few), pickle.loads(pickle.dumps(one)).partial_fit(*few), person.X
        )
    of_three = HierarchicalBlendClassifier(many).fit(*of_many)
    assert_same(pickle.loads(pickle.dumps(of_three)), of_three, of_many[0], rtol=0.0)


def test_in_a_pipeline_and_cross_validation(prior, person):
    pipe = make_pipeline(FunctionTransformer(), HierarchicalBlendClassifier(prior))
    scores = cross_val_score(pipe, person.X, person.y, cv=3)
    assert scores.mean() > 0.7


def test_callers_arrays_stay_as_they_are(prior, person, few):
    X, y = (one.copy() for one in few)
    hidden = person.X.copy()
    HierarchicalBlendClassifier(prior).fit(X, y).partial_fit(hidden, None).predict(hidden)
    np.testing.assert_array_equal(X, few[0])
    np.testing.assert_array_equal(y, few[1])
    np.testing.assert_array_equal(hidden, person.X)


def test_a_fitted_blend_keeps_no_labelled_row(prior, few):
    blend = HierarchicalBlendClassifier(prior).fit(*few)
    kept = blend._moments.scatter
    for row in few[0]:
        assert not np.isclose(kept, row).all(-1).any()
    assert "_unlabelled" not in blend.__dict__


# -- model files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["both", "one", "none", "unlabelled"])
def test_a_saved_model_predicts_and_forecasts_the_same(prior, person, few, tmp_path, state):
    X, y = few
    blend = HierarchicalBlendClassifier(prior, class_prior=(0.3, 0.7))
    if state == "none":
        blend.start()
    elif state == "one":
        blend.fit(X[:2], y[:2])
    else:
        blend.fit(X, y)
        if state == "unlabelled":
            blend.partial_fit(person.X, None)
    path = tmp_path / "model.json"
    save_model(blend, path)
    rule = load_model(path)
    np.testing.assert_array_equal(rule.predict_proba(person.X), blend.predict_proba(person.X))
    np.testing.assert_array_equal(rule.predict(person.X), blend.predict(person.X))
    assert rule.expected_accuracy_ == blend.expected_accuracy_
    for level in (0.5, 0.9):
        assert rule.expected_accuracy_interval(level) == blend.expected_accuracy_interval(level)
    assert rule.alpha_ == blend.alpha_
    assert rule.n_labelled_ == {"none": (0.0, 0.0), "one": (2.0, 0.0)}.get(state, (3.0, 2.0))
    held = json.loads(path.read_text())
    assert held["version"] == 3
    assert held["blend"] == "HierarchicalBlendClassifier"
    # No window of this person is in it, labelled or not.
    numbers = json.dumps(held)
    assert not any(repr(float(value)) in numbers for value in person.X.ravel())


@pytest.mark.parametrize("state", ["all", "one", "none"])
def test_a_saved_model_of_many_classes_is_the_same(many, of_many, tmp_path, state):
    X, y = of_many
    blend = HierarchicalBlendClassifier(many)
    if state == "none":
        blend.start()
    else:
        kept = slice(None) if state == "all" else y == y[0]
        blend.fit(X[kept], y[kept])
    save_model(blend, tmp_path / "model.json")
    rule = load_model(tmp_path / "model.json")
    assert rule.coupling_ == "softmax"
    np.testing.assert_array_equal(rule.predict(X), blend.predict(X))
    np.testing.assert_allclose(rule.predict_proba(X), blend.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(rule.decision_function(X), blend.decision_function(X), rtol=1e-12)
    assert rule.expected_accuracy_ == blend.expected_accuracy_
    assert rule.expected_accuracy_interval(0.8) == blend.expected_accuracy_interval(0.8)


@pytest.mark.parametrize(
    ("field", "value"),
    [("mean", None), ("mean", "high"), ("spread", -1.0), ("dof", -2.0), ("deviation", 0.0)],
)
def test_a_calibration_that_is_none(prior, few, tmp_path, field, value):
    path = tmp_path / "model.json"
    save_model(HierarchicalBlendClassifier(prior).fit(*few), path)
    fields = json.loads(path.read_text())
    fields["calibration"][field] = [value]
    fields["forecast"][field] = value
    fields.pop("sha256")
    fields["sha256"] = digest_of(fields)
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="holds no valid model"):
        load_model(path)


# -- prior files, merging, sharing less ------------------------------------------------------------


def test_a_prior_survives_its_file_to_the_bit(prior, many, tmp_path):
    for known in (prior, many):
        path = tmp_path / f"{type(known).__name__}.npz"
        known.save(path)
        back = type(known).load(path)
        assert back == known
        assert back.class_means == known.class_means
        assert dict(back.replay) == dict(known.replay)
        path.with_suffix(".2").write_bytes(b"")
        back.save(path.with_suffix(".2"))
        assert path.read_bytes() == path.with_suffix(".2").read_bytes()
        assert pickle.loads(pickle.dumps(known)) == known
    back = TaskPrior.load(tmp_path / "TaskPrior.npz")
    assert back.holds == prior.holds
    X, y = draw(9)[0].X[::6], draw(9)[0].y[::6]
    mine, theirs = (HierarchicalBlendClassifier(one).fit(X, y) for one in (back, prior))
    assert_same(mine, theirs, X, rtol=0.0)


def test_a_file_without_the_parts_is_read(prior, tmp_path):
    bare = prior.without("class_means", "replay")
    bare.save(tmp_path / "prior.npz")
    back = TaskPrior.load(tmp_path / "prior.npz")
    assert back == bare
    assert back.class_means is None
    assert back.replay is None


DAMAGES = {
    "class_means.mean_sum": lambda one: one[:-1],
    "class_means.outer_sum": lambda one: one - 1e6 * np.eye(len(one)),
    "class_means.within_sum": lambda one: -one,
    "class_means.run_counts": lambda one: one - 100.0,
    "class_means.run_sums": lambda one: one[:5],
    "replay.posterior": lambda one: one[:7],
    "replay.convex": lambda one: np.where(np.arange(6) == 3, 0.0, one),
    "replay.hierarchical": lambda one: np.where(np.arange(6) == 0, -1.0, one),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_part_is_refused(prior, tmp_path, name):
    """Under a checksum that fits: sums that cannot be those of anybody, and ladders that differ."""
    path = tmp_path / "prior.npz"
    header, arrays = unpack(path, content_of(prior), "TaskPrior")
    path.write_bytes(pack(header, arrays))
    assert TaskPrior.load(path) == prior
    arrays[name] = np.ascontiguousarray(DAMAGES[name](arrays[name]))
    path.write_bytes(pack(header, arrays))
    with pytest.raises(ValueError, match=r"prior\.npz holds no valid prior: .* Ask for a file"):
        TaskPrior.load(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_people", 0.0),
        ("n_people", 99.0),
        ("n_people", "many"),
        ("n_people", None),
        ("n_within", -1.0),
        ("centred", 1),
        ("centred", "person"),
    ],
)
def test_a_damaged_number_of_the_class_means_is_refused(prior, tmp_path, field, value):
    path = tmp_path / "prior.npz"
    header, arrays = unpack(path, content_of(prior), "TaskPrior")
    header["class_means"][field] = value
    if value is None:
        del header["class_means"][field]
    path.write_bytes(pack(header, arrays))
    with pytest.raises(ValueError, match="holds no valid prior"):
        TaskPrior.load(path)


def halves(**options):
    tasks = draw(12)
    return [
        TaskPrior.from_tasks(part, feature_scale=np.ones(3), **options)
        for part in (tasks[:6], tasks[6:])
    ]


def test_merged_priors_keep_what_both_have():
    first, second = halves()
    whole = TaskPrior.from_tasks(draw(12), feature_scale=np.ones(3))
    both = first + second
    assert set(both.holds) == set(whole.holds)
    np.testing.assert_allclose(both.class_means.outer_sum, whole.class_means.outer_sum)
    assert set(both.replay) == VERBS
    for verb, record in both.replay.items():
        # Each site replays its own people.
        np.testing.assert_array_equal(
            record.sums, first.replay[verb].sums + second.replay[verb].sums
        )
    X, y = draw(12)[0].X[::6], draw(12)[0].y[::6]
    # What the crowd's covariance is worth, each site judges by its own people.
    sums = replace(whole.class_means, alike_sum=both.class_means.alike_sum)
    whole = replace(whole, class_means=sums)
    mine, theirs = (HierarchicalBlendClassifier(one).fit(X, y) for one in (both, whole))
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Only one of the two priors")
def test_what_only_one_side_has_is_given_up():
    first, second = halves()
    for mine, theirs in ((first, second.without("replay")), (first.without("replay"), second)):
        assert (mine + theirs).replay is None
        assert (mine + theirs).class_means is not None
    bare = first.without("class_means") + second
    assert bare.class_means is None
    assert "class_means" not in bare.holds
    some = replace(second, replay={"convex": second.replay["convex"]})
    assert set((first + some).replay) == {"convex"}
    none = replace(first, replay={"posterior": first.replay["posterior"]})
    assert (some + none).replay is None


def test_features_centred_person_by_person_do_not_mix_with_others():
    tasks = draw(12)
    plain, _ = halves()
    middle = [Task(one.X - one.X.mean(0), one.y) for one in tasks[6:]]
    centred = TaskPrior.from_tasks(middle, feature_scale=np.ones(3))
    assert centred.class_means.centred
    assert not plain.class_means.centred
    with pytest.raises(
        PriorMismatchError, match=r"centred person by person .*without\('class_means'\)"
    ):
        plain + centred
    # Done as it says, or stated for both.
    merged = plain.without("class_means") + centred.without("class_means")
    assert merged.n_tasks == 12
    told = TaskPrior.from_tasks(tasks[:6], feature_scale=np.ones(3), centred="person")
    assert (told + centred).class_means.centred
    not_so = TaskPrior.from_tasks(middle, feature_scale=np.ones(3), centred=None)
    assert not not_so.class_means.centred


def test_sharing_less(prior):
    assert prior.holds[-2:] == ("class_means", "replay")
    less = prior.without("class_means", "replay")
    assert set(prior.holds) - set(less.holds) == {"class_means", "replay"}
    assert less.n_tasks == prior.n_tasks
    assert prior.class_means is not None
    assert prior.without() == prior
    assert less.without("replay") == less
    with pytest.raises(ValueError, match=r"part must be one of .*'class_means', 'replay'; got 'x'"):
        prior.without("x")
    made = TaskPrior.from_tasks(draw(9)[1:], class_means=False, replay=False)
    assert made == less
    only = TaskPrior.from_tasks(draw(9)[1:], class_means=False)
    assert set(only.replay) == {"convex", "posterior"}


def test_priors_that_differ_in_a_part_are_not_equal(prior):
    for part in ("class_means", "replay"):
        assert prior.without(part) != prior
        assert prior.without(part) == prior.without(part)
    other = replace(prior, replay={**prior.replay, "convex": prior.replay["posterior"]})
    assert other != prior
    moved = replace(prior.class_means, mean_sum=prior.class_means.mean_sum + 1e-9)
    assert replace(prior, class_means=moved) != prior


def test_parts_cannot_be_changed(prior):
    with pytest.raises(TypeError):
        prior.replay["posterior"] = None
    with pytest.raises(AttributeError):
        prior.class_means.n_people = 3.0


def test_adding_directions_gives_up_both(prior, make_directions):
    assert not {"class_means", "replay"} & set(prior.update(make_directions(3, 3)).holds)


def test_the_classes_turned_round(prior, few, person):
    turned = prior.reversed()
    assert turned.class_means.reversed() == prior.class_means
    mine = HierarchicalBlendClassifier(turned).fit(few[0], 1 - few[1])
    theirs = HierarchicalBlendClassifier(prior).fit(*few)
    np.testing.assert_allclose(mine.coef_, -theirs.coef_, rtol=1e-8)
    assert mine.expected_accuracy_ == pytest.approx(theirs.expected_accuracy_, rel=1e-8)


@pytest.mark.filterwarnings("ignore::crossfade.exceptions.UncountedReleaseWarning")
def test_a_released_prior_drops_both(prior, few):
    pytest.importorskip("opendp")
    fixed = TaskPrior.from_tasks(draw(9)[1:], feature_scale=np.ones(3))
    released = fixed.released(5.0, 1e-5)
    assert released.class_means is None
    assert released.replay is None
    blend = HierarchicalBlendClassifier(released)
    with pytest.warns(MissingPartWarning, match="holds no class means"):
        blend.fit(*few)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lower, upper = blend.expected_accuracy_interval()
    assert lower < upper
    with pytest.raises(ValueError, match=r"knows class means.*call fit with labelled samples"):
        HierarchicalBlendClassifier(released).start()
    with pytest.raises(ValueError, match="leave these samples out"):
        HierarchicalBlendClassifier(released).partial_fit(few[0], None)


# -- who plays -------------------------------------------------------------------------------------


def test_people_with_fewer_windows_than_the_smallest_rung_do_not_play():
    """Five of each class are wanted for one label and four to test; three are too few."""
    small = TaskPrior.from_tasks(draw(6, 3, (3, 3)))
    for record in small.replay.values():
        np.testing.assert_array_equal(record.sums, 0.0)
    assert small.class_means is not None
    some = TaskPrior.from_tasks([*draw(6, 3, (3, 3)), *draw(7, 3, (9, 20), 6)])
    for record in some.replay.values():
        np.testing.assert_array_equal(record.n_people, [7, 7, 7, 7, 7, 0, 0, 0, 0])
    blend = HierarchicalBlendClassifier(small).fit(draw(6)[0].X[::6], draw(6)[0].y[::6])
    assert 0.5 <= blend.expected_accuracy_ < 1.0
    single = TaskPrior.from_tasks(draw(6, 3, (1, 1)))
    assert np.isfinite(HierarchicalBlendClassifier(single).start().coef_).all()


@pytest.mark.parametrize("n_people", [1, 2, 4])
def test_few_people_leave_no_record_to_learn_from(n_people):
    """Fewer than five players tell nothing: theory stands alone, and its interval is wide."""
    known = TaskPrior.from_tasks(draw(9)[:n_people])
    blend = HierarchicalBlendClassifier(known).fit(draw(9)[8].X[::6], draw(9)[8].y[::6])
    alone = HierarchicalBlendClassifier(known.without("replay")).fit(
        draw(9)[8].X[::6], draw(9)[8].y[::6]
    )
    assert blend.expected_accuracy_ == alone.expected_accuracy_
    lower, upper = blend.expected_accuracy_interval()
    assert lower < blend.expected_accuracy_ < upper


def test_of_many_people_300_play():
    rng = np.random.default_rng(76)
    label = np.repeat([0, 1], 5)
    tasks = [
        Task(rng.normal(size=(10, 2)) + np.outer(label, [1.0, 0.0]), label) for _ in range(320)
    ]
    known = TaskPrior.from_tasks(tasks)
    assert known.n_tasks == known.class_means.n_people == 320
    for record in known.replay.values():
        np.testing.assert_allclose(record.n_people, [300, 300, 0, 0, 0, 0, 0, 0, 0])


def test_replay_is_the_same_every_time():
    assert TaskPrior.from_tasks(draw(9)) == TaskPrior.from_tasks(draw(9))


def test_an_interval_grows_with_its_level(prior, few):
    blend = HierarchicalBlendClassifier(prior).fit(*few)
    ends = np.array([blend.expected_accuracy_interval(level) for level in (0.1, 0.5, 0.9, 0.99)])
    for (low, high), (lower, upper) in pairwise(ends):
        assert lower < low
        assert upper >= high
    assert blend.expected_accuracy_interval(1.0) == (0.0, 1.0)


# -- refusals --------------------------------------------------------------------------------------


def test_start_needs_a_crowd_with_class_means(prior, few):
    with pytest.raises(ValueError, match=r"only a crowd can answer: give a prior, .*or call fit"):
        HierarchicalBlendClassifier().start()
    bare = prior.without("class_means")
    for blend in BLENDS:
        with pytest.raises(
            ValueError,
            match=r"knows class means, and this prior holds none.*Build it with TaskPrior",
        ):
            blend(bare).start()
    unnamed = replace(prior, classes=None)
    with pytest.raises(ValueError, match=r"say what the classes are\. Pass classes=\(first, sec"):
        HierarchicalBlendClassifier(unnamed).start()
    assert HierarchicalBlendClassifier(unnamed, classes=(3, 4)).start().classes_.tolist() == [3, 4]
    assert HierarchicalBlendClassifier(unnamed).fit(*few).classes_.tolist() == [0, 1]


def test_windows_without_a_label_need_class_means(prior, few):
    for blend in BLENDS:
        for known in (None, prior.without("class_means")):
            with pytest.raises(
                ValueError, match=r"only with a prior that has class means\. Give one .*or leave"
            ):
                blend(known).partial_fit(few[0], None)


@pytest.mark.parametrize("nothing", [None, np.nan])
def test_labels_missing_everywhere(prior, person, few, nothing):
    """They are windows without a label for partial_fit; fit, which learns from labels, says so."""
    X, _ = few
    blend = HierarchicalBlendClassifier(prior).partial_fit(X, [nothing] * 5)
    assert_same(blend, HierarchicalBlendClassifier(prior).partial_fit(X, None), person.X, rtol=0.0)
    assert blend.alpha_ >= 0.0
    for labels, found in (([nothing] * 5, "5 of 5"), ([0, 0, 1, 1, nothing], "1 of 5")):
        for one in BLENDS:
            with pytest.raises(
                ValueError, match=f"{found} labels are missing, .* Use partial_fit, which takes"
            ):
                one(prior).fit(X, labels)


def test_labels_of_another_number(prior, few):
    with pytest.raises(ValueError, match="one label, None or NaN for each of the 5 samples; got 2"):
        HierarchicalBlendClassifier(prior).partial_fit(few[0], [None, 1])
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(2,\), expected \(5,\)"):
        HierarchicalBlendClassifier(prior).partial_fit(
            few[0], [None, 1, 0, 0, 1], sample_weight=[1.0, 1.0]
        )


def test_a_class_that_no_source_has(prior, few, many, of_many):
    X, _ = few
    with pytest.raises(PriorMismatchError, match=r"class 7, but the classes are \[0, 1\]. If the"):
        HierarchicalBlendClassifier(prior).fit(X, [0, 0, 0, 7, 7])
    with pytest.raises(PriorMismatchError, match=r"class 'rest', .*pass classes=\(first, second\)"):
        HierarchicalBlendClassifier(prior).start().partial_fit(X, ["rest"] * 3 + ["task"] * 2)
    # After windows without a label nothing is known of the labels' kind.
    unlabelled = HierarchicalBlendClassifier(prior).partial_fit(X, None)
    with pytest.raises(PriorMismatchError, match=r"class 'a', but the classes are"):
        unlabelled.partial_fit(X, ["a", "a", "b", "b", "b"])
    with pytest.raises(
        PriorMismatchError, match=r"class 'd', but the prior's classes are \['a', 'b', 'c'\]. Ren"
    ):
        HierarchicalBlendClassifier(many).fit(of_many[0], ["d"] * len(of_many[0]))


def test_what_is_refused_leaves_the_estimator_as_it_was(prior, person, few, many, of_many):
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
    blend = HierarchicalBlendClassifier(many).start()
    before = blend.predict_proba(of_many[0])
    for rows, labels in (
        (of_many[0][:, :2], of_many[1]),
        (of_many[0], ["z"] * len(of_many[0])),
        (of_many[0], None),
    ):
        with pytest.raises(ValueError, match=r".+"):
            blend.partial_fit(rows, labels)
        np.testing.assert_array_equal(blend.predict_proba(of_many[0]), before)


def test_one_class_where_the_crowd_may_not_answer(prior, few):
    X, _ = few
    with pytest.raises(
        ValueError, match=r"5 labelled samples of class 0 and 0 of 1. Label at least 1 sample of 1"
    ):
        HierarchicalBlendClassifier(prior, on_missing_class="error").fit(X, [0] * 5)
    with pytest.raises(
        ValueError, match="on_missing_class must be one of 'auto', 'error', 'prior'"
    ):
        HierarchicalBlendClassifier(prior, on_missing_class="guess").fit(X, [0] * 5)


def test_parameters_that_are_none(prior, few):
    with pytest.raises(TypeError, match="protect must be True or False; got 'yes'"):
        HierarchicalBlendClassifier(prior, protect="yes").fit(*few)
    with pytest.raises(TypeError, match="prior must be a TaskPrior or None"):
        HierarchicalBlendClassifier(3).start()
    with pytest.raises(ValueError, match="classes must be two different labels"):
        HierarchicalBlendClassifier(prior, classes=("a", "a")).start()
    with pytest.raises(ValueError, match=r"centred must be 'auto', 'person' or None; got 'yes'"):
        TaskPrior.from_tasks(draw(9), centred="yes")
    blend = HierarchicalBlendClassifier(prior).fit(*few)
    for level in (1.5, -0.1, "most", None):
        with pytest.raises((TypeError, ValueError), match="level must be a number from 0 to 1"):
            blend.expected_accuracy_interval(level)


def test_nothing_is_told_before_there_is_anything(prior, few, many):
    for known in (prior, many):
        blend = HierarchicalBlendClassifier(known)
        for ask in (
            lambda one: one.predict(np.zeros((1, one.prior.n_features))),
            lambda one: one.predict_proba(np.zeros((1, one.prior.n_features))),
            lambda one: one.expected_accuracy_,
            lambda one: one.expected_accuracy_interval(),
            lambda one: forecast_labels(one, [4]),
        ):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                ask(blend)


def test_budgets_stay_as_given(prior, few):
    blend = HierarchicalBlendClassifier(prior).fit(*few)
    least = int(blend._moments.counts.max())
    told = forecast_labels(blend, [least, (least + 9, least)])
    assert told.budgets == (least, (least + 9, least))
    with pytest.warns(UserWarning, match="takes some of them back"):
        forecast_labels(blend, [(40, 1)])
    with pytest.raises(ValueError, match=r"not shares of them; got \[0.5\]"):
        forecast_labels(blend, [0.5])
    for level in (90, 90.0):
        with pytest.raises(ValueError, match=r"from 0 to 1; got 90.*For 90 % pass 0\.9\."):
            blend.expected_accuracy_interval(level)


def test_more_labels_that_cannot_be_told(prior, few, many, of_many):
    blend = HierarchicalBlendClassifier(prior).fit(*few)
    for budgets in ([-1], [(3, -2)], [np.inf], [np.nan]):
        with pytest.raises(ValueError, match="numbers of at least 0 samples of each class; got"):
            forecast_labels(blend, budgets)
    for budgets in (5, ["a"], [(1, 2, 3)], []):
        with pytest.raises(
            ValueError, match=r"one for each of 2 classes, such as \[4, 8, \(24, 2\)\]"
        ):
            forecast_labels(blend, budgets)
    start = HierarchicalBlendClassifier(prior).start()
    told = forecast_labels(start, [0, 8])
    assert told.accuracy[0] == pytest.approx(start.expected_accuracy_)
    alone = prior.without("replay")
    with pytest.raises(ValueError, match="without labelled samples of both classes"):
        forecast_labels(HierarchicalBlendClassifier(alone).start(), [8])
    unplayed = replace(many, replay=None)
    with pytest.raises(ValueError, match=r"prior that has replayed its people: .*from_tasks does"):
        forecast_labels(HierarchicalBlendClassifier(unplayed).fit(*of_many), [8])


def test_more_labels_cannot_be_told_without_a_record(prior):
    task = draw(9, seed=20)[0]
    blend = HierarchicalBlendClassifier(prior.without("replay")).fit(task.X[::6], task.y[::6])
    with pytest.raises(ValueError, match="a prior that has replayed its people"):
        forecast_labels(blend, [2])


def test_many_classes_refuse_what_is_for_two(many, of_many):
    X, y = of_many
    for name, value in (("classes", ("a", "b")), ("class_prior", (0.2, 0.8))):
        with pytest.raises(ValueError, match=f"{name} is about two classes, and the prior has 3"):
            HierarchicalBlendClassifier(many, **{name: value}).fit(X, y)
    with pytest.raises(ValueError, match=r"without a label are for two classes: .*Leave them out"):
        HierarchicalBlendClassifier(many).start().partial_fit(X, None)
    with pytest.raises(ValueError, match=r"sample_domain is for two classes\. Build a Multiclass"):
        HierarchicalBlendClassifier(many).fit(X, y, sample_domain=np.ones(len(y), int))
    with pytest.raises(ValueError, match=r"9 of 9|\d of \d labels are missing"):
        HierarchicalBlendClassifier(many).fit(X, [None] * len(y))
    with pytest.raises(TypeError, match=r"rule for two classes\. Use MulticlassBlend"):
        PosteriorBlendClassifier(many).start()


def test_huge_features_without_a_label_are_refused(prior):
    with pytest.raises(ValueError, match=r"beyond what a number can hold\. Rescale"):
        HierarchicalBlendClassifier(prior).partial_fit(np.full((3, 3), 1e200), None)


# -- what is lost, and what stays --------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Only one of the two priors")
def test_a_blend_that_falls_back_is_forecast_as_what_it_is(prior, few):
    lesser = prior.without("class_means")
    assert set(lesser.replay) == {"convex", "posterior"}
    with pytest.warns(MissingPartWarning):
        fallen = HierarchicalBlendClassifier(lesser).fit(*few)
    plain = PosteriorBlendClassifier(lesser).fit(*few)
    np.testing.assert_array_equal(fallen.coef_, plain.coef_)
    assert fallen.expected_accuracy_ == plain.expected_accuracy_
    assert fallen.expected_accuracy_interval() == plain.expected_accuracy_interval()
    np.testing.assert_array_equal(fallen.predict_proba(few[0]), plain.predict_proba(few[0]))
    first, second = halves()
    assert set((first + second.without("class_means")).replay) == {"convex", "posterior"}


def test_without_a_label_the_average_covariance_follows_from_the_class_means(prior):
    for blend in (PosteriorBlendClassifier, ConvexBlendClassifier):
        for parts in ((), ("replay",)):
            whole = blend(prior.without(*parts)).start()
            lesser = blend(prior.without("within_covariance", *parts)).start()
            assert lesser.expected_accuracy_ == pytest.approx(whole.expected_accuracy_, abs=1e-6)
            X = prior.feature_scale * np.eye(3)
            np.testing.assert_allclose(lesser.predict_proba(X), whole.predict_proba(X), atol=1e-6)


def test_two_classes_as_many_have_probabilities(few):
    tasks = draw(9)
    many = MulticlassBlend(HierarchicalBlendClassifier(MulticlassPrior.from_tasks(tasks)))
    plain = HierarchicalBlendClassifier(TaskPrior.from_tasks(tasks)).fit(*few)
    np.testing.assert_allclose(many.fit(*few).predict_proba(few[0]), plain.predict_proba(few[0]))
    assert many.expected_accuracy_interval() == pytest.approx(plain.expected_accuracy_interval())


def test_many_classes_by_pairs_have_an_interval(many, of_many):
    blend = MulticlassBlend(PosteriorBlendClassifier(many)).fit(*of_many)
    narrow, wide = (blend.expected_accuracy_interval(level) for level in (0.68, 0.9))
    assert wide[0] < narrow[0] < blend.expected_accuracy_ < narrow[1] < wide[1]


def test_cards_say_that_class_means_are_shared(prior):
    holds = prior.card_data()["holds"]
    assert holds["sums of class means"]
    assert holds["what forecasts were worth"]
    assert "sums of class means, what forecasts were worth" in prior.card()
    lesser = prior.without("class_means", "replay")
    assert "class means" not in lesser.card()


def test_columns_are_compared_with_the_priors_before_the_first_sample(few):
    names = ["a", "b", "c"]
    tasks = [Task(pd.DataFrame(task.X, columns=names), task.y) for task in draw(9)]
    blend = HierarchicalBlendClassifier(TaskPrior.from_tasks(tasks)).start()
    frame = pd.DataFrame(few[0], columns=names)
    np.testing.assert_array_equal(blend.predict(frame), blend.predict(few[0]))
    with pytest.raises(PriorMismatchError, match=r"features of X are not .*Reorder or rename"):
        blend.predict(frame[names[::-1]])


def test_who_waits_for_a_class_answers_nothing(prior, few):
    blend = PosteriorBlendClassifier(prior, on_missing_class="error").start()
    X, y = few
    blend.partial_fit(X[y == 0], y[y == 0])
    with pytest.raises(NotFittedError, match="no labelled sample of class"):
        blend.predict(X)


def test_a_prior_that_cannot_use_the_unlabelled_samples_is_refused_in_words(prior, few):
    blend = PosteriorBlendClassifier(prior).start().partial_fit(few[0], None)
    blend.set_params(prior=prior.without("class_means"))
    with pytest.raises(ValueError, match="Call fit, which forgets them, or give such a prior"):
        blend.partial_fit(*few)


def test_what_pandas_has_for_a_missing_label(prior, few):
    X, y = few
    labels = pd.Series([*y[:3], pd.NA], dtype="Int64")
    with_gap = PosteriorBlendClassifier(prior).start().partial_fit(X[:4], labels)
    plain = PosteriorBlendClassifier(prior).start().partial_fit(X[:3], y[:3])
    plain.partial_fit(X[3:4], None)
    np.testing.assert_allclose(with_gap.coef_, plain.coef_)


def test_class_means_beyond_what_a_file_holds_are_refused(make_tasks):
    tasks = make_tasks()
    far = TaskSet(Task(one.X * 1e15 + 1e21, one.y, one.name) for one in tasks)
    with pytest.raises(ValueError, match=r"deviations from zero, too far to tell anything apart"):
        TaskPrior.from_tasks(far, feature_scale=np.ones(tasks[0].X.shape[1]))
    kept = TaskPrior.from_tasks(
        TaskSet(Task(one.X + 1e8, one.y, one.name) for one in tasks),
        feature_scale=np.ones(tasks[0].X.shape[1]),
    )
    assert "class_means" in kept.holds
