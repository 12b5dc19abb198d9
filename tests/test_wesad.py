"""WESAD: pickles of the true layout with known beats, the paper's windows, and each refusal."""

import os
import pickle

import numpy as np
import pytest

from crossfade.datasets import read_wesad
from crossfade.signals.ecg import hamilton

SFREQ = 700


def ecg_of(beats, seconds):
    """R and T waves at known times, on a slow wave of the baseline."""
    time = np.arange(round(seconds * SFREQ)) / SFREQ
    signal = 0.1 * np.sin(2 * np.pi * 0.2 * time)
    for delay, height, width in ((0.0, 1.0, 0.012), (0.25, 0.2, 0.04)):
        for beat in beats:
            low, high = np.searchsorted(time, [beat + delay - 0.3, beat + delay + 0.3])
            near = time[low:high] - beat - delay
            signal[low:high] += height * np.exp(-0.5 * (near / width) ** 2)
    return signal


def breathing(label, k):
    """Intervals that swing with 0.3 Hz in baseline, and with 0.1 Hz under stress."""
    return 0.8 + 0.06 * np.sin(2 * np.pi * (0.3 if label == 1 else 0.1) * 0.8 * k)


def participant(parts, rr=breathing):
    """What a pickle holds; `parts` are labels and how many seconds each lasts."""
    label = np.concatenate([np.full(round(n * SFREQ), k, dtype=np.int32) for k, n in parts])
    seconds = label.size / SFREQ
    beats, k = [0.35], 0
    while beats[-1] < seconds - 1.0:
        beats.append(beats[-1] + rr(label[round(beats[-1] * SFREQ)], k))
        k += 1
    ecg = ecg_of(beats, seconds)
    zeros = np.zeros((label.size, 1))
    return {
        "signal": {
            "chest": {
                "ACC": np.zeros((label.size, 3)),
                "ECG": ecg[:, None],
                "EMG": zeros,
                "EDA": zeros,
                "Temp": zeros.astype(np.float32),
                "Resp": zeros,
            },
            "wrist": {"ACC": np.zeros((label.size // 22, 3)), "BVP": zeros[::11]},
        },
        "label": label,
        "subject": "S2",
    }


@pytest.fixture
def write(tmp_path):
    def make(name, content, protocol=2):
        path = tmp_path / "WESAD" / name / f"{name}.pkl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
        return path

    return make


PARTS = ((0, 20), (1, 60), (4, 10), (2, 45), (0, 7))


@pytest.mark.parametrize("protocol", [2, 5])
def test_features_labels_and_times_are_those_of_the_file(write, tmp_path, protocol):
    write("S2", participant(PARTS), protocol)
    [task] = read_wesad(tmp_path)
    assert (task.name, task.group) == ("S2", None)
    assert task.feature_names == ("pnn20", "sdnn_ratio", "lf_hf")
    np.testing.assert_array_equal(task.y, [0, 0, 0, 0, 1, 1, 1])
    assert task.y.dtype.kind == "i"
    # Seconds from the beginning of the recording, not of the condition.
    np.testing.assert_allclose(task.start, [20, 35, 50, 65, 90, 105, 120])
    assert (task.X[task.y == 0, 2] < 0.5).all()
    assert (task.X[task.y == 1, 2] > 1.0).all()


def as_run(beats):
    """The authors' features of beats in seconds, written out."""
    rr = np.diff(beats)
    share = np.sum(np.abs(np.diff(rr)) > 0.0201) / len(rr)
    frequencies = np.linspace(0.01, 1.0, 1000)
    offsets, at = rr - np.mean(rr), beats[1:]
    power = []
    for frequency in 2 * np.pi * frequencies:
        # Lomb's periodogram: a sine and a cosine, shifted so that they do not correlate.
        sums = np.sum(np.sin(2 * frequency * at)), np.sum(np.cos(2 * frequency * at))
        shift = np.arctan2(*sums) / (2 * frequency)
        waves = np.cos(frequency * (at - shift)), np.sin(frequency * (at - shift))
        power.append(sum((offsets @ wave) ** 2 / (wave @ wave) for wave in waves) / 2)
    power = np.array(power)
    low = power[(frequencies > 0.04) & (frequencies < 0.15)].sum()
    high = power[(frequencies > 0.15) & (frequencies < 0.4)].sum()
    return share, np.std(rr) / np.mean(rr), low / high


def test_features_as_the_authors_computed_them(write, tmp_path):
    """Beats of each window by itself, no interval dropped, and their three formulas."""

    def rr(label, k):
        # One beat in ten is missed: an interval of twice the length, which only they keep.
        return breathing(label, k) * (2.0 if k % 10 == 9 else 1.0)

    content = participant(PARTS, rr)
    write("S2", content)
    [task] = read_wesad(tmp_path, recipe="authors")
    [printed] = read_wesad(tmp_path)
    assert task.feature_names == printed.feature_names
    np.testing.assert_array_equal(task.y, printed.y)
    np.testing.assert_allclose(task.start, printed.start)
    ecg = content["signal"]["chest"]["ECG"][::7, 0]
    for row, start in zip(task.X, task.start, strict=True):
        window = ecg[round(100 * start) :][:1500]
        np.testing.assert_allclose(row, as_run(hamilton(window, sfreq=100) / 100), rtol=1e-6)
    # Long intervals make the deviation, unless they are dropped.
    assert (task.X[:, 1] > 1.5 * printed.X[:, 1]).all()


def test_windows_are_counted_as_the_paper_counts_those_of_s2(write, tmp_path):
    # S2 has 1144 s of baseline and 615 s of stress: 76 and 42 windows in the authors' analysis.
    content = participant(((0, 6), (1, 1144), (0, 20), (2, 615), (0, 3)))
    content["signal"] = {"chest": {"ECG": content["signal"]["chest"]["ECG"]}}
    write("S2", content, 5)
    [task] = read_wesad(tmp_path)
    np.testing.assert_array_equal(np.bincount(task.y), [76, 42])
    assert task.start[0] == 6
    # Four seconds of baseline and eleven of stress, then stress from its eleventh second on.
    np.testing.assert_allclose(task.start[75:78], [6 + 1125, 6 + 1140, 1170 + 11])
    np.testing.assert_allclose(task.start[-1], 1170 + 600)
    assert np.isfinite(task.X).all()


def test_no_interval_spans_baseline_and_stress(write, tmp_path):
    # Intervals of 0.8 s throughout; one across the seam would be of another length.
    def even(_, k):
        return 0.8 + 0.001 * (k % 3)

    for extra in (0.13, 0.31, 0.47):
        write("S2", participant(((1, 34.0), (0, 20 + extra), (2, 41.0)), even))
        [task] = read_wesad(tmp_path)
        np.testing.assert_array_equal(task.y, [0, 0, 1, 1, 1])
        assert task.X[:, 1].max() < 0.015


def test_participants_are_those_of_the_paper_in_their_order(write, tmp_path):
    content = pickle.dumps(participant(((1, 31), (2, 31))), 2)
    for number in range(18, 0, -1):
        write(f"S{number}", content)
    tasks = read_wesad(tmp_path)
    numbers = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17]
    assert [task.name for task in tasks] == [f"S{number}" for number in numbers]
    assert len(read_wesad(tmp_path / "WESAD" / "S10")) == 1


class Hostile:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def changed(keys, value):
    content = participant(((1, 31), (2, 31)))
    part = content
    for key in keys[:-1]:
        part = part[key]
    if value is None:
        del part[keys[-1]]
    else:
        part[keys[-1]] = value
    return content


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (lambda mark: {"signal": Hostile(mark)}, "nothing in it was run"),
        (lambda mark: changed(("signal", "wrist", "extra"), Hostile(mark)), "was run"),
        (lambda _: b"", "pickle"),
        (lambda _: pickle.dumps(participant(((1, 31), (2, 31))), 2)[:-9000], "pickle"),
        (lambda _: changed(("signal", "chest", "ECG"), None), "ECG"),
        (lambda _: changed(("label",), None), "label"),
        (lambda _: changed(("label",), np.ones(7)), "7 labels"),
        (lambda _: changed(("label",), np.ones(43400, dtype=int)), "stress"),
        (lambda _: changed(("signal", "chest", "ECG"), np.zeros(43400)), "no window"),
        (lambda _: changed(("signal", "chest", "ECG"), np.full(43400, np.nan)), "empty"),
        (
            lambda _: changed(
                ("signal", "chest", "ECG"), np.random.default_rng(0).standard_normal(43400)
            ),
            "no heartbeat",
        ),
        (lambda _: participant(((1, 7), (2, 7))), "shorter"),
    ],
)
def test_a_bad_file_is_named_and_the_others_are_read(write, tmp_path, content, word):
    mark = tmp_path / "mark"
    good = participant(((1, 31), (2, 31)))
    write("S2", good)
    write("S3", content(mark))
    write("S4", good)
    with pytest.warns(UserWarning, match=f"S3: .*{word}"):
        tasks = read_wesad(tmp_path)
    assert [task.name for task in tasks] == ["S2", "S4"]
    assert not mark.exists()


def test_folders_without_a_participant_are_refused(write, tmp_path):
    with pytest.raises(ValueError, match="no participant"):
        read_wesad(tmp_path)
    with pytest.raises(ValueError, match="recipe"):
        read_wesad(tmp_path, recipe="text")
    write("S2", b"nothing")
    with pytest.raises(ValueError, match=r"S2\.pkl"):
        read_wesad(tmp_path)
