"""Studies on a Dask cluster: a real one, of two processes on this machine, some of which die."""

import os
import signal
import socket
import sys
from time import monotonic, sleep

import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from crossfade.study import CalibrationStudy
from crossfade.study._cluster import on_workers

distributed = pytest.importorskip("distributed")

METHODS = ["target", "paper", "posterior", "lda", "lda-pooled", ("mine", GaussianNB())]


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        yield cluster


@pytest.fixture
def study(make_tasks):
    return make_study(make_tasks(6))


@pytest.fixture(scope="module")
def alone(make_tasks):
    """What that study finds without a cluster."""
    return make_study(make_tasks(6)).run()


def make_study(tasks, methods=METHODS, **options):
    options = {"budgets": [2, 0.3], "n_splits": 5, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=methods, **options)


def same(first, second):
    """To the last bit, but for the time that it took."""
    pd.testing.assert_frame_equal(
        first.rows.drop(columns="seconds"), second.rows.drop(columns="seconds"), check_exact=True
    )
    pd.testing.assert_frame_equal(first.failures, second.failures)


def test_rows_are_those_of_the_local_run(cluster, study, alone):
    seen = []
    result = study.run(
        dask=cluster.scheduler_address, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen == [(done, 36) for done in range(1, 37)]
    same(result, alone)


def test_rows_of_many_classes_are_those_of_the_local_run(cluster, make_many):
    study = make_study(make_many(4), ["hierarchical", "lda-pooled", ("mine", GaussianNB())])
    same(study.run(dask=cluster.scheduler_address), study.run())


def test_a_worker_that_is_lost_while_it_gets_the_sources(cluster, study, alone, monkeypatch):
    from distributed import Client

    scatter, calls = Client.scatter, []

    def lose_one_first(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyError("tcp://127.0.0.1:1")
        return scatter(*arguments, **options)

    monkeypatch.setattr(Client, "scatter", lose_one_first)
    result = study.run(dask=cluster.scheduler_address)
    assert len(calls) == 2
    same(result, alone)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("n_killed", [1, 2])
def test_a_lost_worker_costs_only_its_shards(cluster, study, alone, tmp_path, n_killed):
    """With the second, all that the workers knew of the sources is lost."""
    cluster.wait_for_workers(2)
    killed = []

    def kill(done, total):
        if done == 8:
            for worker in list(cluster.workers.values())[:n_killed]:
                os.kill(worker.pid, signal.SIGKILL)
                killed.append(worker.pid)

    result = study.run(dask=cluster.scheduler_address, folder=tmp_path, on_progress=kill)
    assert len(killed) == n_killed
    same(result, alone)
    assert len(list((tmp_path / "shards").glob("*.parquet"))) == 36


def test_what_a_lost_worker_left_is_removed(cluster, study, tmp_path):
    left = tmp_path / "shards" / ".crossfade-0123456789abcdef"

    def leave(done, total):
        if done == total:
            left.write_bytes(b"half of a shard")

    study.run(dask=cluster.scheduler_address, folder=tmp_path, on_progress=leave)
    assert not left.exists()


def test_workers_that_are_always_lost_are_given_up(cluster, study, monkeypatch):
    def lost(*arguments):
        return iter(())

    monkeypatch.setattr("crossfade.study._cluster._results_while_sources_last", lost)
    with pytest.raises(ConnectionError, match="were lost 3 times before any could finish its part"):
        study.run(dask=cluster.scheduler_address)


def test_a_client_may_be_given_and_stays_open(cluster, study, alone):
    with distributed.Client(cluster, set_as_default=False) as client:
        same(study.run(dask=client), alone)
        assert client.status == "running"
        # What is let go of is forgotten by the client's own thread, soon after.
        deadline = monotonic() + 30.0
        while client.futures and monotonic() < deadline:
            sleep(0.05)
        assert not client.futures


def test_few_shards_are_in_flight_at_a_time(cluster, study, alone, monkeypatch):
    monkeypatch.setattr("crossfade.study._cluster._AT_ONCE", 3)
    with distributed.Client(cluster, set_as_default=False) as client:
        most = []
        result = study.run(dask=client, on_progress=lambda *_: most.append(len(client.futures)))
    # Those three, the one that has just come, and the sources.
    assert max(most) <= 5
    same(result, alone)


def test_an_interrupted_run_leaves_the_cluster_idle_and_goes_on(cluster, study, alone, tmp_path):
    def interrupt(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with distributed.Client(cluster, set_as_default=False) as client:
        with pytest.raises(KeyboardInterrupt):
            study.run(dask=client, folder=tmp_path, on_progress=interrupt)
        assert "pending" not in {state.status for state in client.futures.values()}
    # Workers keep what they have finished themselves, whether or not it was told.
    n_kept = len(list((tmp_path / "shards").iterdir()))
    assert n_kept >= 5
    seen = []
    result = study.run(
        dask=cluster.scheduler_address,
        folder=tmp_path,
        on_progress=lambda *numbers: seen.append(numbers),
    )
    assert n_kept <= seen[0][0] <= 36
    assert seen[-1] == (36, 36)
    same(result, alone)


def test_a_finished_study_needs_no_cluster(study, tmp_path):
    first = study.run(folder=tmp_path)
    same(study.run(folder=tmp_path, dask="tcp://127.0.0.1:1"), first)


def test_failures_come_back(cluster, make_tasks):
    study = make_study(
        make_tasks(3), [("own", LinearDiscriminantAnalysis()), "target"], budgets=[1]
    )
    message = "^Method 'own' failed on 15 of 15 splits, .* The first, p0, budget 1: ValueError: "
    with pytest.warns(UserWarning, match=message):
        far = study.run(dask=cluster.scheduler_address)
    with pytest.warns(UserWarning, match=message):
        near = study.run()
    assert len(near.failures) == 3
    same(far, near)


def test_workers_with_threads_do_one_shard_at_a_time(study, alone):
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=4,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        same(study.run(dask=cluster.scheduler_address), alone)


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "127.0.0.1", "http://127.0.0.1:8786", "127.0.0.1:99999999", ""]
)
def test_an_address_that_does_not_answer_is_named(study, monkeypatch, address):
    monkeypatch.setattr("crossfade.study._cluster._PATIENCE", 1)
    with pytest.raises(ConnectionError, match=f"No Dask scheduler answers at '{address}': .+"):
        study.run(dask=address)


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\nThis is no scheduler"])
def test_what_listens_but_is_no_scheduler_is_refused(study, monkeypatch, greeting):
    monkeypatch.setattr("crossfade.study._cluster._PATIENCE", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        # Connections wait in the queue of the socket; who greets has to accept them.
        if greeting:
            from threading import Thread

            def greet():
                with server.accept()[0] as connection:
                    connection.sendall(greeting)

            Thread(target=greet, daemon=True).start()
        with pytest.raises(ConnectionError, match="No Dask scheduler answers at"):
            study.run(dask=f"tcp://127.0.0.1:{port}")


def test_a_scheduler_without_workers_is_refused(study, monkeypatch):
    monkeypatch.setattr("crossfade.study._cluster._PATIENCE_FOR_WORKERS", 1)
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        pytest.raises(ConnectionError, match=r"127\.0\.0\.1:\d+ has no workers, or is gone"),
    ):
        study.run(dask=cluster.scheduler_address)


def test_what_is_no_address_is_refused(study):
    with pytest.raises(TypeError, match="address of a scheduler or a client; got 8786"):
        study.run(dask=8786)


def test_a_cluster_needs_dask(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"Install crossfade\[dask\], here and on the workers"):
        list(on_workers({}, None, "tcp://127.0.0.1:8786"))
