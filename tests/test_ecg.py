"""Beats, RR intervals and heart rate variability: each function, both ends, each refusal."""

import logging
from statistics import median_high

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossfade.signals._hamilton import running_median
from crossfade.signals.ecg import (
    HeartRateVariability,
    clean_intervals,
    hamilton,
    heart_features,
)

ALL = ("pnn20", "sdnn_ratio", "lf_hf", "rate", "rmssd", "pnn50", "lf", "hf")
RATE = 250.0


def draw_ecg(beats, seconds, sfreq=RATE):
    """Bells of 10 ms at the given times, with a smaller and wider one after each."""
    time = np.arange(round(seconds * sfreq)) / sfreq
    since = time[:, None] - np.asarray(beats)
    return (
        np.exp(-0.5 * (since / 0.01) ** 2) + 0.2 * np.exp(-0.5 * ((since - 0.28) / 0.05) ** 2)
    ).sum(1)


BEATS = np.cumsum([0.7, *np.resize([0.8, 0.84, 0.9, 0.83, 0.78], 34)])
ECG = draw_ecg(BEATS, 30.0)


def test_beats_are_found_where_they_are():
    found = hamilton(ECG, sfreq=RATE)
    assert found.size == BEATS.size
    assert np.abs(found - BEATS * RATE).max() < 0.6


@pytest.mark.parametrize("form", [list, np.float32, ">f8", np.int16])
def test_any_sequence_of_numbers_will_do(form):
    signal = 1000.0 * ECG
    given = signal.tolist() if form is list else signal.astype(form)
    assert np.array_equal(hamilton(given, sfreq=RATE), hamilton(ECG, sfreq=RATE))


def test_signal_is_left_alone():
    signal = ECG.copy()
    signal.flags.writeable = False
    beats = hamilton(signal, sfreq=RATE)
    assert beats.dtype == np.int64
    assert np.array_equal(signal, ECG)


@pytest.mark.parametrize("level", [0.0, -3.3, 1e6])
def test_flat_signal_has_no_beats(level):
    assert hamilton(np.full(2500, level), sfreq=RATE).size == 0
    assert hamilton(np.full(250, level), sfreq=RATE).size == 0


@pytest.mark.parametrize("seconds", [1.0, 10.0, 700.3])
def test_slow_waves_and_trends_have_no_beats(seconds):
    time = np.arange(round(seconds * RATE)) / RATE
    for wave in (time, 5.0 - time**2, np.sin(2.0 * np.pi * 0.3 * time), np.sin(2 * np.pi * time)):
        assert hamilton(wave, sfreq=RATE).size == 0


def test_a_step_is_no_beat():
    signal = np.zeros(5000)
    signal[2000:] = 1.0
    assert hamilton(signal, sfreq=RATE).size == 0


def test_flat_segments_have_no_beats():
    """An electrode that falls off leaves the beats before and after as they are."""
    signal = np.concatenate([ECG, np.full(100_000, ECG[-1]), ECG])
    beats = hamilton(signal, sfreq=RATE)
    alone = hamilton(ECG, sfreq=RATE)
    off = ECG.size + 100_000
    assert np.array_equal(beats[beats < ECG.size - 50], alone[alone < ECG.size - 50])
    assert np.array_equal(beats[beats > off + 50] - off, alone)
    assert not ((beats > ECG.size + 50) & (beats < off - 50)).any()


def test_one_beat_is_found():
    assert hamilton(draw_ecg([0.6], 1.2), sfreq=RATE).tolist() == [150]


def test_parts_that_are_filtered_one_by_one_have_no_seams(monkeypatch):
    rng = np.random.default_rng(1)
    signal = np.tile(ECG, 5) + 0.05 * rng.standard_normal(5 * ECG.size)
    whole = hamilton(signal, sfreq=RATE)
    assert whole.size > 150
    for seconds in (1, 7, 60):
        monkeypatch.setattr("crossfade.signals._hamilton.BLOCK", seconds)
        assert np.array_equal(hamilton(signal, sfreq=RATE), whole)


def test_mere_noise_is_logged(caplog):
    noise = np.random.default_rng(0).standard_normal(60_000)
    with caplog.at_level(logging.WARNING, logger="crossfade"):
        hamilton(ECG, sfreq=RATE)
        assert not caplog.records
        hamilton(noise, sfreq=RATE)
    assert "hardly stand out" in caplog.text


@pytest.mark.parametrize(
    ("signal", "sfreq", "message"),
    [
        (np.where(np.arange(2500) % 1000 == 7, np.nan, 1.0), RATE, "3 of 2500 samples are NaN"),
        (np.where(np.arange(2500) == 7, -np.inf, 1.0), RATE, "1 of 2500 samples .* Cut them out"),
        (np.zeros((2, 2500)), RATE, r"one axis.*got shape \(2, 2500\)"),
        (3.0, RATE, r"one axis.*got shape \(\)"),
        (np.zeros(249), RATE, "a second or longer; got 249 samples at 250 Hz, which are 0.996 s"),
        ([], RATE, "a second or longer; got 0 samples"),
        (["a"] * 300, RATE, "signal must be numbers"),
        (np.zeros(300, complex), RATE, "real numbers"),
        (np.zeros(300), 0.0, "sfreq must be a positive number"),
        (np.zeros(300), -250.0, "sfreq must be a number of at least 0"),
        (np.zeros(300), np.nan, "sfreq must be a number"),
        (np.zeros(300), np.inf, "sfreq must be a positive number"),
        (np.zeros(300), "250", "sfreq must be a number"),
        (np.zeros(300), None, "sfreq must be a number"),
        (
            np.zeros(300),
            0.25,
            "sfreq must be 50 Hz or more .* got 0.25. It is in samples per second",
        ),
    ],
)
def test_hamilton_refuses(signal, sfreq, message):
    with pytest.raises(ValueError, match=message):
        hamilton(signal, sfreq=sfreq)


def test_there_is_no_default_rate():
    with pytest.raises(TypeError, match="sfreq"):
        hamilton(ECG)
    with pytest.raises(TypeError, match="sfreq"):
        HeartRateVariability()


def test_clean_intervals_of_regular_beats():
    found = clean_intervals([10, 20, 31, 40], sfreq=10.0)
    assert np.allclose(found.seconds, [1.0, 1.1, 0.9])
    assert np.allclose(found.times, [2.0, 3.1, 4.0])
    assert found.follows.tolist() == [False, True, True]
    assert found[3:] == (0, 0, 0)


def test_what_is_dropped_is_counted():
    intervals = [0.8, 0.8, 0.8, 1.6, 0.8, 0.8, 0.25, 0.55, 0.8, 0.8, 2.5, 0.8, 0.8]
    found = clean_intervals(np.cumsum([5.0, *intervals]), sfreq=1.0)
    assert (found.n_short, found.n_long, found.n_jumps) == (1, 1, 2)
    assert found.n_dropped == 4
    assert np.allclose(found.seconds, 0.8)
    assert found.seconds.size == 9
    assert np.flatnonzero(~found.follows).tolist() == [0, 3, 5, 7]


def test_bounds_belong_to_what_is_kept():
    """In samples at 10 Hz 0.3 and 2 s are whole numbers that seconds only round."""
    assert clean_intervals(1001 + 3 * np.arange(6), sfreq=10.0).seconds.size == 5
    assert clean_intervals(1001 + 20 * np.arange(6), sfreq=10.0).seconds.size == 5


@pytest.mark.parametrize("breaths", [0.1, 0.15, 0.2, 0.25, 0.3])
@pytest.mark.parametrize("usual", [0.7, 0.8, 1.0, 1.2])
def test_breathing_is_not_dropped(breaths, usual):
    """Deep breaths of a young heart: intervals swing by a fifth up and down."""
    beats = [0.0]
    while beats[-1] < 300.0:
        swing = 0.2 * np.sin(2.0 * np.pi * breaths * beats[-1])
        beats.append(beats[-1] + usual * (1.0 + swing))
    assert clean_intervals(beats, sfreq=1.0).n_dropped == 0


def test_missed_and_false_beats_are_dropped():
    """In a breathing heart, each beat missed costs its interval, and each false one two."""
    rng = np.random.default_rng(3)
    breath = 0.06 * np.sin(2.0 * np.pi * 0.25 * 0.85 * np.arange(400))
    beats = np.cumsum(0.85 * (1.0 + breath + 0.02 * rng.standard_normal(400)))
    missed = np.arange(20, 380, 15)
    assert clean_intervals(np.delete(beats, missed), sfreq=1.0).n_dropped == missed.size
    false = beats[missed] + 0.5 * (beats[missed + 1] - beats[missed])
    assert clean_intervals(np.sort([*beats, *false]), sfreq=1.0).n_dropped == 2 * missed.size


@pytest.mark.parametrize("beats", [[], [100]])
def test_too_few_beats_have_no_intervals(beats):
    found = clean_intervals(beats, sfreq=RATE)
    assert found.seconds.size == found.times.size == found.follows.size == 0
    values = heart_features(beats, [0.0, 5.0], 5.0, sfreq=RATE, features=ALL).values
    assert values.shape == (2, 8)
    assert np.isnan(values).all()


@pytest.mark.parametrize(
    ("beats", "message"),
    [
        ([1.0, 3.0, 2.0], "increasing; beat 2 is not later"),
        ([1.0, 1.0], "increasing; beat 1"),
        ([[1.0, 2.0]], r"one axis; got shape \(1, 2\)"),
        ([1.0, np.nan], "finite"),
        (["a"], "numbers"),
    ],
)
def test_clean_intervals_refuses(beats, message):
    with pytest.raises(ValueError, match=message):
        clean_intervals(beats, sfreq=1.0)


def test_features_by_hand():
    """Intervals 800, 820, 780, 840 ms: differences 20, -40, 60."""
    beats = [0, 800, 1620, 2400, 3240]
    found = heart_features(beats, [0.0], 3.3, sfreq=1000.0, features=ALL)
    values = dict(zip(ALL, found.values[0], strict=True))
    assert values["rate"] == pytest.approx(60.0 / 0.81)
    assert values["pnn20"] == pytest.approx(2 / 3)
    assert values["pnn50"] == pytest.approx(1 / 3)
    assert values["rmssd"] == pytest.approx(np.sqrt((400 + 1600 + 3600) / 3))
    assert values["sdnn_ratio"] == pytest.approx(np.sqrt((100 + 100 + 900 + 900) / 3) / 810)
    assert values["lf_hf"] == pytest.approx(values["lf"] / values["hf"])
    assert found.n_missing == dict.fromkeys(ALL, 0)


@pytest.mark.parametrize("sfreq", [50.0, 100.0, 200.0, 250.0, 700.0, 1000.0])
def test_twenty_ms_are_not_above_twenty_ms(sfreq):
    step = round(0.02 * sfreq)
    beats = np.cumsum(
        [round(1234.5 * sfreq), *np.resize([80 * step // 2, 80 * step // 2 + step], 40)]
    )
    found = heart_features(beats, [1200.0], 200.0, sfreq=sfreq, features=["pnn20"])
    assert found.values[0, 0] == 0.0


def test_each_feature_needs_its_number_of_beats():
    needs = {"rate": 2, "sdnn_ratio": 3, "pnn20": 3, "pnn50": 3, "rmssd": 3, "lf": 5, "hf": 5}
    for n_beats in range(7):
        beats = 0.5 + 0.8 * np.arange(n_beats) + 0.01 * (np.arange(n_beats) % 2)
        found = heart_features(beats, [0.0], 10.0, sfreq=1.0, features=list(needs))
        told = dict(zip(needs, ~np.isnan(found.values[0]), strict=True))
        assert told == {name: n_beats >= need for name, need in needs.items()}
        assert found.n_missing == {name: int(n_beats < need) for name, need in needs.items()}


def test_even_beats_have_no_power_and_no_ratio():
    found = heart_features(0.8 * np.arange(30), [0.0], 30.0, sfreq=1.0, features=ALL)
    values = dict(zip(ALL, found.values[0], strict=True))
    assert values["lf"] == values["hf"] == values["pnn20"] == 0.0
    assert np.isnan(values["lf_hf"])
    assert values["sdnn_ratio"] == pytest.approx(0.0, abs=1e-12)


def test_differences_do_not_span_what_was_dropped():
    """After a pause of 3 s the heart is slower by 100 ms: no step of successive intervals."""
    beats = np.cumsum([0.0, *[0.8] * 10, 3.0, *[0.9] * 10])
    values = heart_features(beats, [0.0], 30.0, sfreq=1.0, features=["pnn20", "rmssd"]).values
    assert np.allclose(values, 0.0)


def test_a_window_owns_the_intervals_within_it():
    beats = np.cumsum([0.0, *[0.5] * 20, *[1.0] * 10])
    values = heart_features(beats, [0.0, 10.0, 4.75], 10.0, sfreq=1.0, features=["rate"]).values
    inside = [0.5] * 10 + [1.0] * 4
    assert values[:, 0] == pytest.approx([120.0, 60.0, 60.0 / np.mean(inside)])
    assert heart_features(beats, [], 10.0, sfreq=1.0).values.shape == (0, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["pnn30"]}, "features must be one of 'pnn20'.*got 'pnn30'"),
        ({"features": "pnn20"}, "features must be a list of names out of pnn20.*got 'pnn20'"),
        ({"features": []}, "features must be a list"),
        ({"features": None}, "features must be a list"),
        ({"features": ["lf", "lf"]}, "once each"),
        ({"starts": [[0.0]]}, "starts must have one axis"),
        ({"starts": [np.nan]}, "starts must be finite"),
        ({"length": -1.0}, "length must be a number of at least 0"),
        ({"sfreq": 0}, "sfreq must be a positive number"),
    ],
)
def test_heart_features_refuses(options, message):
    given = {"starts": [0.0], "length": 10.0, "sfreq": 1.0} | options
    with pytest.raises(ValueError, match=message):
        heart_features([1.0, 2.0, 3.0], **given)


def test_windows_give_what_their_beats_give():
    X = np.stack([ECG[:5000], ECG[2000:7000]])
    values = HeartRateVariability(RATE, features=ALL).fit_transform(X)
    for row, window in zip(values, X, strict=True):
        beats = hamilton(window, sfreq=RATE)
        assert np.array_equal(
            row, heart_features(beats, [0.0], 20.0, sfreq=RATE, features=ALL).values[0]
        )
    assert np.isfinite(values).all()


def test_transformer_is_scikit_learns():
    X = np.stack([ECG[start : start + 2500] for start in range(0, 5000, 500)])
    hrv = HeartRateVariability(RATE)
    assert clone(hrv).get_params() == {"sfreq": RATE, "features": ("pnn20", "sdnn_ratio", "lf_hf")}
    assert hrv.fit(X).n_features_in_ == 2500
    assert hrv.get_feature_names_out().tolist() == ["pnn20", "sdnn_ratio", "lf_hf"]
    expected = hrv.transform(X)
    assert np.array_equal(HeartRateVariability(RATE).transform(X), expected)
    assert np.array_equal(hrv.fit_transform(X[:, None, :]), expected)
    assert np.array_equal(hrv.transform(X.tolist()), expected)
    frame = clone(hrv).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["pnn20", "sdnn_ratio", "lf_hf"]
    assert np.array_equal(frame.to_numpy(), expected)
    assert make_pipeline(hrv, StandardScaler()).fit_transform(X).shape == (10, 3)


def test_windows_without_a_heartbeat_are_empty(caplog):
    noise = np.random.default_rng(0).standard_normal(7500)
    with caplog.at_level(logging.WARNING, logger="crossfade"):
        values = HeartRateVariability(RATE, ALL).fit_transform([noise, ECG])
    assert np.isnan(values).tolist() == [[True] * 8, [False] * 8]
    assert "Of 2 windows, too few beats: none; no heartbeat, only noise: 1." in caplog.text


def test_missing_features_are_counted_in_the_log(caplog):
    X = np.stack([ECG[:2500], np.zeros(2500), draw_ecg([1.0, 2.0], 10.0)])
    with caplog.at_level(logging.WARNING, logger="crossfade"):
        values = HeartRateVariability(RATE, ["rate", "pnn20", "hf"]).fit_transform(X)
    assert np.isnan(values).tolist() == [[False] * 3, [True] * 3, [False, True, True]]
    assert len(caplog.records) == 1
    assert "Of 3 windows, too few beats: rate in 1, pnn20 in 2, hf in 2" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="crossfade"):
        HeartRateVariability(RATE).fit_transform(X[:1])
    assert not caplog.records


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.zeros((3, 2, 2500)), {}, r"windows of one lead.*\(3, 2, 2500\).*Choose one"),
        (np.zeros((3, 1, 1, 2500)), {}, "dim 4"),
        (np.zeros(2500), {}, "2D array"),
        (np.zeros((3, 100)), {}, "X must last a second or longer; got 100 samples"),
        (np.full((3, 2500), np.nan), {}, "7500 of 7500 samples are NaN"),
        (np.zeros((0, 2500)), {}, "0 sample"),
        (np.zeros((3, 2500)), {"sfreq": 0.0}, "sfreq must be a positive"),
        (np.zeros((3, 2500)), {"sfreq": "fast"}, "sfreq must be a number"),
        (np.zeros((3, 2500)), {"features": ["sdnn"]}, "features must be one of"),
    ],
)
def test_transformer_refuses(X, options, message):
    hrv = HeartRateVariability(**({"sfreq": RATE} | options))
    with pytest.raises(ValueError, match=message):
        hrv.fit(X)
    with pytest.raises(ValueError, match=message):
        hrv.transform(X)


def test_windows_must_be_as_long_as_in_fit():
    hrv = HeartRateVariability(RATE).fit(ECG[None, :2500])
    with pytest.raises(ValueError, match="2500"):
        hrv.transform(ECG[None, :2400])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 40])
@pytest.mark.parametrize(("before", "after"), [(4, 4), (0, 7), (3, 3)])
def test_running_median_mirrors_the_ends_however_few_values_there_are(n, before, after):
    values = np.random.default_rng(n).normal(size=n)
    mirrored = [*values, *values[::-1]]
    expected = [
        median_high(mirrored[at % (2 * n)] for at in range(here - before, here + after + 1))
        for here in range(n)
    ]
    assert running_median(values, before, after).tolist() == expected
