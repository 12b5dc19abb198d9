"""A session with a new person: windows, labels, journal, forgetting and what it says."""

import errno
import json
import os
import random
import re
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
    MulticlassPrior,
    PosteriorBlendClassifier,
    Recipe,
    Task,
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
def people():
    return load_mental_math()


@pytest.fixture(scope="module")
def newcomer(people):
    return people[0]


@pytest.fixture(scope="module")
def prior(people):
    return TaskPrior.from_tasks(people[1:])


@pytest.fixture(scope="module")
def powers():
    return TaskPrior.from_tasks(load_mental_math(features="log-powers")[1:])


def both(newcomer, n):
    """Places of n windows of each class, in turn."""
    each = [np.flatnonzero(newcomer.y == name)[:n] for name in (0, 1)]
    return np.stack(each, 1).ravel()


def play(live, newcomer, n):
    for i in both(newcomer, n):
        live.add(newcomer.X[i], newcomer.y[i])
    return live


# -- the rule is that of all windows so far -------------------------------------------------------


def test_before_the_first_label_the_crowd_answers(prior, newcomer):
    live, rule = LiveCalibration(prior), HierarchicalBlendClassifier(prior).start()
    state = live.state()
    assert state.counts == {"rest": 0, "arithmetic": 0}
    assert state.alpha == 0.0
    assert state.accuracy == rule.expected_accuracy_
    assert (state.lower, state.upper) == rule.expected_accuracy_interval(0.9)
    assert not state.advice.stop
    assert state.advice.reason == "Neither rest nor arithmetic has a label yet."
    np.testing.assert_array_equal(live.model().coef_, rule.coef_)


def test_the_rule_is_that_of_one_fit(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 6)
    places = both(newcomer, 6)
    rule = HierarchicalBlendClassifier(prior).fit(newcomer.X[places], newcomer.y[places])
    np.testing.assert_allclose(live.model().coef_, rule.coef_, rtol=1e-9)
    assert live.state().accuracy == pytest.approx(rule.expected_accuracy_)
    extra = newcomer.X[40:60]
    for window in extra:
        live.add(window)
    rule.partial_fit(extra, None)
    np.testing.assert_allclose(live.model().coef_, rule.coef_, rtol=1e-9)
    name, probability, all_of_them = live.predict(newcomer.X[70])
    expected = rule.predict_proba(newcomer.X[70:71])[0]
    assert all_of_them == pytest.approx({"rest": expected[0], "arithmetic": expected[1]})
    assert name == ["rest", "arithmetic"][int(expected.argmax())]
    assert probability == pytest.approx(expected.max())


def test_a_model_is_a_copy(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 3)
    model = live.model()
    before = model.coef_.copy()
    live.add(newcomer.X[-1], "arithmetic")
    np.testing.assert_array_equal(model.coef_, before)
    more = pd.DataFrame(newcomer.X[10:20], columns=newcomer.feature_names)
    model.partial_fit(more, newcomer.y[10:20])
    assert live.state().counts == {"rest": 3, "arithmetic": 4}


def test_windows_that_cannot_be_used_do_not_count(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 3)
    before = live.state()
    broken = np.full(prior.n_features, np.nan)
    live.add(broken, "rest", usable=False, note="flat channel Fz")
    live.add(None, usable=False, note="gap", start=12.5)
    after = live.state()
    assert (after.counts, after.accuracy) == (before.counts, before.accuracy)
    assert (after.n_windows, after.n_left_out) == (8, 2)
    assert [one.note for one in live.windows[-2:]] == ["flat channel Fz", "gap"]
    assert live.windows[-1].start == 12.5


def test_without_class_means_there_is_a_rule_after_both_classes(prior, newcomer):
    live = LiveCalibration(prior.without("class_means", "replay"))
    live.add(newcomer.X[0], "rest")
    state = live.state()
    assert np.isnan(state.accuracy)
    assert state.advice.next == "arithmetic"
    with pytest.raises(ValueError, match=r"no window of arithmetic has a label\. Label at least 1"):
        live.model()
    live.add(newcomer.X[-1], "arithmetic")
    assert isinstance(live.model(), PosteriorBlendClassifier)
    assert 0.0 < live.state().accuracy < 1.0
    assert "holds no replay" in live.state().advice.reason
    assert any("no replay" in note for note in live.state().notes)


def test_many_classes(make_many):
    tasks = make_many()
    prior = MulticlassPrior.from_tasks(tasks[1:])
    live = LiveCalibration(prior)
    rows = np.concatenate([np.flatnonzero(tasks[0].y == name)[:4] for name in prior.classes])
    for row in rows:
        live.add(tasks[0].X[row], tasks[0].y[row])
    live.add(tasks[0].X[-1])
    rule = HierarchicalBlendClassifier(prior).fit(tasks[0].X[rows], tasks[0].y[rows])
    np.testing.assert_allclose(live.model().coef_, rule.coef_, rtol=1e-9)
    state = live.state()
    assert state.counts == {str(name): 4 for name in prior.classes}
    assert list(state.gains) == [*state.counts, "all"]
    assert state.n_unlabelled == 1
    assert sum(live.predict(tasks[0].X[0]).probabilities.values()) == pytest.approx(1.0)


# -- labels that come later, and back -------------------------------------------------------------


@pytest.mark.parametrize("forget", [None, 5.0])
def test_labels_may_come_later_and_be_taken_back(prior, newcomer, forget):
    live = play(LiveCalibration(prior, forget=forget), newcomer, 3)
    before = live.model().coef_
    i = live.add(newcomer.X[20])
    live.label(i, "arithmetic")
    live.label(i, "rest")
    assert live.state().counts == {"rest": 4, "arithmetic": 3}
    assert live.undo() == "label"
    # As if it had had this label from the beginning.
    whole = play(LiveCalibration(prior, forget=forget), newcomer, 3)
    whole.add(newcomer.X[20], "arithmetic")
    np.testing.assert_allclose(live.model().coef_, whole.model().coef_, rtol=1e-9)
    live.label(0, "arithmetic")
    assert live.state().counts == {"rest": 2, "arithmetic": 5}
    assert [live.undo() for _ in range(3)] == ["label", "label", "window"]
    np.testing.assert_allclose(live.model().coef_, before, rtol=1e-9)
    assert live.add(newcomer.X[20], None) == i


def test_a_model_names_its_features(prior, newcomer, tmp_path):
    live = play(LiveCalibration(prior), newcomer, 2)
    model = live.model()
    assert tuple(model.feature_names_in_) == prior.feature_names
    save_model(model, tmp_path / "model.json")
    assert "'Fz_theta'" in load_model(tmp_path / "model.json").card()
    export_model(model, tmp_path / "model.h")
    assert '0: "Fz_theta"' in (tmp_path / "model.h").read_text()
    # Windows of the session have no names, and need none; those of the model are in a frame.
    found = live.predict(newcomer.X[5]).probabilities
    frame = pd.DataFrame(newcomer.X[5:6], columns=newcomer.feature_names)
    assert model.predict_proba(frame)[0] == pytest.approx(list(found.values()))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"Fz_theta": "other"}))


# -- refusals -------------------------------------------------------------------------------------

WRONG = {
    "label of no class": (lambda live: live.add(np.ones(9), "sleep"), ValueError, "rest, arithme"),
    "label of no value": (lambda live: live.add(np.ones(9), True), ValueError, "no class True"),
    "too few features": (lambda live: live.add(np.zeros(3)), PriorMismatchError, "9 features"),
    "raw, no recipe": (lambda live: live.add(np.zeros((3, 1000))), ValueError, "recipe"),
    "NaN": (lambda live: live.add(np.full(9, np.nan)), ValueError, "usable=False"),
    "no features": (lambda live: live.add(None), ValueError, "usable=False"),
    "usable as text": (lambda live: live.add(np.ones(9), usable="no"), TypeError, "usable"),
    "start": (lambda live: live.add(np.ones(9), start=np.nan), ValueError, "start"),
    "window of none": (lambda live: live.label(0, "rest"), IndexError, "no window 0"),
    "nothing to undo": (lambda live: live.undo(), ValueError, "nothing to take back"),
    "no task": (lambda live: live.task(), ValueError, "no labelled window"),
    "no prior": (lambda live: LiveCalibration(None), TypeError, "NoneType"),
    "prior without classes": (
        lambda live: LiveCalibration(TaskPrior.from_projections(np.eye(3))),
        ValueError,
        "TaskPrior.from_tasks",
    ),
    "recipe as dict": (lambda live: LiveCalibration(live.prior, {}), TypeError, "Recipe or None"),
    "forget": (lambda live: LiveCalibration(live.prior, forget=0.0), ValueError, "forget"),
    "want": (lambda live: LiveCalibration(live.prior, want=2.0), ValueError, "want"),
    "certainty": (lambda live: LiveCalibration(live.prior, certainty=-1), ValueError, "certainty"),
    "gain": (lambda live: LiveCalibration(live.prior, least_gain=np.nan), ValueError, "least_gain"),
    "ahead": (lambda live: LiveCalibration(live.prior, ahead=2.5), ValueError, "ahead"),
    "no session": (lambda live: LiveCalibration.load("nowhere"), FileNotFoundError, "session.json"),
}


@pytest.mark.parametrize("what", WRONG)
def test_refusals(prior, what):
    live = LiveCalibration(replace(prior, recipe=None))
    call, error, word = WRONG[what]
    with pytest.raises(error, match=re.escape(word)):
        call(live)
    assert live.windows == ()


@pytest.mark.parametrize(
    ("parts", "size"), [((), 1e10), ((), 1e300), (("class_means", "replay"), 1e160)]
)
def test_windows_that_no_rule_follows_from_are_refused(prior, newcomer, size, parts):
    live = play(LiveCalibration(prior.without(*parts)), newcomer, 3)
    before, far = live.model().coef_, np.full(9, size)
    with pytest.raises(PriorMismatchError, match="units"):
        live.add(far, "rest")
    assert len(live.windows) == 6
    i = live.add(far, usable=False)
    live.label(i, "arithmetic")
    assert live.state().counts == {"rest": 3, "arithmetic": 3}
    np.testing.assert_array_equal(live.model().coef_, before)


@pytest.mark.parametrize("shift", [-2.0 * np.log(1e6), 1e6])
def test_windows_in_other_units_are_refused(powers, shift):
    """Volts for microvolts shift a log power by -2 log(1e6)."""
    live = LiveCalibration(powers)
    for row in load_mental_math(features="log-powers")[0].X[::10]:
        with pytest.raises(PriorMismatchError, match=r"deviations .* in other units"):
            live.add(row + shift)
    assert live.windows == ()


@pytest.mark.parametrize("features", ["shares", "log-powers"])
def test_nobodys_own_window_is_refused(features):
    """The largest and the smallest value of each feature, of people who are left out in turn."""
    people = load_mental_math(features=features)
    for place in range(0, len(people), 3):
        others = TaskSet([*people[:place], *people[place + 1 :]])
        live = LiveCalibration(TaskPrior.from_tasks(others, replay=False))
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
    prior = powers
    recipe, samples = causal
    expected = [one.features for one in OnlineFeatures(recipe).push(samples)]
    live = LiveCalibration(replace(prior, recipe=recipe), folder=tmp_path / "s")
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
    live = LiveCalibration(replace(powers, recipe=None), recipe)
    live.add(cut(samples, 0), start=0.0)
    for start in (30.0, None):
        i = live.add(cut(samples, 1), start=start)
        [alone] = OnlineFeatures(recipe).push(cut(samples, 1))
        np.testing.assert_array_equal(live.windows[i].features, alone.features)


def test_raw_windows_that_do_not_fit_are_refused(prior, causal):
    recipe, samples = causal
    with pytest.raises(ValueError, match="zero phase"):
        LiveCalibration(prior).add(samples[:, :1250])
    live = LiveCalibration(replace(prior, recipe=None), recipe)
    with pytest.raises(ValueError, match=r"\(3, 200\).* got \(3, 90\)"):
        live.add(samples[:, :90])
    with pytest.raises(PriorMismatchError, match="the prior's are"):
        LiveCalibration(prior, recipe)


# -- forgetting -----------------------------------------------------------------------------------


def test_a_window_of_one_half_life_counts_half(prior, newcomer):
    live = play(LiveCalibration(prior, forget=4.0), newcomer, 8)
    places = both(newcomer, 8)
    weight = 0.5 ** (np.arange(16)[::-1] / 4.0)
    rule = HierarchicalBlendClassifier(prior).fit(
        newcomer.X[places], newcomer.y[places], sample_weight=weight
    )
    np.testing.assert_allclose(live.model().coef_, rule.coef_, rtol=1e-9)
    # A label that comes later, or is taken back, changes nothing but itself.
    i = live.add(newcomer.X[30])
    live.label(i, "rest")
    live.undo()
    live.undo()
    np.testing.assert_allclose(live.model().coef_, rule.coef_, rtol=1e-9)


def test_what_is_forgotten_leaves_one_window_of_each_class(prior, newcomer):
    live = LiveCalibration(prior, forget=1.0)
    live.add(newcomer.X[0], "rest")
    live.add(newcomer.X[-1], "arithmetic")
    for window in newcomer.X[5:40]:
        live.add(window, "rest")
    state = live.state()
    assert state.counts == {"rest": 36, "arithmetic": 1}
    np.testing.assert_allclose(live.model()._moments.counts, [2.0, 1.0], rtol=1e-6)
    assert 0.0 < state.accuracy < 1.0


@pytest.fixture(scope="module")
def various():
    """Prior of people whose windows lie all over the place."""
    rng = np.random.default_rng(5)
    tasks = []
    for _ in range(20):
        y = np.arange(40) % 2
        tasks.append(Task(rng.normal(size=(40, 4)) + rng.normal(0, 3, 4) + 2.0 * y[:, None], y))
    return TaskPrior.from_tasks(TaskSet(tasks))


def test_forgetting_follows_a_person_who_changes(various):
    middles = []
    for forget in (None, 10.0):
        rng = np.random.default_rng(0)
        live = LiveCalibration(various, forget=forget)
        for step in range(120):
            move = 3.0 * (step >= 60)
            live.add(rng.normal(2.0 * (step % 2) - 1.0 + move, 0.5, 4), step % 2)
        middles.append(live.model().midpoint_)
    whole, recent = (np.abs(one - 3.0).max() for one in middles)
    assert recent < 0.5
    assert whole > 1.0


# -- drift ----------------------------------------------------------------------------------------


def session(various, rng, change, *, labelled=200, n=140):
    """What is said about a session of somebody who changes at the 100th window."""
    live = LiveCalibration(various)
    for step in range(n):
        x = rng.normal(2.0 * (step % 2), 1.0, 4)
        live.add(change(x, rng) if step >= 100 else x, step % 2 if step < labelled else None)
    return live.state().drift


def test_a_move_along_the_direction_is_noticed(various):
    found = session(various, np.random.default_rng(0), lambda x, _: x + 1.0)
    assert "moved by" in found
    assert "the threshold may be off. Label some new windows of each class" in found


@pytest.mark.parametrize("labelled", [20, 200])
def test_artefacts_are_noticed_with_and_without_labels(various, labelled):
    found = session(
        various,
        np.random.default_rng(1),
        lambda x, rng: x + 3.0 * rng.normal(size=4),
        labelled=labelled,
    )
    assert "are unlike those before" in found
    assert "Check the signal" in found


def test_false_alarms_are_rare(various):
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(24):
        live = LiveCalibration(various)
        noticed = False
        for step in range(100):
            live.add(rng.normal(2.0 * (step % 2), 1.0, 4), step % 2)
            noticed |= step % 20 == 19 and live.state().drift is not None
        alarms += noticed
    # One in 100 is promised; four of 24 would happen by chance once in 10,000 times.
    assert alarms < 4


# -- the folder of a session ----------------------------------------------------------------------


def test_a_session_goes_on_where_it_was(prior, newcomer, tmp_path):
    folder = tmp_path / "session"
    live = LiveCalibration(prior, folder=folder, forget=30, want=0.8, ahead=4)
    play(live, newcomer, 4)
    live.add(newcomer.X[30], note="blink", usable=False)
    live.add(newcomer.X[31])
    live.label(9, "rest")
    live.undo()
    state = live.state()
    live.close()
    again = LiveCalibration.load(folder)
    assert again.state() == state
    assert again.goal == live.goal
    assert again.prior == prior
    i = again.add(newcomer.X[32], "rest")
    assert i == 10
    again.close()
    assert LiveCalibration.load(folder).state().counts == {"rest": 5, "arithmetic": 4}


def test_a_session_of_many_classes_goes_on(make_many, tmp_path):
    tasks = make_many()
    live = LiveCalibration(MulticlassPrior.from_tasks(tasks[1:]), folder=tmp_path)
    for row in range(12):
        live.add(tasks[0].X[row], tasks[0].y[row])
    live.close()
    again = LiveCalibration.load(tmp_path)
    np.testing.assert_allclose(again.model().coef_, live.model().coef_, rtol=1e-9)


def test_folders_in_use_are_refused(prior, tmp_path):
    live = LiveCalibration(prior, folder=tmp_path)
    with pytest.raises(ValueError, match="is open already"):
        LiveCalibration.load(tmp_path)
    live.close()
    with pytest.raises(FileExistsError, match="holds a session already"):
        LiveCalibration(prior, folder=tmp_path)
    LiveCalibration.load(tmp_path).close()


@pytest.mark.parametrize("text", ["[]", "{", '{"format": "crossfade-session", "version": 1}'])
def test_other_descriptions_are_refused(prior, tmp_path, text):
    LiveCalibration(prior, folder=tmp_path).close()
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(ValueError, match="not a session of this version"):
        LiveCalibration.load(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
def test_a_journal_that_is_a_pipe_is_refused(prior, tmp_path):
    LiveCalibration(prior, folder=tmp_path).close()
    (tmp_path / "windows.jsonl").unlink()
    os.mkfifo(tmp_path / "windows.jsonl")
    with pytest.raises(ValueError, match="a pipe"):
        LiveCalibration.load(tmp_path)


@pytest.mark.parametrize("left", [1, 7, 100])
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


@pytest.mark.parametrize("line", [0, 2])
@pytest.mark.parametrize("damage", ["changed", "lost", "cut"])
def test_a_damaged_line_is_refused(prior, newcomer, tmp_path, line, damage):
    play(LiveCalibration(prior, folder=tmp_path), newcomer, 3).close()
    journal = tmp_path / "windows.jsonl"
    lines = journal.read_text().splitlines()
    action = json.loads(lines[line])
    changed = json.dumps(action | {"label": 1 - action["label"]}, separators=(",", ":"))
    lines[line : line + 1] = {"changed": [changed], "lost": [], "cut": [lines[line][:40]]}[damage]
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"Line {line + 1} of .* is damaged"):
        LiveCalibration.load(tmp_path)


@pytest.mark.parametrize("at", ["write", "fsync"])
def test_a_full_disk_leaves_everything_as_it_was(prior, newcomer, tmp_path, monkeypatch, at):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    before, whole = live.state(), (tmp_path / "windows.jsonl").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if at == "fsync":
            patch.setattr(os, "fsync", full)
        else:
            room = len(whole) + 40
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            for action in (
                lambda: live.add(newcomer.X[30], "rest"),
                lambda: live.label(0, "arithmetic"),
            ):
                with pytest.raises(OSError, match="was not kept; those before it are safe"):
                    action()
        finally:
            if at == "write":
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert live.state() == before
    assert (tmp_path / "windows.jsonl").read_bytes() == whole
    live.add(newcomer.X[30], "rest")
    live.close()
    assert LiveCalibration.load(tmp_path).state().counts == {"rest": 4, "arithmetic": 3}


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
