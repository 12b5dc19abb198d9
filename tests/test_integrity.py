"""Files that cannot lie: one flipped bit, another's shard, a bomb, a device, a killed run."""

import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import (
    HierarchicalBlendClassifier,
    Ledger,
    LiveCalibration,
    Task,
    TaskPrior,
    TaskSet,
    load_model,
    read_tasks,
    save_model,
)
from crossfade.cli import main
from crossfade.report import Findings, write_findings
from crossfade.study import CalibrationStudy, StudyResult

pytest.importorskip("pyarrow")
posix = pytest.mark.skipif(os.name != "posix", reason="nodes, links and signals of POSIX")


def draw_tasks(n_tasks=6, seed=0):
    """Tasks with text for labels, groups and times."""
    rng = np.random.default_rng(seed)
    y = np.tile([0, 1], 12)
    return TaskSet(
        Task(
            rng.standard_normal((y.size, 3)) + y[:, None],
            np.array(["rest", "math"])[y],
            f"p{place}",
            f"g{place // 2}",
            ["a", "b", "c"],
            2.5 * np.arange(y.size),
        )
        for place in range(n_tasks)
    )


def draw_study(n_tasks=4):
    options = {"budgets": [2, 3], "n_splits": 4, "random_state": 0}
    return CalibrationStudy(draw_tasks(n_tasks), methods=["target"], **options)


def a_table(folder):
    draw_tasks().write(folder / "tasks.parquet")
    return folder / "tasks.parquet", lambda path: read_tasks(path).to_frame()


def a_shard(folder):
    draw_study().run(folder=folder)
    # Of a shard that is refused StudyResult.load warns; here that is an error.
    return min((folder / "shards").iterdir()), lambda _: StudyResult.load(folder).rows


def a_plan(folder):
    draw_study().run(folder=folder)

    def read(_):
        result = StudyResult.load(folder)
        return result.rows, dict(result.drawn_from), result.n_classes, dict(result.window_seconds)

    return folder / "study.json", read


def a_prior(folder):
    TaskPrior.from_tasks(draw_tasks(8)).save(folder / "prior.npz")

    def read(path):
        prior = TaskPrior.load(path)
        # Equality of priors leaves what is said about them out.
        return prior, prior.card()

    return folder / "prior.npz", read


def a_model(folder):
    tasks = draw_tasks()
    rule = HierarchicalBlendClassifier(TaskPrior.from_tasks(tasks[:-1]))
    save_model(rule.fit(tasks[-1].X, tasks[-1].y), folder / "model.json")

    def read(path):
        # Everything that is loaded is a field of the file, where a number may be spelt otherwise.
        load_model(path)
        return json.loads(path.read_bytes())

    return folder / "model.json", read


def a_session(name):
    def make(folder):
        tasks = draw_tasks()
        prior = TaskPrior.from_tasks(tasks[:-1])
        session = LiveCalibration(prior, folder=folder / "session", want=0.8)
        for place in range(4):
            session.add(np.asarray(tasks[-1].X)[place], tasks[-1].y[place])
        session.close()

        def read(path):
            again = LiveCalibration.load(path.parent)
            again.close()
            windows = [(one.features.tolist(), one.label) for one in again.windows]
            return windows, again.state(), again.prior

        return folder / "session" / name, read

    return make


def a_ledger(folder):
    pytest.importorskip("opendp")
    prior = TaskPrior.from_tasks(draw_tasks(8), feature_scale=[1.0, 1.0, 1.0])
    prior.released(1.0, 1e-5, ledger=folder / "ledger.json")
    return folder / "ledger.json", lambda path: (Ledger(path).releases, Ledger(path).budget)


KINDS = {
    "table": a_table,
    "shard": a_shard,
    "plan": a_plan,
    "prior": a_prior,
    "model": a_model,
    "session": a_session("session.json"),
    "journal": a_session("windows.jsonl"),
    "ledger": a_ledger,
}


def same(one, other):
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pd.DataFrame):
        return one.dtypes.equals(other.dtypes) and one.equals(other)
    return one == other


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_never_believed(kind, tmp_path):
    """Nothing but a ValueError or a warning may come of it, which say what is wrong."""
    path, read = KINDS[kind](tmp_path)
    before, content = read(path), path.read_bytes()
    rng = np.random.default_rng(0)
    found = Counter()
    for place in rng.integers(8 * len(content), size=100).tolist():
        altered = bytearray(content)
        altered[place // 8] ^= 1 << place % 8
        path.write_bytes(altered)
        try:
            after = read(path)
        except (ValueError, UserWarning):
            found["refused"] += 1
        else:
            found["harmless" if same(before, after) else "believed"] += 1
    path.write_bytes(content)
    assert same(before, read(path))
    assert found["believed"] == 0
    assert found["refused"] > 50


LOADS = {"prior": TaskPrior.load, "model": load_model}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_what_is_not_loaded(load, tmp_path):
    with open(tmp_path / "large", "wb") as stream:
        stream.truncate(1 << 40)
    (tmp_path / "deep").write_bytes(b"[" * 200_000)
    for name in ("large", "deep", "."):
        with pytest.raises(ValueError, match=r"large|deep|folder"):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="none"):
        load(tmp_path / "none")


@posix
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_devices_and_pipes_are_not_read(load, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe"):
        load(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a device"):
        load("/dev/zero")


def make_node(path, kind):
    try:
        node = stat.S_IFIFO if kind == "a pipe" else stat.S_IFCHR
        os.mknod(path, node | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device takes a permission")


@posix
@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_commands_write_to_files_only(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw_tasks().write("t.csv")
    make_node("node", kind)
    before = os.stat("node")
    os.symlink("node", "link")
    for name in ("node", "link"):
        found = CliRunner().invoke(main, ["prior", "build", "t.csv", "-o", name])
        assert found.exit_code == 1
        assert f"node is {kind}" in found.stderr
    assert (os.stat("node").st_ino, os.stat("node").st_mode) == (before.st_ino, before.st_mode)
    assert {path.name for path in Path().iterdir()} == {"link", "node", "t.csv"}


def write(path):
    TaskPrior.from_projections([[1.0, 0.0]]).save(path)


@pytest.fixture
def written(monkeypatch):
    """Run a study in a folder and write its report, as often as asked; names of all files."""
    tasks, find = draw_tasks(4), importlib.util.find_spec
    study = CalibrationStudy(tasks, methods=["target"], budgets=[2], n_splits=2, random_state=0)
    first = []
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )

    def write(folder):
        result = study.run(folder=folder)
        if not first:
            # What was found is the same every time, and takes a while.
            first.append(Findings.of(result, tasks))
        write_findings(replace(first[0], result=result), folder, title=None, about={})
        return sorted(path for path in folder.rglob("*") if path.is_file())

    return write


@posix
@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_no_file_of_a_study_replaces_anything_but_a_file(kind, written, tmp_path):
    names = written(tmp_path)
    assert {"rows.parquet", "study.json", "report.html"} < {path.name for path in names}
    for path in names:
        path.rename(tmp_path / "aside")
        make_node(path, kind)
        before = path.stat()
        with warnings.catch_warnings():
            # Of a shard that is none.
            warnings.simplefilter("ignore", UserWarning)
            with pytest.raises((OSError, ValueError), match=rf"{path.name}:? (it )?is {kind}"):
                written(tmp_path)
        assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)
        (tmp_path / "aside").replace(path)


STOP = """
import os, sys, time
from crossfade import TaskPrior

def stop(file):
    print("now", flush=True)
    time.sleep(600)

os.fsync = stop
TaskPrior.from_projections([[1.0, 0.0]]).save(sys.argv[1])
"""


@pytest.fixture
def writer(tmp_path):
    """A process that is about to write ``file``, and never does."""
    words = [sys.executable, "-c", STOP, str(tmp_path / "file")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        yield process
        process.kill()


@posix
def test_what_a_killed_run_left_is_removed_by_the_next(writer, tmp_path):
    assert len(list(tmp_path.iterdir())) == 1
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    [left] = tmp_path.iterdir()
    assert left.stat().st_size > 0
    write(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@posix
def test_what_another_run_is_writing_is_left_alone(writer, tmp_path):
    [theirs] = tmp_path.iterdir()
    before = theirs.read_bytes()
    write(tmp_path / "file")
    assert set(tmp_path.iterdir()) == {theirs, tmp_path / "file"}
    assert theirs.read_bytes() == before


@posix
def test_only_temporary_files_are_removed(tmp_path):
    (tmp_path / ".crossfade").write_bytes(b"kept")
    (tmp_path / ".crossfade-folder").mkdir()
    os.mkfifo(tmp_path / ".crossfade-pipe")
    (tmp_path / "precious").write_bytes(b"kept")
    (tmp_path / ".crossfade-link").symlink_to(tmp_path / "precious")
    (tmp_path / ".crossfade-0123456789abcdef").write_bytes(b"left")
    before = set(tmp_path.iterdir())
    write(tmp_path / "file")
    gone = before - set(tmp_path.iterdir())
    assert gone == {tmp_path / ".crossfade-0123456789abcdef"}


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(step, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match=r"No space left on device: '.*file'"):
        write(tmp_path / "file")
    monkeypatch.undo()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]
