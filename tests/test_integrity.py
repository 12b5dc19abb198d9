"""Files that cannot lie: one flipped bit, another's shard, a bomb, a device, a killed run.

``python tests/test_integrity.py 2000`` flips that many bits, one at a time, in each kind of file.
"""

import importlib.util
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
import zipfile
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
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    TaskSet,
    load_model,
    read_tasks,
    save_model,
)
from crossfade import _files as files
from crossfade.cli import main
from crossfade.report import Findings, write_findings
from crossfade.study import CalibrationStudy, StudyResult
from crossfade.tasks import frame_of_parquet, parquet_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# -- one flipped bit ------------------------------------------------------------------------------


def draw_tasks(n_tasks=6, n_classes=2, seed=0):
    """Tasks with text for labels, groups and times."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(n_classes), 12)
    return TaskSet(
        Task(
            rng.standard_normal((y.size, 3)) + y[:, None],
            np.array(["rest", "math", "song"])[y],
            f"p{place}",
            f"g{place // 2}",
            ["a", "b", "c"],
            2.5 * np.arange(y.size),
        )
        for place in range(n_tasks)
    )


def draw_study(n_tasks=6, methods=("target", "posterior")):
    return CalibrationStudy(
        draw_tasks(n_tasks),
        methods=methods,
        budgets=[2, 3],
        n_splits=4,
        random_state=0,
    )


def a_table(folder):
    frame = draw_tasks().to_frame()
    frame.loc[3, "b"] = np.nan
    (folder / "tasks.parquet").write_bytes(parquet_of(frame))
    return folder / "tasks.parquet", lambda path: frame_of_parquet(path, path.read_bytes())


def a_shard(folder):
    draw_study(4, ["target"]).run(folder=folder)
    path = min((folder / "shards").iterdir())

    def read(_):
        # Of a shard that is refused StudyResult.load says that it is missing; here it is an error.
        result = StudyResult.load(folder)
        return result.rows, result.failures

    return path, read


def a_plan(folder):
    draw_study(4, ["target"]).run(folder=folder)

    def read(_):
        result = StudyResult.load(folder)
        return result.rows, dict(result.drawn_from), result.n_classes, dict(result.window_seconds)

    return folder / "study.json", read


def a_prior(kind):
    def make(folder):
        tasks = draw_tasks(8, 2 + (kind is MulticlassPrior))
        kind.from_tasks(tasks).save(folder / "prior.npz")

        def read(path):
            prior = kind.load(path)
            # Equality of priors leaves metadata out.
            return prior, dict(prior._metadata)

        return folder / "prior.npz", read

    return make


def a_model(n_classes):
    def make(folder):
        tasks = draw_tasks(6, n_classes)
        if n_classes == 2:
            rule = PosteriorBlendClassifier(TaskPrior.from_tasks(tasks[:-1]))
        else:
            rule = HierarchicalBlendClassifier(MulticlassPrior.from_tasks(tasks[:-1]))
        X = pd.DataFrame(np.asarray(tasks[-1].X), columns=list("abc"))
        save_model(rule.fit(X, tasks[-1].y), folder / "model.json")

        def read(path):
            # Everything that is loaded is a field of the file, where a number may be spelt
            # otherwise.
            load_model(path)
            return json.loads(path.read_bytes())

        return folder / "model.json", read

    return make


def a_session(name):
    def make(folder):
        tasks = draw_tasks(6)
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
    prior = TaskPrior.from_tasks(draw_tasks(8), replay=False, feature_scale=[1.0, 1.0, 1.0])
    prior.released(1.0, 1e-5, ledger=folder / "ledger.json")
    return folder / "ledger.json", lambda path: (Ledger(path).releases, Ledger(path).budget)


KINDS = {
    "table": a_table,
    "shard": a_shard,
    "plan": a_plan,
    "TaskPrior": a_prior(TaskPrior),
    "MulticlassPrior": a_prior(MulticlassPrior),
    "model": a_model(2),
    "model of many": a_model(3),
    "session": a_session("session.json"),
    "journal": a_session("windows.jsonl"),
    "ledger": a_ledger,
}


def same(one, other):
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pd.DataFrame):
        kinds = one.dtypes.equals(other.dtypes) and one.index.equals(other.index)
        return kinds and one.equals(other)
    return one == other


def flip_bits(kind, folder, n_flips, seed=0):
    """How often a file with one flipped bit is refused, harmless, or believed with other content.

    Everything but a ValueError or a warning, which say what is wrong, is raised.
    """
    path, read = KINDS[kind](folder)
    before, content = read(path), path.read_bytes()
    rng = np.random.default_rng(seed)
    found = Counter(refused=0, harmless=0, believed=0)
    for place in rng.integers(8 * len(content), size=n_flips).tolist():
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
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_never_believed(kind, tmp_path):
    found = flip_bits(kind, tmp_path, 150)
    assert found["believed"] == 0
    assert found["refused"] > 75


def test_a_flipped_bit_would_be_believed_without_a_digest(tmp_path):
    frame = draw_tasks().to_frame()
    frame.to_parquet(tmp_path / "theirs.parquet", index=False)
    content = (tmp_path / "theirs.parquet").read_bytes()
    rng = np.random.default_rng(0)
    believed = 0
    for place in rng.integers(8 * len(content), size=100).tolist():
        altered = bytearray(content)
        altered[place // 8] ^= 1 << place % 8
        try:
            # Whatever pyarrow and pandas raise, it is a ValueError with a sentence.
            believed += not same(frame, frame_of_parquet("theirs.parquet", bytes(altered)))
        except ValueError as refusal:
            assert str(refusal).startswith("theirs.parquet cannot be read as a table: ")  # noqa: PT017
    assert believed > 20


# -- tables ---------------------------------------------------------------------------------------


def test_tables_of_others_have_no_digest_and_are_read(tmp_path):
    tasks = draw_tasks()
    frame = tasks.to_frame()
    frame.to_parquet(tmp_path / "pandas.parquet", index=False)
    tasks.write(tmp_path / "ours.parquet")
    # Who works on a table of ours with pyarrow makes one of their own.
    ours = pq.read_table(tmp_path / "ours.parquet")
    pq.write_table(ours.slice(0, 24), tmp_path / "cut.parquet")
    assert len(read_tasks(tmp_path / "pandas.parquet")) == len(tasks)
    assert len(read_tasks(tmp_path / "cut.parquet")) == 1
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "ours.parquet"), frame)


# -- shards and plans -----------------------------------------------------------------------------


def by_pandas(path, change):
    frame = pd.read_parquet(path)
    change(frame).to_parquet(path)


def by_pyarrow(path, change):
    table = pq.read_table(path)
    frame = change(table.to_pandas())
    altered = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(altered.replace_schema_metadata(table.schema.metadata), path)


def perfect(frame):
    return frame.assign(balanced_accuracy=1.0)


def another_plan(path, folder):
    """A shard of the same task and method in a study with another seed."""
    study = CalibrationStudy(
        draw_tasks(), methods=["target", "posterior"], budgets=[2, 3], n_splits=4, random_state=1
    )
    study.run(folder=folder / "another")
    shutil.copy(min((folder / "another" / "shards").iterdir()), path)


DAMAGE = {
    "replaced": lambda path: shutil.copy(max(path.parent.iterdir()), path),
    "of another plan": lambda path: another_plan(path, path.parents[1]),
    "cut by pandas": lambda path: by_pandas(path, lambda frame: frame.head(3)),
    "cut by pyarrow": lambda path: by_pyarrow(path, lambda frame: frame.head(3)),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "perfect by pandas": lambda path: by_pandas(path, perfect),
    "perfect by pyarrow": lambda path: by_pyarrow(path, perfect),
    "of an older Crossfade": lambda path: pq.write_table(pq.read_table(path), path),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def test_shards_that_changed_places_are_both_computed_again(tmp_path):
    study = draw_study()
    whole = study.run(folder=tmp_path)
    first, second = sorted((tmp_path / "shards").iterdir())[:2]
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    with pytest.warns(UserWarning, match="^2 of 12 parts"):
        mended = study.run(folder=tmp_path)
    assert mended.rows["balanced_accuracy"].equals(whole.rows["balanced_accuracy"])


def test_shards_are_tables_for_everybody(tmp_path):
    import pyarrow.dataset as ds

    rows = draw_study().run(folder=tmp_path).rows
    table = ds.dataset(tmp_path / "shards").to_table(["task", "method", "balanced_accuracy"])
    assert table.num_rows == len(rows)
    assert sum(table["balanced_accuracy"].to_pylist()) == pytest.approx(
        rows["balanced_accuracy"].sum()
    )


# -- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["coef", "projection"])
def test_what_load_model_refuses_is_not_saved(make_target, tmp_path, field):
    rule = PosteriorBlendClassifier().fit(*make_target())
    # No fit gives such numbers any more, but a caller may.
    setattr(rule, f"{field}_", 1e101 * getattr(rule, f"{field}_"))
    message = f"The model was not written, since it could not be read again: {field} is too large"
    with pytest.raises(ValueError, match=message):
        save_model(rule, tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# -- sizes and depths -----------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"[" * 200_000, b'"\\', b"", b"\xff", b'{"a": 1, "a": 2}'])
def test_what_is_no_json_is_refused(content):
    with pytest.raises(ValueError, match=r"."):
        files.json_of(content)


def test_models_and_plans_without_end_are_refused(tmp_path):
    (tmp_path / "model.json").write_bytes(b"[" * 200_000)
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        load_model(tmp_path / "model.json")
    (tmp_path / "study.json").write_bytes(b"[" * 200_000)
    with pytest.raises(ValueError, match="is not the plan of a study"):
        StudyResult.load(tmp_path)


def test_an_array_without_end_is_refused(tmp_path):
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"(" * 9000
    head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("header.npy", head)
    with pytest.raises(ValueError, match=r"p\.npz is damaged or holds something other than numb"):
        TaskPrior.load(tmp_path / "p.npz")


def test_a_bomb_is_not_unpacked_by_the_command(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(50_000_000))
    found = CliRunner().invoke(main, ["prior", "show", str(tmp_path / "bomb.npz")])
    assert found.exit_code == 1
    assert "would unpack to 50000000; nothing in it was read" in found.stderr


@pytest.mark.parametrize("load", [TaskPrior.load, load_model])
def test_a_file_that_is_too_large_is_not_loaded(load, tmp_path):
    with open(tmp_path / "large", "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ValueError, match="large has more than"):
        load(tmp_path / "large")


@pytest.mark.parametrize("load", [TaskPrior.load, load_model])
def test_only_files_are_read(load, tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="none"):
        load(tmp_path / "none")


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
@pytest.mark.parametrize("load", [TaskPrior.load, load_model])
def test_devices_and_pipes_are_not_read(load, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe"):
        load(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a device"):
        load("/dev/zero")
    with pytest.raises(ValueError, match="is a device"):
        files.read_whole("/dev/zero", 100, pipes=True)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_pipe_is_read_where_it_is_allowed():
    for content, most in ((b"task,label\n", 100), (b"x" * 60_000, 60_000)):
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        assert files.read_whole(f"/dev/fd/{read}", most, pipes=True) == content
        os.close(read)
    read, write = os.pipe()
    os.write(write, b"x" * 101)
    os.close(write)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        files.read_whole(f"/dev/fd/{read}", 100, pipes=True)
    os.close(read)


# -- writing --------------------------------------------------------------------------------------


def write(path):
    files.write_whole(path, b"content")


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
@pytest.mark.parametrize("kind", ["a pipe", "a device"])
@pytest.mark.parametrize("words", ["prior build t.csv", "calibrate --prior prior.npz"])
def test_commands_write_to_files_only(words, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw_tasks().write("t.csv")
    TaskPrior.from_tasks(draw_tasks()).save("prior.npz")
    try:
        node = stat.S_IFIFO if kind == "a pipe" else stat.S_IFCHR
        os.mknod("node", node | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device takes a permission")
    before = os.stat("node")
    os.symlink("node", "link")
    with pytest.raises(FileExistsError, match=f"node is {kind}"):
        files.check_writable(Path("node"))
    for name in ("node", "link"):
        found = CliRunner().invoke(main, [*words.split(), "-o", name])
        assert found.exit_code == 1
        assert f"node is {kind}" in found.stderr
    assert (os.stat("node").st_ino, os.stat("node").st_mode) == (before.st_ino, before.st_mode)
    assert {path.name for path in Path().iterdir()} == {"link", "node", "prior.npz", "t.csv"}


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


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_no_file_of_a_study_replaces_anything_but_a_file(kind, written, tmp_path):
    names = written(tmp_path)
    assert {"rows.parquet", "study.json", "report.html"} < {path.name for path in names}
    for path in names:
        path.rename(tmp_path / "aside")
        try:
            node = stat.S_IFIFO if kind == "a pipe" else stat.S_IFCHR
            os.mknod(path, node | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("making a device takes a permission")
        before = path.stat()
        with warnings.catch_warnings():
            # Of a shard that is none.
            warnings.simplefilter("ignore", UserWarning)
            with pytest.raises((OSError, ValueError), match=rf"{path.name}:? (it )?is {kind}"):
                written(tmp_path)
        assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)
        (tmp_path / "aside").replace(path)


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_links_of_a_study_are_followed(written, tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "elsewhere").mkdir()
    before = {}
    for path in written(tmp_path / "study"):
        before[path] = path.read_bytes()
        path.rename(tmp_path / "elsewhere" / path.name)
        path.symlink_to(tmp_path / "elsewhere" / path.name)
        if path.name != "study.json" and path.parent.name != "shards":
            path.write_bytes(b"")
    written(tmp_path / "study")
    assert all(path.is_symlink() for path in before)
    assert {path: path.read_bytes() for path in before} == before


def test_names_as_long_as_they_may_be(tmp_path):
    write(tmp_path / ("x" * 255))
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 255]


STOP = """
import os, sys, time
from crossfade import _files

def stop(file):
    print("now", flush=True)
    time.sleep(600)

os.fsync = stop
_files.write_whole(sys.argv[1], b"content")
"""


@pytest.fixture
def writer(tmp_path):
    """A process that is about to write ``file``, and never does."""
    words = [sys.executable, "-c", STOP, str(tmp_path / "file")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        yield process
        process.kill()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_what_a_killed_run_left_is_removed_by_the_next(writer, tmp_path):
    assert len(list(tmp_path.iterdir())) == 1
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    [left] = tmp_path.iterdir()
    assert left.read_bytes() == b"content"
    write(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_what_another_run_is_writing_is_left_alone(writer, tmp_path):
    [theirs] = tmp_path.iterdir()
    write(tmp_path / "file")
    assert set(tmp_path.iterdir()) == {theirs, tmp_path / "file"}
    assert theirs.read_bytes() == b"content"


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
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


if __name__ == "__main__":
    warnings.simplefilter("error")
    total = Counter()
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            found = flip_bits(kind, Path(folder), int(sys.argv[1]))
        print(kind, dict(found), flush=True)
        total += found
    print("all", total.total(), dict(total), "believed", total["believed"])
