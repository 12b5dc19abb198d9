"""Three hospitals, one folder each: the commands of ``docs/federation.md``, as they stand there."""

import re
import shlex
import shutil
import socket
from contextlib import chdir
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from crossfade import HierarchicalBlendClassifier, Task, TaskPrior, TaskSet, load_mental_math
from crossfade.cli import main
from tests import pages

pytest.importorskip("cryptography")

PAGE = (Path(__file__).parents[2] / "docs" / "federation.md").read_text()
#: Of each command the first, that of Hospital A.
COMMANDS = {
    command.split()[2]: command.replace("\\\n", "")
    for block in reversed(pages.blocks_of(PAGE)[0])
    if block.language == "console"
    for command, _ in reversed(block.commands)
    if command.startswith("crossfade")
}
ENDS = ("key", "pub", "masked")


def run(folder, command, site="a"):
    """Run a command of the page in a folder, for a site."""
    words = shlex.split(command.replace("Hospital A", f"Hospital {site.upper()}"))[1:]
    own = {f"a{suffix}": f"{site}{suffix}" for suffix in (".key", ".masked")} | {"a": site}
    expanded = []
    for word in words:
        found = sorted(path.name for path in folder.glob(word)) if "*" in word else []
        expanded += found or [own.get(word, word)]
    with chdir(folder):
        return CliRunner().invoke(main, expanded)


def well(result):
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def refused(result, message):
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.fixture
def hospitals(tmp_path, monkeypatch):
    """Folders of three hospitals with their tasks, and of the one who adds up; no network."""

    def refuse(*_):
        raise AssertionError("a command opened a connection")

    for way in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, way, refuse)
    whole = load_mental_math()
    named = [
        Task(task.X, np.array(["rest", "arithmetic"])[task.y], task.name, None, task.feature_names)
        for task in whole
    ]
    parts = {"a": named[:10], "b": named[10:18], "c": named[18:30]}
    for site, part in parts.items():
        (tmp_path / site).mkdir()
        TaskSet(part).write(tmp_path / site / "tasks.csv")
    (tmp_path / "post").mkdir()
    TaskSet(named[30:35]).write(tmp_path / "post" / "public.csv")
    return tmp_path, parts, named[35]


def send(folder, name, *places):
    for place in places:
        shutil.copy(folder / name, place)


def test_the_page_has_the_commands():
    assert set(COMMANDS) == {"key", "scale", "agree", "mask", "sum", "release"}


def test_three_hospitals_get_one_prior(hospitals):
    folder, parts, newcomer = hospitals
    post = folder / "post"
    for site in parts:
        told = well(run(folder / site, COMMANDS["key"], site))
        assert f"Fingerprint of Hospital {site.upper()}: " in told
        assert "which is secret: do not copy it, do not send it" in told
        send(folder / site, f"{site}.pub", post)
    well(run(post, COMMANDS["scale"]))
    told = well(run(post, COMMANDS["agree"]))
    [code] = re.findall(r"Code of the agreement: ((?:[0-9a-f]{4} ?){10})\n", told)
    assert "9 features, classes 'arithmetic' and 'rest', at least 10 people in all" in told
    send(post, "agreement.json", *(folder / site for site in parts))

    # One hospital is late.
    for site, part in parts.items():
        if site == "c":
            refused(run(post, COMMANDS["sum"]), "The masked file of 'Hospital C' is missing")
        told = well(run(folder / site, COMMANDS["mask"], site))
        assert f"Code of the agreement: {code}" in told
        assert f"Masked: the sums of {len(part)} tasks. The secret in {site}.key is erased." in told
        send(folder / site, f"{site}.masked", post)
    assert not (post / "prior.npz").exists()
    told = well(run(post, COMMANDS["sum"]))
    assert "Prior of 30 tasks, 9 features" in told

    # It is what they would have had together.
    prior = TaskPrior.load(post / "prior.npz")
    scale = prior.feature_scale
    own = [TaskPrior.from_tasks(part, feature_scale=scale) for part in parts.values()]
    merged = reduce(add, own)
    # Digests of tasks stay where the tasks are; the sum has one of its own.
    assert prior.holds == merged.holds
    assert not {one.tobytes() for one in merged.parts} & {one.tobytes() for one in prior.parts}
    assert len(prior.parts) == 1
    assert prior.classes == ("arithmetic", "rest")
    for name in ("direction_sum", "outer_sum", "within_covariance", "half_gap"):
        assert np.abs(getattr(prior, name) - getattr(merged, name)).max() < 1e-12
    for verb, record in merged.replay.items():
        assert np.abs(prior.replay[verb].sums - record.sums).max() < 1e-12
    few = slice(None, None, 8)
    mine, theirs = (
        HierarchicalBlendClassifier(one).fit(newcomer.X[few], newcomer.y[few])
        for one in (prior, merged)
    )
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(mine.expected_accuracy_, theirs.expected_accuracy_, rtol=1e-6)

    # A second masked file, and files of the others in the wrong place.
    refused(run(folder / "a", COMMANDS["mask"], "a"), "a.key was used already")
    again = COMMANDS["mask"].replace("tasks.csv", "a.masked")
    refused(run(folder / "a", again, "a"), "a.masked is a masked file")

    well(run(post, COMMANDS["release"]))
    assert TaskPrior.load(post / "public.npz").release.epsilon == 1.0

    # Nothing else was written anywhere.
    left = {site: sorted(path.name for path in (folder / site).iterdir()) for site in parts}
    assert left == {
        site: sorted(["agreement.json", "tasks.csv", *(f"{site}.{end}" for end in ENDS)])
        for site in parts
    }
    letters = [f"{site}{suffix}" for site in parts for suffix in (".masked", ".pub")]
    made = ["agreement.json", "prior.npz", "public.csv", "public.npz", "scale.csv"]
    made.append("prior.ledger.json")  # what the release has spent
    assert sorted(path.name for path in post.iterdir()) == sorted(letters + made)


def test_people_with_several_sessions_are_released_as_people(hospitals):
    """Sessions count as tasks in the sum and as people in its release; class means have a bound."""
    pytest.importorskip("opendp")
    folder, parts, _ = hospitals
    post = folder / "post"
    for site, part in parts.items():
        sessions = [replace(task, group=f"p{place // 2}") for place, task in enumerate(part)]
        TaskSet(sessions).write(folder / site / "tasks.csv")
        well(run(folder / site, COMMANDS["key"], site))
        send(folder / site, f"{site}.pub", post)
    well(run(post, COMMANDS["scale"]))
    told = well(run(post, COMMANDS["agree"].replace(" -o ", " --clip 16 -o ")))
    assert "at least 10 people in all. Class means are clipped to 16." in told
    send(post, "agreement.json", *(folder / site for site in parts))
    for site in parts:
        told = well(run(folder / site, COMMANDS["mask"], site))
        send(folder / site, f"{site}.masked", post)
    assert "Masked: the sums of 12 tasks of 6 people." in told
    assert "Prior of 30 tasks, of 15 people" in well(run(post, COMMANDS["sum"]))
    assert "Prior of 15 tasks" in well(run(post, COMMANDS["release"]))
    assert TaskPrior.load(post / "public.npz").holds == ("outer_sum", "class_means")
