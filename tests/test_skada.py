"""Blends in skada's pipelines, splitters and scorers."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade import (
    CalibrationStudy,
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    load_mental_math,
)

# skada turns metadata routing on for everybody; other tests are to see the default.
_before = sklearn.get_config()
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        skada = pytest.importorskip("skada", reason="skada is not installed: pip install skada")
        from skada import metrics, model_selection
finally:
    sklearn.set_config(**_before)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BLENDS = [ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier]
SPLITTERS = [
    model_selection.SourceTargetShuffleSplit(n_splits=2, random_state=0),
    model_selection.DomainShuffleSplit(n_splits=2, random_state=0),
    model_selection.StratifiedDomainShuffleSplit(n_splits=2, random_state=0),
]
SCORERS = [metrics.PredictionEntropyScorer, metrics.SoftNeighborhoodDensity, metrics.MixValScorer]


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def people():
    """Rows of nine people, of whom the last is the target."""
    tasks = load_mental_math(features="log-powers")[:9]
    domain = np.repeat([*range(1, 9), -9], [len(task.y) for task in tasks])
    X, y = np.vstack([task.X for task in tasks]), np.concatenate([task.y for task in tasks])
    return X, y, domain, domain < 0


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("labels", ["none", "some"])
def test_a_pipeline_equals_the_steps_by_hand(people, blend, labels):
    X, y, domain, target = people
    hidden = target & ((np.arange(len(y)) % 5 != 0) | (labels == "none"))
    masked = np.where(hidden, -1, y)
    pipeline = skada.make_da_pipeline(
        StandardScaler(), blend(), mask_target_labels=labels == "none"
    )
    pipeline.fit(X, masked.copy(), sample_domain=domain)
    scaled = StandardScaler().fit_transform(X)
    rule = blend().fit(scaled, masked, sample_domain=domain)
    own = {"sample_domain": domain[target]}
    for name in ("predict", "predict_proba", "decision_function"):
        answers = getattr(pipeline, name)(X[target], **own)
        np.testing.assert_allclose(answers, getattr(rule, name)(scaled[target], **own))
        np.testing.assert_allclose(answers, getattr(rule, name)(scaled[target]))
    score = pipeline.score(X[target], y[target], **own)
    assert score == rule.score(scaled[target], y[target], **own)
    assert score == rule.score(scaled[target], y[target])


@pytest.mark.parametrize("cv", SPLITTERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("scoring", [None, *SCORERS])
def test_splitters_and_scorers_take_the_bare_estimator(people, cv, scoring):
    X, y, domain, _ = people
    found = cross_validate(
        PosteriorBlendClassifier(),
        X,
        y,
        cv=cv,
        params={"sample_domain": domain},
        scoring=None if scoring is None else scoring(),
        error_score="raise",
    )
    assert np.isfinite(found["test_score"]).all()
    assert len(found["test_score"]) == 2


def test_each_domain_may_be_the_target_in_turn(people):
    X, y, domain, _ = people
    X, y, domain = np.vstack([X, X]), np.r_[y, y], np.r_[abs(domain), -abs(domain)]
    cv = model_selection.LeaveOneDomainOut(max_n_splits=3, test_size=0.3, random_state=0)
    found = cross_validate(
        PosteriorBlendClassifier(),
        X,
        y,
        cv=cv,
        params={"sample_domain": domain},
        error_score="raise",
    )
    for score, (train, test) in zip(
        found["test_score"], cv.split(X, y, sample_domain=domain), strict=True
    ):
        rule = PosteriorBlendClassifier().fit(X[train], y[train], sample_domain=domain[train])
        assert rule.prior_.n_tasks == 8
        assert score == (rule.predict(X[test]) == y[test]).mean()


def test_scores_of_masked_labels(people):
    X, y, domain, target = people
    found = cross_validate(
        HierarchicalBlendClassifier(),
        X,
        np.where(target, -1, y),
        cv=SPLITTERS[0],
        params={"sample_domain": domain, "target_labels": y},
        scoring=metrics.SupervisedScorer(),
        error_score="raise",
    )
    assert ((found["test_score"] >= 0.0) & (found["test_score"] <= 1.0)).all()


def test_weights_of_a_scorer_are_asked_for(people):
    X, y, domain, _ = people
    found = cross_validate(
        PosteriorBlendClassifier().set_score_request(sample_weight=True),
        X,
        y,
        cv=SPLITTERS[0],
        params={"sample_domain": domain},
        scoring=metrics.ImportanceWeightedScorer(),
        error_score="raise",
    )
    assert np.isfinite(found["test_score"]).all()


def test_what_the_page_says_of_labels(people):
    X, y, domain, _ = people
    text = np.array(["rest", "arithmetic"])[y]
    assert PosteriorBlendClassifier().fit(X, text, sample_domain=domain).alpha_ > 0.0
    pipeline = skada.make_da_pipeline(PosteriorBlendClassifier())
    with pytest.raises(ValueError, match="mask"):
        pipeline.fit(X, 2 * y - 1, sample_domain=domain)
    with pytest.raises(ValueError, match="missing"):
        PosteriorBlendClassifier().fit(X, np.where(domain < 0, np.nan, y), sample_domain=domain)


def test_a_plain_pipeline_keeps_the_labels_that_there_are(people):
    # What the page advises: skada's own pipeline forgets mask_target_labels when it is cloned.
    X, y, domain, _ = people
    theirs = skada.make_da_pipeline(
        StandardScaler(), PosteriorBlendClassifier(), mask_target_labels=False
    )
    assert sklearn.clone(theirs)[-1].mask_target_labels
    plain = make_pipeline(StandardScaler(), PosteriorBlendClassifier())
    before = y.copy()
    sklearn.clone(plain).fit(X, y, sample_domain=domain)
    plain.fit(X, y, sample_domain=domain)
    np.testing.assert_array_equal(y, before)
    assert plain[-1].alpha_ > 0.0


def test_two_targets_are_refused_through_a_pipeline(people):
    X, y, domain, _ = people
    two = np.where(domain == 8, -8, domain)
    pipeline = skada.make_da_pipeline(StandardScaler(), PosteriorBlendClassifier())
    with pytest.raises(ValueError, match="one target"):
        pipeline.fit(X, y.copy(), sample_domain=two)


@pytest.mark.parametrize("masks", [True, False])
def test_a_pipeline_of_skada_in_a_study_gets_the_sources(masks):
    tasks = load_mental_math(features="log-powers")[:4]
    steps = [StandardScaler(), *([skada.CORALAdapter()] if masks else []), LogisticRegression()]
    pipeline = skada.make_da_pipeline(*steps, mask_target_labels=masks)
    study = CalibrationStudy(
        tasks, methods={"mine": pipeline}, budgets=[3], splits="chronological", random_state=0
    )
    [row] = study.run().rows.query("task == 'Subject03'").itertuples()
    own = tasks[3]
    labelled = np.concatenate([np.flatnonzero(own.y == name)[:3] for name in (0, 1)])
    test = np.setdiff1d(np.arange(len(own.y)), labelled)
    X = np.vstack([*(task.X for task in tasks[:3]), own.X[labelled]])
    y = np.concatenate([*(task.y for task in tasks[:3]), own.y[labelled]])
    domain = np.repeat([1, 2, 3, -4], [*(len(task.y) for task in tasks[:3]), 6])
    pipeline.fit(X, y.copy(), sample_domain=domain)
    assert row.accuracy == pytest.approx((pipeline.predict(own.X[test]) == own.y[test]).mean())
    # The area is that of a rule which saw the labels of the target, or did not.
    assert row.roc_auc == pytest.approx(
        roc_auc_score(own.y[test], pipeline.predict_proba(own.X[test])[:, 1])
    )
