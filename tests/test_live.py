"""A session with a new person: windows, labels, journal, forgetting and what it says."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from pathlib import Path

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
from crossfade.live._journal import Journal
from crossfade.live._records import LiveWindow
from crossfade.live._sums import Sums
from crossfade.signals._online import OnlineFeatures


@pytest.fixture(scope="module")
def people():
    return load_mental_math()


@pytest.fixture(scope="module")
def newcomer(people):
    return people[0]


@pytest.fixture(scope="module")
def prior(people):
    return TaskPrior.from_tasks(people[1:])


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


def test_labels_may_come_later_and_be_taken_back(prior, newcomer):
    live = play(LiveCalibration(prior), newcomer, 3)
    states = [live.state()]
    i = live.add(newcomer.X[20])
    states.append(live.state())
    live.label(i, "arithmetic")
    states.append(live.state())
    live.label(i, "rest")
    assert live.state().counts == {"rest": 4, "arithmetic": 3}
    assert live.undo() == "label"
    assert live.state() == states[2]
    assert live.undo() == "label"
    assert live.state() == states[1]
    assert live.undo() == "window"
    assert live.state() == states[0]
    again = live.add(newcomer.X[20], "arithmetic")
    assert again == i
    assert live.state().accuracy == pytest.approx(states[2].accuracy, rel=1e-9)
    live.label(i, None)
    assert live.state() == states[1]


@pytest.mark.parametrize("forget", [None, 5.0])
def test_a_label_of_the_last_window_costs_the_same_after_many(prior, newcomer, monkeypatch, forget):
    live = play(LiveCalibration(prior, forget=forget), newcomer, 6)
    live.add(newcomer.X[20])
    live.add(newcomer.X[21])
    live.state()
    counted = []
    in_prior = Sums._in_prior

    def count(self, windows):
        counted.append(len(windows))
        return in_prior(self, windows)

    monkeypatch.setattr(Sums, "_in_prior", count)
    live.label(13, "rest")
    live.label(13, "arithmetic")
    live.state()
    live.undo()
    live.state()
    assert max(counted) == 1
    # As if it had been so from the beginning.
    whole = play(LiveCalibration(prior, forget=forget), newcomer, 6)
    whole.add(newcomer.X[20])
    whole.add(newcomer.X[21], "rest")
    np.testing.assert_allclose(live.model().coef_, whole.model().coef_, rtol=1e-9)
    live.label(12, "rest")
    whole.label(12, "rest")
    np.testing.assert_allclose(live.model().coef_, whole.model().coef_, rtol=1e-9)


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


def test_nothing_to_take_back(prior):
    with pytest.raises(ValueError, match="There is nothing to take back"):
        LiveCalibration(prior).undo()


def test_a_window_that_has_gone_cannot_be_labelled(prior, newcomer):
    live = LiveCalibration(prior)
    i = live.add(newcomer.X[0])
    live.undo()
    with pytest.raises(IndexError, match=r"no window 0: the session has 0, .* taken back"):
        live.label(i, "rest")


def test_what_is_no_class_is_refused(prior, newcomer):
    live = LiveCalibration(prior)
    for label in ("sleep", 2, True, np.int64(7)):
        with pytest.raises(
            ValueError, match=r"There is no class .*: the classes are rest, arithme"
        ):
            live.add(newcomer.X[0], label)
    assert live.state().n_windows == 0
    live.add(newcomer.X[0], np.int64(1))
    assert live.windows[0].label == 1


@pytest.mark.parametrize(
    ("window", "kind", "message"),
    [
        (np.zeros(3), PriorMismatchError, r"the prior's 9 features; got an array of shape \(3,\)"),
        (np.zeros((3, 1000)), ValueError, r"raw window of shape \(3, 1000\) needs the recipe"),
        (np.zeros((3, 2, 2)), PriorMismatchError, r"the prior's 9 features; got an array of shape"),
        (np.full(9, np.nan), ValueError, "features that are no numbers .* usable=False"),
        (None, ValueError, "without features cannot count: pass usable=False"),
    ],
)
def test_windows_that_cannot_be_are_refused(prior, window, kind, message):
    live = LiveCalibration(replace(prior, recipe=None))
    with pytest.raises(kind, match=message):
        live.add(window)
    assert live.windows == ()


@pytest.mark.parametrize("size", [1e10, 1e60, 1e160, 1e300])
def test_windows_of_which_no_rule_follows_are_refused(prior, newcomer, tmp_path, size):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    before, whole = live.state(), (tmp_path / "windows.jsonl").read_bytes()
    far = np.full(9, size)
    for label in ("rest", None):
        with pytest.raises(PriorMismatchError, match=r"_(theta|alpha|beta) is .* deviations from"):
            live.add(far, label)
    assert live.state() == before
    assert (tmp_path / "windows.jsonl").read_bytes() == whole
    live.add(far, "rest", usable=False)
    live.label(6, "arithmetic")
    live.add(newcomer.X[30], "rest")
    live.close()
    assert LiveCalibration.load(tmp_path).state().counts == {"rest": 4, "arithmetic": 3}


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_without_class_means_numbers_too_large_are_refused(prior, newcomer, size):
    live = play(LiveCalibration(prior.without("class_means", "replay")), newcomer, 3)
    with pytest.raises(
        PriorMismatchError, match=r"^No rule follows .* Check the signal and its units\.$"
    ):
        live.add(np.full(9, size), "rest")
    assert len(live.windows) == 6


@pytest.mark.parametrize("shift", [-2.0 * np.log(1e6), 1e6])
def test_windows_in_other_units_are_refused(shift):
    """Volts for microvolts shift a log power by -2 log(1e6)."""
    people = load_mental_math(features="log-powers")
    live = LiveCalibration(TaskPrior.from_tasks(people[1:], replay=False))
    for label in ("rest", "arithmetic", None):
        for row in people[0].X[::5]:
            with pytest.raises(
                PriorMismatchError,
                match=r"^\w\w_\w+ is [\d.e+]+ deviations from the crowd's: is the stream in other",
            ):
                live.add(row + shift, label)
    assert live.windows == ()


@pytest.mark.parametrize("features", ["shares", "log-powers"])
def test_nobody_s_own_window_is_refused(features):
    """Each person of Mental Math left out in turn, all of their windows."""
    people = load_mental_math(features=features)
    for place, person in enumerate(people):
        others = TaskSet([*people[:place], *people[place + 1 :]])
        empty = Sums.of_none(TaskPrior.from_tasks(others, replay=False), (0, 1), None)
        for row in person.X:
            assert not empty.then([LiveWindow(row)])._far()


def test_a_label_of_which_no_rule_follows_is_refused(prior, newcomer):
    """Far windows without a label count for little; as those of a class they do not."""
    live = play(LiveCalibration(prior.without("class_means", "replay")), newcomer, 3)
    i = live.add(np.full(9, 1e160))
    before = live.state()
    with pytest.raises(PriorMismatchError, match="No rule follows"):
        live.label(i, "rest")
    assert live.windows[i].label is None
    assert live.state().counts == before.counts
    assert live.state().accuracy == before.accuracy
    assert live.undo() == "window"


def test_parameters_that_cannot_be_are_refused(prior):
    with pytest.raises(TypeError, match=r"prior must be a TaskPrior or .* got NoneType"):
        LiveCalibration(None)
    bare = TaskPrior.from_projections(np.eye(3))
    with pytest.raises(ValueError, match="does not know its classes"):
        LiveCalibration(bare)
    for wrong in ({"forget": 0.0}, {"want": 2.0}, {"certainty": -1.0}, {"least_gain": np.nan}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            LiveCalibration(prior, **wrong)
    with pytest.raises(ValueError, match=r"ahead must be a whole number from 1 to 1000; got 2\.5"):
        LiveCalibration(prior, ahead=2.5)
    with pytest.raises(TypeError, match="usable must be True or False; got 'no'"):
        LiveCalibration(prior).add(np.zeros(9), usable="no")


# -- raw windows ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def powers():
    return TaskPrior.from_tasks(load_mental_math(features="log-powers")[1:])


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
    for start in (30.0, None):
        live = LiveCalibration(replace(powers, recipe=None), recipe)
        live.add(cut(samples, 0), start=0.0)
        live.add(cut(samples, 1), start=start)
        [alone] = OnlineFeatures(recipe).push(cut(samples, 1))
        np.testing.assert_array_equal(live.windows[1].features, alone.features)
        assert np.abs(alone.features - OnlineFeatures(recipe).push(samples)[1].features).max() > 0.0


def test_raw_windows_that_cannot_be_are_refused(prior, causal):
    recipe, samples = causal
    with pytest.raises(ValueError, match="filtered with zero phase, which needs the future"):
        LiveCalibration(prior).add(samples[:, :1250])
    live = LiveCalibration(replace(prior, recipe=None), recipe)
    with pytest.raises(ValueError, match=r"shape \(3, 200\): 2 s at 100 Hz, .* got \(3, 90\)"):
        live.add(samples[:, :90])
    assert live.windows == ()
    with pytest.raises(PriorMismatchError, match=r"are .*2 s \(overlap 0.5 s\).*the prior's are"):
        LiveCalibration(prior, recipe)
    with pytest.raises(TypeError, match="recipe must be a Recipe or None; got dict"):
        LiveCalibration(prior, recipe.to_dict())


def write_as_before(folder):
    """Write the journal of a session as it was before it said what the session was begun with."""
    check, lines = "", []
    for line in (folder / "windows.jsonl").read_text().splitlines():
        action = json.loads(line)
        del action["check"]
        text = check + json.dumps(action, separators=(",", ":"))
        check = sha256(text.encode()).hexdigest()[:16]
        lines.append(json.dumps(action | {"check": check}, separators=(",", ":")) + "\n")
    (folder / "windows.jsonl").write_text("".join(lines))


def test_a_session_from_before_recipes_loads(prior, newcomer, tmp_path):
    play(LiveCalibration(replace(prior, recipe=None), folder=tmp_path / "s"), newcomer, 2).close()
    path = tmp_path / "s" / "session.json"
    fields = json.loads(path.read_text())
    del fields["recipe"]
    path.write_text(json.dumps(fields))
    write_as_before(tmp_path / "s")
    again = LiveCalibration.load(tmp_path / "s")
    assert again.recipe is None
    assert len(again.windows) == 4
    again.close()


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
    for _ in range(60):
        live = LiveCalibration(various)
        noticed = False
        for step in range(120):
            live.add(rng.normal(2.0 * (step % 2), 1.0, 4), step % 2)
            noticed |= step % 20 == 19 and live.state().drift is not None
        alarms += noticed
    # One in 100 is promised; five of 60 would happen by chance once in 3,000 times.
    assert alarms < 5


def test_a_short_session_has_no_drift(various):
    assert session(various, np.random.default_rng(0), lambda x, _: x, n=39) is None


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
    assert LiveCalibration.load(tmp_path).state() == live.state()


def test_a_folder_with_a_session_is_not_begun_anew(prior, tmp_path):
    LiveCalibration(prior, folder=tmp_path).close()
    with pytest.raises(FileExistsError, match=r"holds a session already\. Go on with LiveCalibrat"):
        LiveCalibration(prior, folder=tmp_path)


def test_a_session_is_open_once(prior, tmp_path):
    live = LiveCalibration(prior, folder=tmp_path)
    with pytest.raises(ValueError, match="is open already"):
        LiveCalibration.load(tmp_path)
    live.close()
    LiveCalibration.load(tmp_path).close()


def test_what_is_no_session_is_refused(prior, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"session\.json"):
        LiveCalibration.load(tmp_path)
    LiveCalibration(prior, folder=tmp_path).close()
    for text in ("[]", "{", '{"format": "other", "version": 1}', '{"format": 1}'):
        (tmp_path / "session.json").write_text(text)
        with pytest.raises(ValueError, match="describes no session of this version"):
            LiveCalibration.load(tmp_path)


def test_a_torn_last_line_is_dropped(prior, newcomer, tmp_path):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    state = live.state()
    live.add(newcomer.X[20], "rest")
    live.close()
    journal = tmp_path / "windows.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-7])
    again = LiveCalibration.load(tmp_path)
    assert again.state().counts == state.counts
    assert any("last line of the journal was incomplete" in note for note in again.state().notes)
    again.add(newcomer.X[20], "rest")
    again.close()
    assert journal.read_bytes() == whole


@pytest.mark.parametrize("line", [0, 2])
def test_a_damaged_line_is_refused(prior, newcomer, tmp_path, line):
    play(LiveCalibration(prior, folder=tmp_path), newcomer, 3).close()
    journal = tmp_path / "windows.jsonl"
    lines = journal.read_text().splitlines()
    action = json.loads(lines[line])
    action["label"] = 1 - action["label"]
    lines[line] = json.dumps(action, separators=(",", ":"))
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"Line {line + 1} of .* is damaged"):
        LiveCalibration.load(tmp_path)
    del lines[line]
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"Line {line + 1} of .* is damaged"):
        LiveCalibration.load(tmp_path)


@pytest.mark.parametrize("bit", range(8))
def test_a_damaged_end_costs_no_window(prior, newcomer, tmp_path, bit):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    state = live.state()
    live.close()
    journal = tmp_path / "windows.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1 << bit]))
    again = LiveCalibration.load(tmp_path)
    assert again.state() == state
    again.close()
    assert journal.read_bytes() == whole


@pytest.mark.parametrize("name", ["windows.jsonl", "prior.npz", "session.json"])
def test_files_of_another_session_are_refused(prior, people, newcomer, tmp_path, name):
    other = TaskPrior.from_tasks(people[2:9])
    play(LiveCalibration(prior, folder=tmp_path / "a"), newcomer, 3).close()
    play(LiveCalibration(other, folder=tmp_path / "b", want=0.8), newcomer, 2).close()
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    message = r"Line 1 of .* is damaged, or of another session: it does not fit session\.json and"
    with pytest.raises(ValueError, match=message):
        LiveCalibration.load(tmp_path / "a")


def test_a_journal_of_an_older_version_is_read(prior, newcomer, tmp_path):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    state = live.state()
    live.close()
    whole = (tmp_path / "windows.jsonl").read_bytes()
    write_as_before(tmp_path)
    assert (tmp_path / "windows.jsonl").read_bytes() != whole
    again = LiveCalibration.load(tmp_path)
    assert again.state() == state
    again.add(newcomer.X[20], "rest")
    again.close()
    LiveCalibration.load(tmp_path).close()


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
def test_a_journal_that_is_a_pipe_is_refused(prior, tmp_path):
    LiveCalibration(prior, folder=tmp_path).close()
    (tmp_path / "windows.jsonl").unlink()
    os.mkfifo(tmp_path / "windows.jsonl")
    with pytest.raises(ValueError, match=r"windows\.jsonl is a pipe, and no journal\. Restore"):
        LiveCalibration.load(tmp_path)


class FullDisk:
    """A stream whose disk has room for so many more bytes."""

    def __init__(self, stream, room):
        self.stream, self.room = stream, room

    def write(self, line):
        part = line[: self.room]
        self.room -= len(part)
        if not part:
            raise OSError(28, "No space left on device")
        return self.stream.write(part)

    def __getattr__(self, name):
        return getattr(self.stream, name)


@pytest.mark.parametrize("room", [0, 40])
def test_a_full_disk_leaves_everything_as_it_was(prior, newcomer, tmp_path, room):
    live = play(LiveCalibration(prior, folder=tmp_path), newcomer, 3)
    before, whole = live.state(), (tmp_path / "windows.jsonl").read_bytes()
    stream = live._journal._stream
    live._journal._stream = FullDisk(stream, room)
    for action in (
        lambda: live.add(newcomer.X[30], "rest"),
        lambda: live.label(0, "arithmetic"),
        live.undo,
    ):
        with pytest.raises(OSError, match=r"No space left .* was not kept; those before are safe"):
            action()
    assert live.state() == before
    assert (tmp_path / "windows.jsonl").read_bytes() == whole
    live._journal._stream = stream
    live.add(newcomer.X[30], "rest")
    live.close()
    assert LiveCalibration.load(tmp_path).state().counts == {"rest": 4, "arithmetic": 3}


@pytest.mark.parametrize("then", ["write", "close"])
def test_half_a_line_that_could_not_be_removed_is_removed_later(tmp_path, then):
    class SickDisk(FullDisk):
        fails = True

        def truncate(self, size):
            if self.fails:
                raise OSError(5, "Input/output error")
            return self.stream.truncate(size)

    path = tmp_path / "windows.jsonl"
    journal = Journal(path)
    journal.write({"do": "add", "number": 0})
    whole = path.read_bytes()
    journal._stream = disk = SickDisk(journal._stream, room=10)
    for _ in range(2):
        # While the half line is there, nothing is written behind it.
        with pytest.raises(OSError, match="those before are safe"):
            journal.write({"do": "add", "number": 1})
        disk.room = 1000
    assert path.read_bytes() == whole + b'{"do":"add'
    disk.fails = False
    if then == "write":
        journal.write({"do": "add", "number": 2})
    journal.close()
    again = Journal(path)
    assert not again.torn
    assert [action["number"] for action in again.actions] == [0, 2][: 1 + (then == "write")]
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
        for _ in range(20):
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
    assert len(acknowledged) > 20


def test_a_journal_is_as_it_was_after_each_byte(tmp_path):
    path = tmp_path / "windows.jsonl"
    journal = Journal(path)
    for number in range(3):
        journal.write({"do": "add", "number": number})
    journal.close()
    whole = path.read_bytes()
    # A line is complete before its end.
    ends = np.flatnonzero(np.frombuffer(whole, np.uint8) == ord("\n"))
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        again = Journal(path)
        assert len(again.actions) == int((ends <= size).sum())
        again.close()
    assert Path(path).read_bytes() == whole
