"""Beats, RR intervals and heart rate variability: each function, both ends, each refusal."""

import numpy as np
import pytest

from crossfade.signals import features_of_windows, heart_features
from crossfade.signals.ecg import hamilton

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


@pytest.mark.parametrize("seconds", [1.0, 10.0, 700.3])
def test_slow_waves_and_trends_have_no_beats(seconds):
    time = np.arange(round(seconds * RATE)) / RATE
    waves = [np.sin(2.0 * np.pi * frequency * time) for frequency in (0.3, 1.0)]
    for wave in (*waves, time, 5.0 - time**2, np.full(time.size, -3.3)):
        assert hamilton(wave, sfreq=RATE).size == 0


def test_flat_segments_have_no_beats():
    """An electrode that falls off leaves the beats before and after as they are."""
    signal = np.concatenate([ECG, np.full(100_000, ECG[-1]), ECG])
    beats = hamilton(signal, sfreq=RATE)
    alone = hamilton(ECG, sfreq=RATE)
    off = ECG.size + 100_000
    assert np.array_equal(beats[beats < ECG.size - 50], alone[alone < ECG.size - 50])
    assert np.array_equal(beats[beats > off + 50] - off, alone)
    assert not ((beats > ECG.size + 50) & (beats < off - 50)).any()


@pytest.mark.parametrize(
    ("signal", "sfreq", "word"),
    [
        (np.where(np.arange(2500) % 1000 == 7, np.nan, 1.0), RATE, "finite"),
        (np.zeros((2, 2500)), RATE, "one lead"),
        (3.0, RATE, "signal"),
        ([], RATE, "second"),
        (["a"] * 300, RATE, "numbers"),
        (np.zeros(300), 0.0, "sfreq"),
        (np.zeros(300), None, "sfreq"),
        (np.zeros(300), 0.25, "sfreq"),
    ],
)
def test_hamilton_refuses(signal, sfreq, word):
    with pytest.raises(ValueError, match=word):
        hamilton(signal, sfreq=sfreq)


def features_of(beats, length=1000.0, features=ALL, starts=(0.0,)):
    """Features of windows from beats in seconds."""
    beats, starts = np.asarray(beats, float), np.asarray(starts, float)
    return heart_features(beats, starts, length, features)


def rate_of(beats):
    return features_of(beats, features=["rate"])[0, 0]


def test_false_and_missed_beats_do_not_count():
    intervals = [0.8, 0.8, 0.8, 1.6, 0.8, 0.8, 0.25, 0.55, 0.8, 0.8, 2.5, 0.8, 0.8]
    found = dict(zip(ALL, features_of(np.cumsum([5.0, *intervals]))[0], strict=True))
    assert found["rate"] == pytest.approx(75.0)
    assert found["rmssd"] == pytest.approx(0.0, abs=1e-9)


def test_bounds_belong_to_what_is_kept():
    """In samples at 10 Hz 0.3 and 2 s are whole numbers that seconds only round."""
    assert rate_of((1001 + 3 * np.arange(6)) / 10.0) == pytest.approx(200.0)
    assert rate_of((1001 + 20 * np.arange(6)) / 10.0) == pytest.approx(30.0)


@pytest.mark.parametrize("breaths", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("usual", [0.7, 1.2])
def test_breathing_is_not_dropped(breaths, usual):
    """Deep breaths of a young heart: intervals swing by a fifth up and down."""
    beats = [0.0]
    while beats[-1] < 300.0:
        swing = 0.2 * np.sin(2.0 * np.pi * breaths * beats[-1])
        beats.append(beats[-1] + usual * (1.0 + swing))
    assert rate_of(beats) == pytest.approx(60.0 / np.diff(beats).mean())


def test_in_a_breathing_heart_missed_and_false_beats_are_dropped():
    rng = np.random.default_rng(3)
    breath = 0.06 * np.sin(2.0 * np.pi * 0.25 * 0.85 * np.arange(400))
    beats = np.cumsum(0.85 * (1.0 + breath + 0.02 * rng.standard_normal(400)))
    wrong = np.arange(20, 380, 15)
    seconds = np.diff(beats)
    missed = np.delete(seconds, np.union1d(wrong, wrong - 1))
    assert rate_of(np.delete(beats, wrong)) == pytest.approx(60.0 / missed.mean())
    false = beats[wrong] + 0.5 * seconds[wrong]
    without = np.delete(seconds, wrong)
    assert rate_of(np.sort([*beats, *false])) == pytest.approx(60.0 / without.mean())


def test_features_by_hand():
    """Intervals 800, 820, 780, 840 ms: differences 20, -40, 60."""
    values = dict(zip(ALL, features_of([0.0, 0.8, 1.62, 2.4, 3.24], 3.3)[0], strict=True))
    assert values["rate"] == pytest.approx(60.0 / 0.81)
    assert values["pnn20"] == pytest.approx(2 / 3)
    assert values["pnn50"] == pytest.approx(1 / 3)
    assert values["rmssd"] == pytest.approx(np.sqrt((400 + 1600 + 3600) / 3))
    assert values["sdnn_ratio"] == pytest.approx(np.sqrt((100 + 100 + 900 + 900) / 3) / 810)
    assert values["lf_hf"] == pytest.approx(values["lf"] / values["hf"])


@pytest.mark.parametrize("sfreq", [50.0, 100.0, 250.0, 700.0])
def test_twenty_ms_are_not_above_twenty_ms(sfreq):
    step = round(0.02 * sfreq)
    beats = np.cumsum(
        [round(1234.5 * sfreq), *np.resize([80 * step // 2, 80 * step // 2 + step], 40)]
    )
    assert features_of(beats / sfreq, 200.0, ["pnn20"], [1200.0])[0, 0] == 0.0


def test_each_feature_needs_its_number_of_beats():
    needs = {"rate": 2, "sdnn_ratio": 3, "pnn20": 3, "pnn50": 3, "rmssd": 3, "lf": 5, "hf": 5}
    for n_beats in range(7):
        beats = 0.5 + 0.8 * np.arange(n_beats) + 0.01 * (np.arange(n_beats) % 2)
        found = features_of(beats, 10.0, list(needs))[0]
        told = dict(zip(needs, ~np.isnan(found), strict=True))
        assert told == {name: n_beats >= need for name, need in needs.items()}


def test_even_beats_have_no_power_and_no_ratio():
    values = dict(zip(ALL, features_of(0.8 * np.arange(30))[0], strict=True))
    assert values["lf"] == values["hf"] == values["pnn20"] == 0.0
    assert np.isnan(values["lf_hf"])
    assert values["sdnn_ratio"] == pytest.approx(0.0, abs=1e-12)


def test_differences_do_not_span_what_was_dropped():
    """After a pause of 3 s the heart is slower by 100 ms: no step of successive intervals."""
    beats = np.cumsum([0.0, *[0.8] * 10, 3.0, *[0.9] * 10])
    np.testing.assert_allclose(features_of(beats, features=["pnn20", "rmssd"]), 0.0, atol=1e-9)


def test_a_window_owns_the_intervals_within_it():
    beats = np.cumsum([0.0, *[0.5] * 20, *[1.0] * 10])
    values = features_of(beats, 10.0, ["rate"], [0.0, 10.0, 4.75])
    inside = [0.5] * 10 + [1.0] * 4
    assert values[:, 0] == pytest.approx([120.0, 60.0, 60.0 / np.mean(inside)])


def test_windows_give_what_their_beats_give():
    X = np.stack([ECG[:5000], ECG[2000:7000]])
    values = features_of_windows(X, RATE, ALL)
    for row, window in zip(values, X, strict=True):
        beats = hamilton(window, sfreq=RATE) / RATE
        np.testing.assert_array_equal(row, features_of(beats, 20.0)[0])
    assert np.isfinite(values).all()


def test_windows_without_a_heartbeat_or_with_gaps_have_no_features():
    noise = np.random.default_rng(0).standard_normal(2500)
    gap = ECG[:2500].copy()
    gap[7] = np.nan
    X = np.stack([ECG[:2500], noise, gap, np.zeros(2500), draw_ecg([1.0, 2.0], 10.0)])
    found = np.isnan(features_of_windows(X, RATE, ["rate", "pnn20"]))
    assert found.tolist() == [[False] * 2, *[[True] * 2] * 3, [False, True]]
