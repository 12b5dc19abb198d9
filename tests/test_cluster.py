"""Studies on a Dask cluster: real processes of this machine, some of which die."""

import os
import signal
import sys

import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from crossfade.study import CalibrationStudy

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

METHODS = ["target", "paper", "posterior", "lda", "lda-pooled", ("mine", GaussianNB())]


def make_cluster(**options):
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True} | options
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    return distributed.LocalCluster(**where, **options)


@pytest.fixture(scope="module")
def cluster():
    with make_cluster() as cluster:
        yield cluster


def make_study(tasks, methods=METHODS, **options):
    options = {"budgets": [2, 0.3], "n_splits": 5, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=methods, **options)


@pytest.fixture
def study(make_tasks):
    return make_study(make_tasks(6))


@pytest.fixture(scope="module")
def alone(make_tasks):
    """What that study finds without a cluster."""
    return make_study(make_tasks(6)).run()


def same(first, second):
    """To the last bit, but for the time that it took."""
    pd.testing.assert_frame_equal(
        first.rows.drop(columns="seconds"), second.rows.drop(columns="seconds"), check_exact=True
    )
    pd.testing.assert_frame_equal(first.failures, second.failures)


def test_rows_are_those_of_the_local_run(cluster, study, alone, make_many):
    seen = []
    result = study.run(
        dask=cluster.scheduler_address, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen == [(done, 36) for done in range(1, 37)]
    same(result, alone)
    many = make_study(make_many(4), ["hierarchical", "lda-pooled", ("mine", GaussianNB())])
    same(many.run(dask=cluster.scheduler_address), many.run())


def test_a_client_may_be_given_and_stays_open(cluster, study, alone):
    with distributed.Client(cluster, set_as_default=False) as client:
        same(study.run(dask=client), alone)
        assert client.status == "running"


def test_workers_with_threads_do_one_part_at_a_time(study, alone):
    threads = {"n_workers": 1, "threads_per_worker": 4, "processes": False, "protocol": "tcp"}
    with make_cluster(**threads) as cluster:
        same(study.run(dask=cluster.scheduler_address), alone)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_lost_worker_costs_only_its_parts(study, alone):
    with make_cluster() as cluster:
        cluster.wait_for_workers(2)

        def kill(done, total):
            if done == 6:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)

        same(study.run(dask=cluster.scheduler_address, on_progress=kill), alone)


def test_a_cluster_that_is_gone_costs_nothing_that_was_finished(study, alone, tmp_path):
    cluster = make_cluster()

    def close(done, total):
        if done == 6:
            cluster.close()

    with pytest.raises(ConnectionError, match="Run the study again"):
        study.run(dask=cluster.scheduler_address, folder=tmp_path, on_progress=close)
    seen = []
    result = study.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen[0][0] >= 6
    same(result, alone)
    # A finished study needs no cluster.
    same(study.run(folder=tmp_path, dask="tcp://127.0.0.1:1"), alone)


def test_an_interrupted_run_leaves_the_cluster_idle_and_goes_on(cluster, study, alone, tmp_path):
    def interrupt(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with distributed.Client(cluster, set_as_default=False) as client:
        with pytest.raises(KeyboardInterrupt):
            study.run(dask=client, folder=tmp_path, on_progress=interrupt)
        assert "pending" not in {state.status for state in client.futures.values()}
    assert len(list((tmp_path / "shards").iterdir())) == 5
    same(study.run(dask=cluster.scheduler_address, folder=tmp_path), alone)


def test_failures_come_back(cluster, make_tasks):
    methods = [("own", LinearDiscriminantAnalysis()), "target"]
    study = make_study(make_tasks(3), methods, budgets=[1])
    with pytest.warns(UserWarning, match="'own' failed on 15 of 15 splits"):
        far = study.run(dask=cluster.scheduler_address)
    with pytest.warns(UserWarning, match="'own' failed"):
        same(far, study.run())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "http://127.0.0.1:8786", "", 8786])
def test_an_address_that_does_not_answer_is_named(study, address):
    with pytest.raises(ConnectionError, match="scheduler"):
        study.run(dask=address)
