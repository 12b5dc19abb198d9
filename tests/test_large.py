"""Studies larger than memory: rows read by parts, the page of many people, clusters that die."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pandas as pd
import pytest

from crossfade.report import write_report
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult, verdict
from crossfade.study._evaluate import run_target
from crossfade.study.statistics import (
    by_task,
    compare,
    forecast_errors,
    labels_saved,
    reliability,
    summarise,
)

pytest.importorskip("pyarrow")

METHODS = ["target", "average-source", "posterior", "lda"]


def study_of(n_tasks=7, methods=METHODS, **options):
    options = {"budgets": [0, 2, 4], "n_splits": 6, "random_state": 0} | options
    return CalibrationStudy(
        simulate_tasks(n_tasks, n_features=3, random_state=0), methods=methods, **options
    )


@pytest.fixture
def by_parts(monkeypatch):
    """Every study in a folder counts as large, and five shards are in memory at a time."""
    monkeypatch.setattr("crossfade.study._result._FEW", 0)
    monkeypatch.setattr("crossfade.study._store.Store.read.__defaults__", (5,), raising=False)


@pytest.fixture(scope="module")
def alone():
    return study_of().run()


# -- rows by parts --------------------------------------------------------------------------------


def test_statistics_by_parts_are_those_of_all_rows(by_parts, alone, tmp_path):
    large = study_of().run(folder=tmp_path)
    rows = alone.rows
    tables = {
        "means": (large.means, by_task(rows)),
        "summary": (summarise(large), summarise(rows)),
        "compare": (compare(large, "lda"), compare(rows, "lda")),
        "labels saved": (labels_saved(large), labels_saved(rows)),
        "reliability": (reliability(large), reliability(rows)),
        "errors": (forecast_errors(large), forecast_errors(rows)),
        "needed": (large.needed(0.7), alone.needed(0.7)),
    }
    for parts, whole in tables.values():
        pd.testing.assert_frame_equal(parts, whole, rtol=0.0, atol=1e-12)
    assert verdict(large, 0.7) == verdict(alone, 0.7)
    assert repr(large) == repr(alone)
    # None of these has read all rows.
    assert "rows" not in vars(large)
    pd.testing.assert_frame_equal(
        large.rows.drop(columns="seconds"), rows.drop(columns="seconds"), check_exact=True
    )


def test_a_large_study_is_loaded_and_reported_by_parts(by_parts, alone, tmp_path):
    pytest.importorskip("jinja2")
    study_of().run(folder=tmp_path)
    large = StudyResult.load(tmp_path)
    tasks = simulate_tasks(7, n_features=3, random_state=0)
    write_report(large, tasks, tmp_path / "large", formats=())
    assert "rows" not in vars(large)
    write_report(alone, tasks, tmp_path / "small", formats=())
    for one in (tmp_path / "small").glob("*.csv"):
        large_one = pd.read_csv(tmp_path / "large" / one.name)
        pd.testing.assert_frame_equal(large_one, pd.read_csv(one), rtol=1e-5)
    rows = pd.read_parquet(tmp_path / "large" / "rows.parquet")
    pd.testing.assert_frame_equal(
        rows.drop(columns="seconds"), alone.rows.drop(columns="seconds"), check_dtype=False
    )


def test_rows_of_a_report_are_under_a_seal(by_parts, tmp_path):
    from crossfade.tasks import frame_of_parquet, write_parquet

    path = tmp_path / "rows.parquet"
    parts = [pd.DataFrame({"task": ["a", "b"], "x": [1.0, 2.0 + place]}) for place in range(3)]
    write_parquet(path, iter(parts))
    content = path.read_bytes()
    found = frame_of_parquet(path, content)
    pd.testing.assert_frame_equal(found, pd.concat(parts, ignore_index=True))
    # One with the same content is left alone.
    os.utime(path, (1, 1))
    write_parquet(path, iter(parts))
    assert path.stat().st_mtime == 1
    altered = bytearray(content)
    altered[len(content) // 3] ^= 0xFF
    with pytest.raises(ValueError, match="was altered after it was written"):
        frame_of_parquet(path, bytes(altered))
    assert [one.name for one in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_folder_that_disappears_is_named(by_parts, tmp_path):
    study = study_of(4, ["target", "posterior"], n_splits=2)
    result = study.run(folder=tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    with pytest.raises(FileNotFoundError, match=r"no longer where they were written.*one"):
        result.summary()

    def remove(done, total):
        if done == 3:
            shutil.rmtree(tmp_path / "two")

    with pytest.raises(FileNotFoundError, match=r"has disappeared while it was running.*two"):
        study.run(folder=tmp_path / "two", on_progress=remove)


def test_one_prior_serves_all_methods_of_a_target(monkeypatch):
    from crossfade.prior import TaskPrior

    made = []
    learn = TaskPrior.from_moments.__func__

    def count(cls, *args, **options):
        made.append(options)
        return learn(cls, *args, **options)

    monkeypatch.setattr(TaskPrior, "from_moments", classmethod(count))
    study_of(5, ["convex", "posterior", "hierarchical"], n_splits=2).run()
    assert len(made) == 5


def test_shards_of_a_target_are_those_of_each_method_alone():
    both = study_of(5, ["convex", "posterior"]).run().rows
    for name in ("convex", "posterior"):
        own = study_of(5, [name]).run().rows.drop(columns="seconds")
        pd.testing.assert_frame_equal(
            both[both["method"] == name].drop(columns="seconds").reset_index(drop=True),
            own,
            check_exact=True,
        )


# -- a cluster of real processes, some of which die -----------------------------------------------


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"},
    )


@pytest.fixture
def cluster(tmp_path_factory):
    """A scheduler and one worker, each a process of its own: address, scheduler, worker."""
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    where = str(tmp_path_factory.mktemp("worker"))
    scheduler = start(
        *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)),
        *("--no-dashboard",),
    )
    worker = start(
        *("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"),
        *("--no-nanny", "--local-directory", where),
    )
    for _ in range(600):
        with socket.socket() as one:
            if not one.connect_ex(("127.0.0.1", port)):
                break
        time.sleep(0.1)
    yield address, scheduler, worker
    for process in (worker, scheduler):
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def same_rows(first, second):
    pd.testing.assert_frame_equal(
        first.rows.drop(columns="seconds"), second.rows.drop(columns="seconds"), check_exact=True
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGSTOP"])
def test_a_scheduler_that_dies_or_hangs_costs_nothing_that_was_finished(
    cluster, alone, tmp_path, monkeypatch, end
):
    monkeypatch.setattr("crossfade.study._cluster._SILENCE", 1)
    monkeypatch.setattr("crossfade.study._cluster._PATIENCE_FOR_WORKERS", 20)
    address, scheduler, _ = cluster
    study = study_of()

    def stop(done, total):
        if done == 4:
            monkeypatch.setattr("crossfade.study._cluster._PATIENCE_FOR_WORKERS", 3)
            scheduler.send_signal(getattr(signal, end))

    with pytest.raises(ConnectionError, match=r"is gone|does not answer any more"):
        study.run(dask=address, folder=tmp_path, on_progress=stop)
    kept = len(list((tmp_path / "shards").glob("*.parquet")))
    assert kept >= 4
    assert sorted(one.name for one in tmp_path.iterdir()) == ["shards", "study.json"]
    seen = []
    result = study.run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen[0][0] >= kept
    same_rows(result, alone)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_worker_costs_its_part(cluster, alone, tmp_path):
    address, _, worker = cluster
    others = []

    def kill(done, total):
        if done == 4:
            worker.kill()
            others.append(
                start(
                    *("distributed.cli.dask_worker", address, "--nthreads", "1"),
                    *("--no-dashboard", "--no-nanny"),
                )
            )

    try:
        result = study_of().run(dask=address, folder=tmp_path, on_progress=kill)
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert len(others) == 1
    same_rows(result, alone)


def test_workers_write_their_own_parts_where_they_see_the_folder(tmp_path):
    from crossfade.study._cluster import Job, _alone
    from crossfade.study._sources import Sources
    from crossfade.study._store import Record, Store

    study = study_of(4, ["target", "posterior"])
    record = Record.of(
        study._plan, study._participants, study._targets, study._classes, None, identified=True
    )
    store = Store.open(tmp_path, record)
    sources = Sources.of(study._participants, study._classes, 0, keep_windows=False)
    target, shards = study._targets[0], record.shards()[:2]
    expected = [
        (shard, one.notes) for shard, one in run_target(target, sources, study._plan, shards)
    ]
    with store.shown() as shelf:
        job = Job(sources, study._plan, shelf)
        assert [(shard, one.notes) for shard, one in _alone(target, shards, job)] == expected
    assert list(store.finished()[0]) == shards
    # The beacon is gone: this may be another machine, with another folder of that name.
    handed = _alone(target, record.shards()[:1], job)
    assert all(len(outcome.columns["task"]) for _, outcome in handed)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["shards", "study.json"]
