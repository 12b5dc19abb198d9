"""What keeps a study honest: log loss, intervals, an oracle by halves, mixes."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss as reference_log_loss

from crossfade import load_mental_math
from crossfade.study import CalibrationStudy, StudyResult, forecast_errors
from crossfade.study._batch import Batch, Predictions
from crossfade.study._evaluate import NEW_COLUMNS, log_loss
from crossfade.study._methods import METHODS
from crossfade.study._sources import Sources
from crossfade.study._splits import draw_splits
from crossfade.study._validate import check_tasks
from crossfade.study.statistics import by_task, summarise
from crossfade.tasks import sealed

RNG = np.random.default_rng(0)


def world(tasks, n_each, n_splits=4, **options):
    classes, participants = check_tasks(tasks)
    sources = Sources.of(participants, classes, 0, keep_windows=True, **options)
    one = participants[0]
    splits = draw_splits(one.label, n_each, n_splits, "consecutive", np.random.default_rng(0))
    return Batch(one.X, classes, splits), sources.without(one.group)


# -- log loss -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
def test_log_loss_weighs_classes_alike(n_classes):
    truth = np.repeat(np.arange(n_classes), np.arange(2, n_classes + 2) ** 2)
    chances = RNG.dirichlet(np.ones(n_classes), (3, truth.size))
    found = log_loss(chances if n_classes > 2 else chances[..., 1:], truth)
    weights = 1.0 / np.bincount(truth)[truth]
    for one, score in zip(chances, found, strict=True):
        assert score == pytest.approx(reference_log_loss(truth, one, sample_weight=weights))


def test_log_loss_of_certain_errors_is_finite_and_of_nothing_is_nan():
    truth = np.array([0, 1])
    assert log_loss(np.ones((1, 2, 1)), truth) == pytest.approx(-np.log(1e-15) / 2)
    assert np.isnan(log_loss(np.full((1, 2, 1), np.nan), truth)).all()


# -- intervals ------------------------------------------------------------------------------------


class Forecaster(ClassifierMixin, BaseEstimator):
    """Says the first class always, and forecasts chance give or take."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.expected_accuracy_ = 0.5
        self.alpha_ = 0.25
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def expected_accuracy_interval(self, level=0.9):
        return 0.5 - level / 10.0, 0.5 + level / 10.0


def test_intervals_of_estimators_are_in_the_rows(make_tasks):
    study = CalibrationStudy(
        make_tasks(3), methods={"mine": Forecaster()}, budgets=[2], n_splits=2, random_state=0
    )
    rows = study.run().rows
    for name, value in [
        *(("lower_68", 0.432), ("upper_68", 0.568), ("lower_90", 0.41), ("upper_90", 0.59)),
        *(("expected_accuracy", 0.5), ("alpha", 0.25)),
    ]:
        assert rows[name].tolist() == pytest.approx([value] * 6)
    table = forecast_errors(rows)
    assert table["coverage_90"].tolist() == [1.0]
    assert table["rms"].tolist() == [0.0]


def test_predictions_without_intervals_have_nan():
    found = Predictions.of_two(RNG.standard_normal((3, 5)))
    assert found.interval.shape == (3, 4)
    assert np.isnan(found.interval).all()
    ends = np.arange(12.0).reshape(3, 4)
    found = Predictions.of_two(RNG.standard_normal((3, 5)), interval=ends)
    np.testing.assert_array_equal(found.interval, ends)


# -- rows of older studies ------------------------------------------------------------------------


def test_older_studies_are_read_resumed_and_merged(make_tasks, tmp_path):
    import pyarrow.parquet as pq

    def study(methods=("target", "posterior")):
        return CalibrationStudy(
            make_tasks(4), methods=methods, budgets=[2], n_splits=2, random_state=0
        )

    new = study().run(folder=tmp_path)
    for path in (tmp_path / "shards").iterdir():
        table = pq.read_table(path)
        path.write_bytes(sealed(table.drop_columns(list(NEW_COLUMNS)), "shard", path.stem))
    old = StudyResult.load(tmp_path)
    assert list(old.rows.columns) == list(new.rows.columns)
    assert old.rows[list(NEW_COLUMNS)].isna().all(axis=None)
    more = study(("target", "posterior", "lda")).run(folder=tmp_path)
    assert more.rows.groupby("method")["log_loss"].count().to_dict() == {
        "lda": 8,
        "posterior": 0,
        "target": 0,
    }
    for both in (old + new, new + old, more + new):
        assert list(both.rows.columns) == list(new.rows.columns)
    # A frame of rows from before may lack the columns altogether.
    bare = new.rows.drop(columns=list(NEW_COLUMNS))
    assert by_task(bare)["log_loss"].isna().all()
    assert len(summarise(bare)) == 2
    assert (StudyResult(bare) + new).rows["log_loss"].isna().all()


# -- the oracle, honestly -------------------------------------------------------------------------


def test_the_honest_oracle_chooses_on_the_other_half(make_tasks):
    batch, sources = world(make_tasks(5, n_each=(20, 17)), 3)
    found = METHODS["oracle-honest"].run(sources, batch, RNG)
    truth = batch.splits.truth
    for half in (0, 1):
        # It does not look at the labels of the half that it predicts.
        told = truth.copy()
        told[half::2] = RNG.permutation(told[half::2])
        other = replace(batch, splits=batch.splits._replace(truth=told))
        again = METHODS["oracle-honest"].run(sources, other, RNG)
        np.testing.assert_array_equal(again.scores[:, half::2], found.scores[:, half::2])


def test_the_honest_oracle_with_a_single_test_window_of_a_class(make_tasks):
    batch, sources = world(make_tasks(4, n_each=(8, 4)), 3)
    assert np.bincount(batch.splits.truth).tolist() == [5, 1]
    found = METHODS["oracle-honest"].run(sources, batch, RNG)
    assert np.isfinite(found.scores).all()


def test_what_the_paper_s_oracle_is_worth():
    study = CalibrationStudy(
        load_mental_math(), methods=["oracle", "oracle-honest"], n_splits=20, random_state=0
    )
    means = summarise(study.run().rows).pivot(index="budget", columns="method", values="mean")
    # Of 100 splits; 20 are off by less than 0.01.
    assert means["oracle"].tolist() == pytest.approx([0.718, 0.730, 0.745, 0.796], abs=0.01)
    honest = means["oracle-honest"].tolist()
    assert honest == pytest.approx([0.687, 0.701, 0.711, 0.760], abs=0.01)


def test_sources_know_whether_forecasts_are_calibrated(make_tasks):
    _, sources = world(make_tasks(3), 2, forecasts=False)
    assert not sources.forecasts
    assert world(make_tasks(3), 2)[1].forecasts
