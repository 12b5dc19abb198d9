"""A transformer that goes with a prior: fitted on the crowd, applied by the blend, saved."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    MixturePrior,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    forecast_labels,
    load_mental_math,
    load_model,
    save_model,
)
from crossfade.exceptions import MissingPartWarning, PriorMismatchError
from crossfade.prior._compatibility import misfits
from crossfade.prior._transform import Affine, Transform
from crossfade.prior._units import unit_misfits

BLENDS = [ConvexBlendClassifier, PosteriorBlendClassifier, HierarchicalBlendClassifier]
LOG = FunctionTransformer(np.log)


@pytest.fixture(scope="module")
def people():
    return load_mental_math()


@pytest.fixture(scope="module")
def sources(people):
    return list(people[1:19])


@pytest.fixture(scope="module")
def scaled(sources):
    return TaskPrior.from_tasks(sources, transform=StandardScaler())


@pytest.fixture(scope="module")
def logs(sources):
    return TaskPrior.from_tasks(sources, transform=make_pipeline(LOG, StandardScaler()))


@pytest.fixture(scope="module")
def few(people):
    y = np.asarray(people[0].y)
    rows = np.concatenate([np.flatnonzero(y == name)[:5] for name in (0, 1)])
    return np.asarray(people[0].X)[rows], y[rows]


def by_hand(transformer, sources):
    """The transformer, fitted to all windows, and the sources as it has them."""
    fitted = clone(transformer).fit(
        np.concatenate([task.X for task in sources]), np.concatenate([task.y for task in sources])
    )
    return fitted, [Task(fitted.transform(task.X), task.y, task.name) for task in sources]


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        PCA(4),
        make_pipeline(RobustScaler(), PCA(5, whiten=True)),
        make_pipeline(LOG, StandardScaler()),
        PolynomialFeatures(2, include_bias=False, interaction_only=True),
    ],
    ids=["scaler", "pca", "robust", "log", "products"],
)
def test_a_blend_does_what_one_would_by_hand(people, sources, few, transformer, blend):
    X, y = few
    prior = TaskPrior.from_tasks(sources, transform=transformer)
    fitted, others = by_hand(transformer, sources)
    plain = TaskPrior.from_tasks(others)
    assert prior.n_features == plain.n_features == fitted.transform(X).shape[1]
    assert (prior.n_features_in, prior.feature_names_in) == (9, people.feature_names)
    ours, theirs = blend(prior).fit(X, y), blend(plain).fit(fitted.transform(X), y)
    new = np.asarray(people[0].X)
    for name in ("decision_function", "predict_proba"):
        found, wanted = getattr(ours, name)(new), getattr(theirs, name)(fitted.transform(new))
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(fitted.transform(new)))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    assert ours.expected_accuracy_ == pytest.approx(theirs.expected_accuracy_, abs=1e-7)
    more, wanted = (forecast_labels(one, [8, 16]).accuracy for one in (ours, theirs))
    np.testing.assert_allclose(more, wanted, atol=1e-7)
    assert ours.n_features_in_ == 9
    assert ours.coef_.shape == (1, prior.n_features)


def test_scaling_neither_gains_nor_loses(people, sources, scaled, few):
    """The prior has its own scale, so that a scaler on both sides changes nothing."""
    plain = HierarchicalBlendClassifier(TaskPrior.from_tasks(sources)).fit(*few)
    both = HierarchicalBlendClassifier(scaled).fit(*few)
    np.testing.assert_allclose(
        both.predict_proba(people[0].X), plain.predict_proba(people[0].X), atol=1e-6
    )


def test_names_are_those_of_both_spaces(people, sources, scaled, few):
    assert scaled.feature_names == people.feature_names
    components = TaskPrior.from_tasks(sources, transform=PCA(3))
    assert components.feature_names == ("pca0", "pca1", "pca2")
    assert components.feature_names_in == people.feature_names
    assert TaskPrior.from_tasks(sources, transform=LOG).feature_names is None
    frame = pd.DataFrame(few[0], columns=list(people.feature_names))
    blend = PosteriorBlendClassifier(components).fit(frame, few[1])
    assert blend.feature_names_in_.tolist() == list(people.feature_names)
    blend.predict(frame)
    with pytest.raises(PriorMismatchError, match=r"'Fz_alpha' stands where the prior has 'Fz_th"):
        PosteriorBlendClassifier(components).fit(frame.iloc[:, [1, 0, *range(2, 9)]], few[1])
    with pytest.raises(PriorMismatchError, match=r"X has 3 features, but the prior has 9, 'Fz_th"):
        PosteriorBlendClassifier(components).fit(few[0][:, :3], few[1])


def test_partial_fit_and_start_take_raw_windows(people, scaled, logs, few):
    X, y = few
    new = np.asarray(people[0].X)
    for prior in (scaled, logs):
        whole = HierarchicalBlendClassifier(prior).fit(X, y)
        blend = HierarchicalBlendClassifier(prior).start()
        assert blend.n_features_in_ == 9
        names = pd.DataFrame(new, columns=list(people.feature_names))
        np.testing.assert_array_equal(blend.predict(names), blend.predict(new))
        with pytest.raises(PriorMismatchError, match="not those of the prior"):
            blend.predict(names.iloc[:, ::-1])
        for row, label in zip(X, y, strict=True):
            blend.partial_fit([row], [label])
        np.testing.assert_allclose(
            blend.decision_function(new), whole.decision_function(new), atol=1e-9
        )
        mixed = HierarchicalBlendClassifier(prior).start()
        mixed.partial_fit(new[:20], [None] * 10 + np.asarray(people[0].y)[10:20].tolist())
        assert np.isfinite(mixed.decision_function(new)).all()


def test_many_classes(make_many):
    tasks = make_many(n_tasks=9)
    sources = [replace(task, X=np.exp(task.X / 3.0)) for task in tasks[1:]]
    X, y = np.exp(np.asarray(tasks[0].X) / 3.0), np.asarray(tasks[0].y)
    for transformer in (StandardScaler(), make_pipeline(LOG, PCA(3))):
        fitted, others = by_hand(transformer, sources)
        for strategy in ("pairwise", "one-vs-rest"):
            options = {"strategy": strategy, "replay": False}
            prior = MulticlassPrior.from_tasks(sources, transform=transformer, **options)
            plain = MulticlassPrior.from_tasks(others, **options)
            assert (prior.n_features_in, prior.n_features) == (4, plain.n_features)
            pairs = [
                (MulticlassBlend(PosteriorBlendClassifier(one), strategy), rows)
                for one, rows in ((prior, X), (plain, fitted.transform(X)))
            ]
            (ours, _), (theirs, mapped) = pairs
            ours.fit(X, y)
            theirs.fit(mapped, y)
            np.testing.assert_allclose(
                ours.predict_proba(X), theirs.predict_proba(mapped), atol=1e-8
            )
            rule = next(iter(ours.rules_.values()))
            assert rule.n_features_in_ == 4
            wanted = next(iter(theirs.rules_.values())).decision_function(mapped)
            np.testing.assert_allclose(rule.decision_function(X), wanted, atol=1e-8)
        hierarchical = HierarchicalBlendClassifier(
            MulticlassPrior.from_tasks(sources, transform=transformer, replay=False)
        ).fit(X, y)
        assert hierarchical.score(X, y) > 0.5
        pair = prior[prior.pairs[0]]
        assert pair.transform == prior.transform
    with pytest.raises(ValueError, match=r"has another transform than the others"):
        replace(prior, priors={**prior.priors, prior.pairs[0]: replace(pair, transform=None)})


def test_two_classes_of_many(sources, few, scaled):
    prior = MulticlassPrior.from_tasks(sources, transform=StandardScaler(), replay=False)
    wanted = PosteriorBlendClassifier(scaled).fit(*few).decision_function(few[0])
    for blend in (
        MulticlassBlend(PosteriorBlendClassifier(prior)),
        MulticlassBlend(PosteriorBlendClassifier(scaled)),
    ):
        [rule] = blend.fit(*few).rules_.values()
        np.testing.assert_allclose(rule.decision_function(few[0]), wanted, atol=1e-9)
        assert blend.predict(few[0]).tolist() == (wanted > 0.0).astype(int).tolist()


# -- which maps are affine ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transformer", "affine"),
    [
        (StandardScaler(), True),
        (MinMaxScaler(), True),
        (PCA(3, whiten=True), True),
        (FunctionTransformer(lambda X: X[:, :6] @ np.arange(12.0).reshape(6, 2) + 7.0), True),
        (FunctionTransformer(None), True),
        (MinMaxScaler(clip=True), False),
        (LOG, False),
        (FunctionTransformer(np.abs), False),
        (FunctionTransformer(lambda X: X - X.mean(1, keepdims=True)), True),
        (FunctionTransformer(lambda X: X / X.sum(1, keepdims=True)), False),
    ],
)
def test_an_affine_map_is_known_by_what_it_does(sources, transformer, affine):
    prior = TaskPrior.from_tasks(sources, replay=False, transform=transformer)
    assert (prior.transform.affine is not None) == affine


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_an_affine_map_is_exact_far_from_zero(make_tasks, offset):
    tasks = [replace(task, X=1e-3 * np.asarray(task.X) + offset) for task in make_tasks()]
    for transformer in (StandardScaler(), PCA(3)):
        _, others = by_hand(transformer, tasks)
        kept = TaskPrior.from_tasks(tasks, replay=False, transform=transformer).transform
        assert isinstance(kept.apply, Affine)
        rows = np.asarray(tasks[0].X)
        # PCA itself loses digits so far from zero.
        tolerance = 1e-12 + (1e-15 * abs(offset) if isinstance(transformer, PCA) else 0.0)
        np.testing.assert_allclose(kept(rows), others[0].X, rtol=0.0, atol=tolerance)


def test_what_transforms_nothing_is_refused(sources):
    for wrong in (StandardScaler, np.log, "scale", PosteriorBlendClassifier()):
        with pytest.raises(TypeError, match="must be a scikit-learn transformer"):
            TaskPrior.from_tasks(sources, transform=wrong)
    with pytest.raises(TypeError, match="transform must be that of another prior"):
        replace(TaskPrior.from_tasks(sources, replay=False), transform=StandardScaler())
    bad = FunctionTransformer(lambda X: np.where(X > 0.3, X, np.nan))
    with pytest.raises(ValueError, match="X after the prior's transform must be finite"):
        TaskPrior.from_tasks(sources, transform=bad)


def test_windows_that_cannot_be_transformed_are_refused(logs, sources, few):
    blend = PosteriorBlendClassifier(logs).fit(*few)
    zeros = np.where(few[0] > 0.4, 0.0, few[0])
    with pytest.raises(ValueError, match=r"transform, Pipeline, refuses X: .* infinity"):
        blend.predict(zeros)
    alone = PosteriorBlendClassifier(TaskPrior.from_tasks(sources, transform=LOG)).fit(*few)
    with pytest.raises(ValueError, match="X after the prior's transform must be finite"):
        alone.predict(zeros)
    with pytest.raises(ValueError, match="contains NaN"):
        blend.predict(np.where(few[0] > 0.4, np.nan, few[0]))


# -- what a prior can do with it ------------------------------------------------------------


def test_priors_of_one_transform_merge(people, sources, scaled):
    others = list(people[19:])
    scale = {"feature_scale": scaled.feature_scale}
    there = TaskPrior.from_tasks(others, transform=scaled.transform, **scale)
    assert there.transform == scaled.transform
    assert (scaled.transform.learnt, there.transform.learnt) == (True, False)
    for both in (scaled + there, there + scaled):
        assert both.n_tasks == 35
        assert both.transform.learnt
    wanted = TaskPrior.from_tasks(
        scaled.transform.of_tasks([*sources, *others]), feature_scale=scaled.feature_scale
    )
    np.testing.assert_allclose(both.direction_sum, wanted.direction_sum)
    for other in (
        TaskPrior.from_tasks(others, **scale),
        TaskPrior.from_tasks(others, transform=StandardScaler(), **scale),
    ):
        with pytest.raises(PriorMismatchError, match="different transforms cannot be merged"):
            scaled + other
    with pytest.raises(PriorMismatchError, match="takes 9 features"):
        TaskPrior.from_tasks(
            [Task(np.asarray(task.X)[:, :4], task.y) for task in others],
            transform=scaled.transform,
        )


def test_copies_keep_it(scaled, logs, few):
    for prior in (scaled, logs):
        for copy in (
            prior.without("class_means"),
            prior.reversed(),
            prior.annotated(units="share of power"),
            prior.update(np.eye(9)[:2]),
        ):
            assert copy.transform == prior.transform
        wanted = PosteriorBlendClassifier(prior).fit(*few)
        again = pickle.loads(pickle.dumps(wanted))
        np.testing.assert_array_equal(
            again.decision_function(few[0]), wanted.decision_function(few[0])
        )
        same = clone(wanted)
        assert same.get_params()["prior"] is prior
        np.testing.assert_array_equal(same.fit(*few).coef_, wanted.coef_)


def test_mixtures_take_raw_windows(sources, few):
    mixture = MixturePrior.from_tasks(sources, n_components=2, transform=StandardScaler())
    assert (mixture.n_features_in, mixture.transform.called) == (9, "affine map")
    blend = PosteriorBlendClassifier(mixture).fit(*few)
    fitted, others = by_hand(StandardScaler(), sources)
    theirs = PosteriorBlendClassifier(MixturePrior.from_tasks(others, n_components=2))
    theirs.fit(fitted.transform(few[0]), few[1])
    np.testing.assert_allclose(
        blend.decision_function(few[0]),
        theirs.decision_function(fitted.transform(few[0])),
        atol=1e-7,
    )


@pytest.mark.filterwarnings("ignore::crossfade.exceptions.UncountedReleaseWarning")
def test_a_released_prior_keeps_it_and_says_that_it_is_not_covered(people, sources, scaled, few):
    pytest.importorskip("opendp")
    fixed = np.full(9, 0.5)
    learnt = TaskPrior.from_tasks(sources, feature_scale=fixed, transform=StandardScaler())
    with pytest.warns(UserWarning, match="covers the directions, not the transform"):
        public = learnt.released(5.0, 1e-5)
    assert public.transform == learnt.transform
    assert not public.release.scale_covered
    given = TaskPrior.from_tasks(people[19:], feature_scale=fixed, transform=scaled.transform)
    assert given.released(5.0, 1e-5).release.scale_covered
    assert PosteriorBlendClassifier(public).fit(*few).n_features_in_ == 9


def test_sources_and_target_in_one_table(people, sources, scaled):
    # Digests would tell that these three are in the prior already.
    scaled = scaled.without("parts")
    rows = [*sources[:3], people[0]]
    X = np.concatenate([task.X for task in rows])
    y = np.concatenate([task.y for task in rows])
    domain = np.repeat([1, 2, 3, -1], [len(task.y) for task in rows])
    blend = PosteriorBlendClassifier(scaled).fit(X, y, sample_domain=domain)
    assert blend.prior_.n_tasks == 21
    assert blend.prior_.transform == scaled.transform
    more = TaskPrior.from_tasks(
        sources[:3], feature_scale=scaled.feature_scale, transform=scaled.transform
    )
    wanted = PosteriorBlendClassifier(scaled + more).fit(people[0].X, people[0].y)
    np.testing.assert_allclose(blend.coef_, wanted.coef_)


def test_in_scikit_learns_hands(people, scaled, logs):
    X, y = np.asarray(people[0].X), np.asarray(people[0].y)
    for prior in (scaled, logs):
        scores = cross_val_score(HierarchicalBlendClassifier(prior), X, y, cv=3)
        assert scores.mean() > 0.6


def test_tables_are_compared_by_their_raw_columns(people, sources):
    prior = TaskPrior.from_tasks(sources, transform=PCA(3))
    assert misfits(prior, people[:1]) == []
    assert unit_misfits(prior, people[:1]) == []
    renamed = replace(people[0], feature_names=["x", *people.feature_names[1:]])
    assert "Features of the prior are missing: 'Fz_theta'." in misfits(prior, [renamed])
    (found,) = unit_misfits(prior, [replace(people[0], X=1e4 * np.asarray(people[0].X))])
    assert "vary about" in found


def test_units_are_compared_after_the_transform(scaled, few):
    X, y = few
    PosteriorBlendClassifier(scaled).fit(X, y)
    with pytest.warns(UserWarning, match="give them as they are before it"):
        PosteriorBlendClassifier(scaled).fit(1e3 * X, y)


# -- files ----------------------------------------------------------------------------------


def test_an_affine_map_is_saved(people, sources, scaled, few, tmp_path):
    path = tmp_path / "prior.npz"
    for prior in (scaled, TaskPrior.from_tasks(sources, transform=PCA(4))):
        prior.save(path)
        loaded = TaskPrior.load(path)
        assert loaded == prior
        assert loaded.transform.learnt
        assert loaded.feature_names_in == people.feature_names
        rows = np.asarray(people[0].X)
        np.testing.assert_array_equal(loaded.transform(rows), prior.transform(rows))
        mine, theirs = (PosteriorBlendClassifier(one).fit(*few) for one in (prior, loaded))
        np.testing.assert_array_equal(mine.predict_proba(rows), theirs.predict_proba(rows))
        with np.load(path) as archive:
            assert archive["transform.matrix"].shape == (9, prior.n_features)
            assert archive["transform.offset"].shape == (prior.n_features,)
            assert archive["transform.origin"].shape == (9,)
    assert "affine map, fitted on these tasks, of 9 raw features: Fz_theta" in loaded.card()
    assert "affine map, fitted on these tasks, of 9 raw features" in loaded.summary()
    assert loaded.card_data()["transform"].startswith("affine map")


def test_other_maps_are_left_out_and_that_is_said(logs, sources, few, tmp_path):
    path = tmp_path / "prior.npz"
    with pytest.warns(MissingPartWarning, match="Pipeline, is no affine map") as caught:
        logs.save(path)
    assert caught[0].filename == __file__
    with pytest.warns(MissingPartWarning, match="was left out, Pipeline") as caught:
        loaded = TaskPrior.load(path)
    assert caught[0].filename == __file__
    assert loaded.transform is None
    assert loaded.n_features_in == 9
    said = "left out, Pipeline: windows must be transformed before a blend sees them"
    assert said in loaded.card()
    assert said in loaded.summary()
    theirs = PosteriorBlendClassifier(loaded).fit(logs.transform(few[0]), few[1])
    mine = PosteriorBlendClassifier(logs).fit(*few)
    np.testing.assert_array_equal(
        mine.decision_function(few[0]), theirs.decision_function(logs.transform(few[0]))
    )
    loaded.save(path)
    with pytest.warns(MissingPartWarning, match="was left out"):
        assert TaskPrior.load(path) == loaded
    for kind, prior in (
        (MixturePrior, MixturePrior.from_tasks(sources, n_components=2, transform=LOG)),
        (MulticlassPrior, MulticlassPrior.from_tasks(sources, replay=False, transform=LOG)),
    ):
        with pytest.warns(MissingPartWarning) as caught:
            prior.save(path)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingPartWarning)
            assert kind.load(path).transform is None


def test_priors_inside_a_prior_keep_an_affine_map(sources, tmp_path):
    path = tmp_path / "prior.npz"
    for kind in (MixturePrior, MulticlassPrior):
        options = {"n_components": 2} if kind is MixturePrior else {"replay": False}
        prior = kind.from_tasks(sources, transform=StandardScaler(), **options)
        prior.save(path)
        loaded = kind.load(path)
        assert loaded == prior
        assert loaded.transform == prior.transform


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"matrix": np.ones((9, 4))}, "must take features to the 9 of the prior"),
        ({"offset": np.ones(3)}, "must take features to the 9 of the prior"),
        ({"origin": np.ones((9, 9))}, "must take features to the 9 of the prior"),
        ({"matrix": np.full((9, 9), np.nan)}, r"transform.matrix must be finite"),
        ({"learnt": "yes"}, "learnt must be true or false"),
        ({"feature_names": ["a"]}, "feature_names must be 9 names"),
    ],
)
def test_a_file_with_another_map_is_refused(scaled, changed, message):
    fields = scaled.transform.fields()
    with pytest.raises((ValueError, TypeError), match=message):
        Transform.of_file(fields | changed, 9, None)
    with pytest.raises(TypeError, match="transform must be an object"):
        Transform.of_file([1.0], 9, None)


@pytest.mark.parametrize("blend", BLENDS)
def test_a_model_file_takes_raw_windows(people, sources, few, scaled, tmp_path, blend):
    new = np.asarray(people[0].X)
    for prior in (scaled, TaskPrior.from_tasks(sources, transform=PCA(4))):
        fitted = blend(prior).fit(*few)
        save_model(fitted, tmp_path / "model.json")
        rule = load_model(tmp_path / "model.json")
        assert rule.n_features_in_ == 9
        np.testing.assert_allclose(
            rule.decision_function(new), fitted.decision_function(new), atol=1e-9
        )
        np.testing.assert_allclose(rule.predict_proba(new), fitted.predict_proba(new), atol=1e-9)
        along = rule.coef_[0] * rule.feature_scale_
        np.testing.assert_allclose(rule.projection_, along / np.linalg.norm(along))
        np.testing.assert_allclose(
            fitted.decision_function(rule.midpoint_[None, :]), 0.0, atol=1e-8
        )


def test_a_scaler_leaves_the_model_as_it_is(sources, few, scaled, tmp_path):
    """Folded into the rule, scale and direction are those of a prior of raw windows."""
    for prior, name in ((scaled, "with"), (TaskPrior.from_tasks(sources), "without")):
        save_model(PosteriorBlendClassifier(prior).fit(*few), tmp_path / name)
    one, other = (load_model(tmp_path / name) for name in ("with", "without"))
    for name in ("coef_", "intercept_", "projection_", "feature_scale_", "midpoint_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)


def test_a_model_of_another_map_is_refused(logs, few, tmp_path):
    blend = PosteriorBlendClassifier(logs).fit(*few)
    with pytest.raises(ValueError, match="the prior's transform, Pipeline, is no affine map"):
        save_model(blend, tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()
