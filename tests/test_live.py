"""A calibration window by window: labels, journal, and what it says."""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
import pytest

from crossfade import (
    HierarchicalBlendClassifier,
    LiveCalibration,
    Recipe,
    TaskPrior,
    TaskSet,
    export_model,
    load_mental_math,
    load_model,
    save_model,
)
from crossfade.exceptions import PriorMismatchError
from crossfade.signals import OnlineFeatures


@pytest.fixture(scope="module")
def newcomer(people):
    return people[0]


@pytest.fixture
def prior(crowd_of_people):
    return crowd_of_people


@pytest.fixture(scope="module")
def powers():
    return TaskPrior.from_tasks(load_mental_math(features="log-powers")[1:], rehearse=False)


def both(newcomer, n):
    """Places of n windows of each class, in turn."""
    each = [np.flatnonzero(newcomer.y == name)[:n] for name in (0, 1)]
    return np.stack(each, 1).ravel()


def play(live, newcomer, n):
    for i in both(newcomer, n):
        live.add(newcomer.X[i], newcomer.y[i])
    return live


# -- the rule is that of all windows so far -------------------------------------------------------


def test_before_the_first_label_the_crowd_answers(prior):
    live, rule = LiveCalibration(prior), HierarchicalBlendClassifier(prior).start()
    state = live.state()
    assert state.counts == {"rest": 0, "arithmetic": 0}
    assert state.alpha == 0.0
    assert state.accuracy == rule.expected_accuracy_
    assert (state.lower, state.upper) == rule.expected_accuracy_interval(0.9)
    assert not state.advice.stop
    np.testing.assert_array_equal(live.model().coef, rule.coef_)


def test_the_rule_is_that_of_one_fit(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 6)
    places = both(newcomer, 6)
    rule = HierarchicalBlendClassifier(prior).fit(newcomer.X[places], newcomer.y[places])
    np.testing.assert_allclose(live.model().coef, rule.coef_, rtol=1e-9)
    assert live.state().accuracy == pytest.approx(rule.expected_accuracy_)
    extra = newcomer.X[40:60]
    for window in extra:
        live.add(window)
    rule.partial_fit(extra, None)
    np.testing.assert_allclose(live.model().coef, rule.coef_, rtol=1e-9)
    name, probability, all_of_them = live.predict(newcomer.X[70])
    expected = rule.predict_proba(newcomer.X[70:71])[0]
    assert all_of_them == pytest.approx({"rest": expected[0], "arithmetic": expected[1]})
    assert name == ["rest", "arithmetic"][int(expected.argmax())]
    assert probability == pytest.approx(expected.max())


def test_windows_that_are_left_out_do_not_count(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 3)
    before = live.state()
    live.leave_out("flat channel Fz", "rest")
    live.leave_out("gap", start=12.5)
    live.label(7, "arithmetic")
    after = live.state()
    assert (after.counts, after.accuracy) == (before.counts, before.accuracy)
    assert (after.n_windows, after.n_left_out, after.n_unlabelled) == (8, 2, 0)
    assert [one.note for one in live.windows[-2:]] == ["flat channel Fz", "gap"]
    assert live.windows[-1].start == 12.5


def test_many_classes(make_many, tmp_path):
    tasks = make_many()
    prior = TaskPrior.from_tasks(tasks[1:])
    live = LiveCalibration(prior, folder=tmp_path)
    rows = np.concatenate([np.flatnonzero(tasks[0].y == name)[:4] for name in prior.classes])
    for row in rows:
        live.add(tasks[0].X[row], tasks[0].y[row])
    live.add(tasks[0].X[-1])
    rule = HierarchicalBlendClassifier(prior).fit(tasks[0].X[rows], tasks[0].y[rows])
    np.testing.assert_allclose(live.model().coef, rule.coef_, rtol=1e-9)
    state = live.state()
    assert state.counts == {str(name): 4 for name in prior.classes}
    assert list(state.gains) == [*state.counts, "all"]
    assert state.n_unlabelled == 1
    assert sum(live.predict(tasks[0].X[0]).probabilities.values()) == pytest.approx(1.0)
    live.close()
    again = LiveCalibration.load(tmp_path)
    np.testing.assert_allclose(again.model().coef, live.model().coef, rtol=1e-9)
    again.close()


# -- labels that come later, and back -------------------------------------------------------------


def test_labels_may_come_later_and_be_taken_back(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 3)
    before = live.model().coef
    i = live.add(newcomer.X[20])
    live.label(i, "arithmetic")
    live.label(i, "rest")
    assert live.state().counts == {"rest": 4, "arithmetic": 3}
    assert live.undo() == "label"
    # As if it had had this label from the beginning.
    whole = play(LiveCalibration(prior), newcomer, 3)
    whole.add(newcomer.X[20], "arithmetic")
    np.testing.assert_allclose(live.model().coef, whole.model().coef, rtol=1e-9)
    live.label(0, "arithmetic")
    assert live.state().counts == {"rest": 2, "arithmetic": 5}
    assert [live.undo() for _ in range(3)] == ["label", "label", "window"]
    np.testing.assert_allclose(live.model().coef, before, rtol=1e-9)
    assert live.add(newcomer.X[20], None) == i


def test_a_model_names_its_features_and_stays_as_it_is(prior, newcomer, tmp_path):
    live = play(LiveCalibration(prior), newcomer, 2)
    model = live.model()
    save_model(model, tmp_path / "model.json")
    assert "'Fz_theta'" in load_model(tmp_path / "model.json").card()
    export_model(model, tmp_path / "model.h")
    assert '0: "Fz_theta"' in (tmp_path / "model.h").read_text()
    found = live.predict(newcomer.X[5]).probabilities
    frame = pd.DataFrame(newcomer.X[5:6], columns=newcomer.feature_names)
    before = model.predict_proba(frame)[0]
    assert before == pytest.approx(list(found.values()))
    with pytest.raises(ValueError, match="columns"):
        model.predict(frame.rename(columns={"Fz_theta": "other"}))
    live.add(newcomer.X[-1], "arithmetic")
    np.testing.assert_array_equal(model.predict_proba(frame)[0], before)


# -- refusals -------------------------------------------------------------------------------------

WRONG = {
    "label of no class": (lambda live: live.add(np.ones(9), "sleep"), ValueError, "sleep"),
    "label of no value": (lambda live: live.add(np.ones(9), True), ValueError, "True"),
    "too few features": (lambda live: live.add(np.zeros(3)), ValueError, "features"),
    "raw, no recipe": (lambda live: live.add(np.zeros((3, 1000))), ValueError, "recipe"),
    "NaN": (lambda live: live.add(np.full(9, np.nan)), ValueError, "NaN"),
    "too large": (lambda live: live.add(np.full(9, 1e300)), ValueError, "large"),
    "other units": (lambda live: live.add(np.full(9, 1e10)), PriorMismatchError, "units"),
    "start": (lambda live: live.add(np.ones(9), start=np.nan), ValueError, "start"),
    "window of none": (lambda live: live.label(0, "rest"), IndexError, "0"),
    "nothing to undo": (lambda live: live.undo(), ValueError, "take back"),
    "no task": (lambda live: live.task(), ValueError, "label"),
    "no prior": (lambda live: LiveCalibration(None), ValueError, "prior"),
    "prior without classes": (
        lambda live: LiveCalibration(TaskPrior.from_projections(np.eye(3))),
        ValueError,
        "class means",
    ),
    "prior without class means": (
        lambda live: LiveCalibration(live.prior.without("class_means")),
        ValueError,
        "class means",
    ),
    "text": (lambda live: live.add(["a"] * 9), ValueError, "numbers"),
    "want": (lambda live: LiveCalibration(live.prior, want=2.0), ValueError, "want"),
    "no session": (lambda live: LiveCalibration.load("nowhere"), FileNotFoundError, "nowhere"),
}


@pytest.mark.parametrize("what", WRONG)
def test_refusals(prior, what):
    live = LiveCalibration(replace(prior, space=replace(prior.space, recipe=None)))
    call, error, word = WRONG[what]
    with pytest.raises(error, match=word):
        call(live)
    assert live.windows == ()


def test_volts_for_microvolts_are_refused(powers):
    live = LiveCalibration(powers)
    for row in load_mental_math(features="log-powers")[0].X[::10]:
        with pytest.raises(PriorMismatchError, match="units"):
            live.add(row - 2.0 * np.log(1e6))


@pytest.mark.parametrize("features", ["shares", "log-powers"])
def test_nobodys_own_window_is_refused(features):
    """The largest and the smallest value of each feature, of people who are left out in turn."""
    people = load_mental_math(features=features)
    for place in range(0, len(people), 3):
        others = TaskSet([*people[:place], *people[place + 1 :]])
        live = LiveCalibration(TaskPrior.from_tasks(others, rehearse=False))
        X = people[place].X
        for row in np.unique([X.argmin(0), X.argmax(0)]):
            live.add(X[row])


# -- raw windows ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def causal():
    """A recipe with a filter and an overlap, and samples of three channels."""
    recipe = Recipe(
        kind="log-powers",
        sfreq=100.0,
        channels=("Fz", "Cz", "Pz"),
        window=2.0,
        overlap=0.5,
        filter="causal",
        band=(1.0, 40.0),
        bands=(("theta", 4.0, 8.0), ("alpha", 8.0, 13.0), ("beta", 13.0, 30.0)),
    )
    return recipe, 100.0 + np.random.default_rng(3).normal(0.0, 10.0, (3, 2000)).cumsum(1)


def cut(samples, n):
    """Window n of a stream: 2 s, each 1.5 s after the last, at 100 Hz."""
    return samples[:, 150 * n : 150 * n + 200]


def test_raw_windows_have_the_features_of_their_stream(powers, causal, tmp_path):
    recipe, samples = causal
    expected = [one.features for one in OnlineFeatures(recipe).push(samples)]
    live = LiveCalibration(
        replace(powers, space=replace(powers.space, recipe=recipe)), folder=tmp_path / "s"
    )
    for n in range(6):
        # What is predicted only is not heard.
        live.predict(cut(samples, n))
        live.add(cut(samples, n), n % 2, start=7.0 + 1.5 * n)
    found = [one.features for one in live.windows]
    np.testing.assert_allclose(found, expected[:6], rtol=1e-10)
    live.close()
    again = LiveCalibration.load(tmp_path / "s")
    assert again.recipe == recipe
    np.testing.assert_array_equal([one.features for one in again.windows], found)
    again.close()


def test_a_raw_window_after_a_gap_is_filtered_anew(powers, causal):
    recipe, samples = causal
    live = LiveCalibration(replace(powers, space=replace(powers.space, recipe=None)), recipe)
    live.add(cut(samples, 0), start=0.0)
    for start in (30.0, None):
        i = live.add(cut(samples, 1), start=start)
        [alone] = OnlineFeatures(recipe).push(cut(samples, 1))
        np.testing.assert_array_equal(live.windows[i].features, alone.features)


def test_raw_windows_that_do_not_fit_are_refused(prior, causal):
    recipe, samples = causal
    with pytest.raises(ValueError, match="--causal"):
        LiveCalibration(prior).add(samples[:, :1250])
    with pytest.raises(ValueError, match="shape"):
        LiveCalibration(replace(prior, space=replace(prior.space, recipe=None)), recipe).add(
            samples[:, :90]
        )
    with pytest.raises(PriorMismatchError, match="prior"):
        LiveCalibration(prior, recipe)


# -- the folder of a session ----------------------------------------------------------------------


def test_a_session_goes_on_where_it_was(prior, newcomer, tmp_path):
    folder = tmp_path / "session"
    live = LiveCalibration(prior, folder=folder, want=0.8)
    play(live, newcomer, 4)
    live.leave_out("blink")
    live.add(newcomer.X[31])
    live.label(9, "rest")
    live.undo()
    state = live.state()
    with pytest.raises(ValueError, match="open already"):
        LiveCalibration.load(folder)
    live.close()
    with pytest.raises(FileExistsError, match="holds a session"):
        LiveCalibration(prior, folder=folder)
    again = LiveCalibration.load(folder)
    assert again.state() == state
    assert (again.want, again.prior) == (0.8, prior)
    assert again.add(newcomer.X[32], "rest") == 10
    again.close()
    again = LiveCalibration.load(folder)
    assert again.state().counts == {"rest": 5, "arithmetic": 4}
    again.close()


@pytest.mark.parametrize("text", ["[]", "{", '{"format": "crossfade-session", "version": 2}'])
def test_other_descriptions_are_refused(prior, tmp_path, text):
    LiveCalibration(prior, folder=tmp_path).close()
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(ValueError, match="not a session of this version"):
        LiveCalibration.load(tmp_path)


@pytest.mark.parametrize("left", [1, 100])
def test_a_torn_last_line_is_dropped(prior, newcomer, tmp_path, left):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    live.add(newcomer.X[20], "rest")
    live.close()
    journal = tmp_path / "windows.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-left])
    again = LiveCalibration.load(tmp_path)
    assert again.state().counts == {"rest": 3, "arithmetic": 3}
    assert any("last line of the journal" in note for note in again.state().notes)
    again.add(newcomer.X[20], "rest")
    again.close()
    assert journal.read_bytes() == whole


@pytest.mark.parametrize("damage", ["changed", "lost", "cut"])
def test_a_damaged_line_is_refused(prior, newcomer, tmp_path, damage):
    play(LiveCalibration(prior, folder=tmp_path), newcomer, 3).close()
    journal = tmp_path / "windows.jsonl"
    lines = journal.read_text().splitlines()
    action = json.loads(lines[2])
    changed = json.dumps(action | {"label": 1 - action["label"]}, separators=(",", ":"))
    lines[2:3] = {"changed": [changed], "lost": [], "cut": [lines[2][:40]]}[damage]
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="Line 3"):
        LiveCalibration.load(tmp_path)


@pytest.mark.parametrize("at", ["write", "fsync"])
def test_a_full_disk_leaves_everything_as_it_was(prior, newcomer, tmp_path, monkeypatch, at):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    before, whole = live.state(), (tmp_path / "windows.jsonl").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with monkeypatch.context() as patch:
        if at == "fsync":
            patch.setattr(os, "fsync", full)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 40, limits[1]))
        try:
            with pytest.raises(OSError, match=r"No space|too large"):
                live.add(newcomer.X[30], "rest")
            with pytest.raises(OSError, match=r"No space|too large"):
                live.label(0, "arithmetic")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert live.state() == before
    assert (tmp_path / "windows.jsonl").read_bytes() == whole
    live.add(newcomer.X[30], "rest")
    live.close()
    again = LiveCalibration.load(tmp_path)
    assert again.state().counts == {"rest": 4, "arithmetic": 3}
    again.close()


# For every line of its input it starts a session in a process of its own, which is faster than to
# import everything each time.
SESSIONS = """
import os
import sys
import numpy as np
from crossfade import LiveCalibration

for _ in sys.stdin:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        print("ended", flush=True)
        continue
    print(os.getpid(), flush=True)
    live = LiveCalibration.load(sys.argv[1])
    rng = np.random.default_rng(len(live.windows))
    while True:
        i = live.add(rng.normal(0.3, 0.1, 9), label=int(rng.integers(2)))
        print("added", i, live.windows[i].features.sum().hex(), flush=True)
"""


def test_a_killed_session_loses_nothing_that_was_acknowledged(prior, tmp_path):
    chance = random.Random(0)
    LiveCalibration(prior, folder=tmp_path).close()
    acknowledged = {}
    with subprocess.Popen(
        [sys.executable, "-c", SESSIONS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    ) as sessions:
        for _ in range(8):
            sessions.stdin.write("go\n")
            sessions.stdin.flush()
            pid = int(sessions.stdout.readline())
            # At any moment of a window, or of the beginning.
            lines = [sessions.stdout.readline() for _ in range(chance.randrange(4))]
            time.sleep(chance.uniform(0.0, 0.01))
            os.kill(pid, signal.SIGKILL)
            for line in chain(lines, iter(sessions.stdout.readline, "ended\n")):
                # The last one may have been cut off, by which nothing was acknowledged.
                if line.startswith("added ") and not line.endswith("ended\n"):
                    _, place, total = line.split()
                    acknowledged[int(place)] = float.fromhex(total)
                elif line.endswith("ended\n"):
                    break
            live = LiveCalibration.load(tmp_path)
            found = {i: float(one.features.sum()) for i, one in enumerate(live.windows)}
            live.close()
            assert {i: found.get(i) for i in acknowledged} == acknowledged
    assert len(acknowledged) > 8
