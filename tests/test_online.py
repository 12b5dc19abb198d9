"""Features of a running stream, against those of recordings; recipes of the future are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossfade import Recipe, load_mental_math
from crossfade.datasets import read_eegmat
from crossfade.signals import (
    KINDS,
    OnlineFeatures,
    Segment,
    ecg_recipe,
    eeg_recipe,
    extract,
    finish,
)
from crossfade.signals.recordings import Recording, open_recording
from tests.pages import blocks_of

SFREQ, CHANNELS = 200.0, ("Fz", "Cz", "Pz", "O1", "O2")
WHOLE = Segment("p", "a")
#: Windows that define the first mean of tangent vectors.
N_REFERENCE = 8


def eeg(seconds=60.0, seed=0, n_channels=5):
    """Rhythms, noise and drifts that the channels share in part, in microvolts."""
    rng = np.random.default_rng(seed)
    n_samples = round(seconds * SFREQ)
    time = np.arange(n_samples) / SFREQ
    rhythm = np.sin(2 * np.pi * np.array([[6.0], [10.0], [17.0]]) * time)
    drift = np.cumsum(rng.standard_normal((n_channels, n_samples)), axis=1)
    noise = 8 * rng.standard_normal((n_channels, n_samples))
    offsets = 300 * rng.standard_normal((n_channels, 1))
    return offsets + drift + noise + 10 * rng.standard_normal((n_channels, 3)) @ rhythm


def recording_of(data, sfreq=SFREQ):
    names = CHANNELS[: len(data)]
    kinds = ("eeg",) * len(data)
    return Recording("s.edf", sfreq, names, data.shape[1], (), lambda at: data[at], kinds)


def recipe_of(kind="shares", **options):
    """Causal recipe of a stream."""
    changes = {
        name: options.pop(name) for name in ("band", "filter", "reference") if name in options
    }
    recipe = eeg_recipe(recording_of(eeg(1.0)), kind, causal=True, **options)
    if changes.get("reference") == "none":
        changes["averaged"] = ()
    return replace(recipe, **changes)


def offline(recipe, data, segments=(WHOLE,)):
    """Features of a recording, and their starts."""
    rows, _ = extract(recording_of(data), list(segments), recipe)
    values, _ = finish(np.concatenate([one.values for one in rows]), recipe)
    return values, np.concatenate([one.start for one in rows])


def in_chunks(online, data, seed=0, most=400):
    rng = np.random.default_rng(seed)
    found, first = [], 0
    while first < data.shape[1]:
        last = first + int(rng.integers(0, most))
        found += online.push(data[:, first:last])
        first = last
    return found


def features_of(windows):
    return np.stack([one.features for one in windows])


# -- live and offline are equal ---------------------------------------------------------------


@pytest.mark.parametrize("band", [(0.5, 30.0), (0.0, 30.0), None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_has_the_features_of_the_recording(kind, band):
    channels = None if kind == "tangent" else ("Pz", "Fz")
    recipe = recipe_of(kind, channels=channels, overlap=0.7)
    recipe = replace(recipe, band=band, filter=band and "causal")
    if band is None:
        recipe = replace(recipe, reference="none", averaged=())
    data = eeg()
    wanted, start = offline(recipe, data)
    online = OnlineFeatures(recipe)
    rows = data[[CHANNELS.index(name) for name in online.channels]]
    for seed in range(3):
        found = in_chunks(OnlineFeatures(recipe), rows, seed)
        # Without a causal filter, the last window of a recording is moved back to its end.
        assert len(found) in (len(wanted), len(wanted) - 1)
        wanted, start = wanted[: len(found)], start[: len(found)]
        np.testing.assert_allclose(features_of(found), wanted, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose([one.start for one in found], start, atol=1e-9)
        assert all(one.stop == pytest.approx(one.start + 2.5) for one in found)
    assert np.isnan(wanted).all(1).sum() == (N_REFERENCE if kind == "tangent" else 0)


@pytest.mark.parametrize("kind", ["shares", "log-powers"])
def test_the_device_page_has_the_formulas(kind):
    """Somebody who writes the features on a device from the page gets those of the recipe."""
    page = (Path(__file__).parents[1] / "docs" / "live.md").read_text("utf-8")
    [block] = [one for one in blocks_of(page) if "def band_powers" in one.code]
    here = {}
    exec(block.code.partition("\n\n\nsamples =")[0], here)
    bands = {"theta": (4.0, 8.0), "alpha": (8.0, 12.0), "beta": (12.0, 20.0)}
    names = tuple(f"C{place}" for place in range(5))
    recipe = Recipe(
        kind,
        SFREQ,
        names[:3],
        2.5,
        0.0,
        reference="average",
        averaged=names,
        filter="causal",
        band=(0.5, 30.0),
        bands=tuple((name, *ends) for name, ends in bands.items()),
    )
    data = eeg()
    found = features_of(OnlineFeatures(recipe).push(data))
    power = here["band_powers"](data, SFREQ, (0.5, 30.0), bands.values(), 2.5)[:, :3]
    mine = power / power.sum(-1, keepdims=True) if kind == "shares" else np.log(power)
    np.testing.assert_allclose(found, mine.reshape(len(mine), -1), rtol=1e-9)


@pytest.mark.parametrize("reference", ["average", "none"])
def test_missing_samples_and_still_channels_are_the_same_live(reference):
    data = eeg()
    data[1, 3000:3300] = np.nan
    data[:, 5000:5010] = np.nan
    data[3, 7000:8600] = data[3, 7000]
    recipe = recipe_of("powers", reference=reference)
    wanted, _ = offline(recipe, data)
    found = in_chunks(OnlineFeatures(recipe), data)
    np.testing.assert_allclose(features_of(found), wanted, rtol=1e-9)
    words = [one.quality for one in found]
    assert words[6]["Cz"] == "missing"
    assert words[6]["Fz"] == "good"
    assert words[10] == dict.fromkeys(CHANNELS, "missing")
    assert words[15]["O1"] == "flat"
    lost = np.isnan(wanted.reshape(-1, 5, 3)).all(2)
    np.testing.assert_array_equal(
        lost, [[word != "good" for word in one.values()] for one in words]
    )


def test_segments_begin_where_the_stream_is_aligned():
    data = eeg()
    segments = [Segment("p", "a", start=3.3, stop=20.0), Segment("p", "b", start=21.0, stop=40.0)]
    recipe = recipe_of("log-powers")
    wanted, start = offline(recipe, data, segments)
    online = OnlineFeatures(recipe)
    found = []
    for first, last in ((0, 660), (660, 4000), (4000, 4200), (4200, 8000)):
        online.align()
        some = in_chunks(online, data[:, first:last])
        found += some if first in (660, 4200) else []
    np.testing.assert_allclose(features_of(found), wanted, rtol=1e-10)
    np.testing.assert_allclose([one.start for one in found], start, atol=1e-9)


def test_a_real_recording_is_the_same_live(recordings):
    recording = open_recording(recordings / "eegmat" / "Subject00_2.edf")
    for kind, channels in (("log-powers", ("Fz", "Cz", "Pz")), ("tangent", recording.scalp())):
        recipe = eeg_recipe(recording, kind, channels=channels, causal=True)
        rows, _ = extract(recording, [WHOLE], recipe)
        wanted, _ = finish(rows[0].values, recipe)
        online = OnlineFeatures(recipe)
        found = in_chunks(online, recording.read(online.channels), most=60)
        np.testing.assert_allclose(features_of(found), wanted, rtol=1e-10, atol=1e-10)


# -- an ECG -----------------------------------------------------------------------------------

HEART = ("rate", "rmssd", "pnn20", "lf_hf")


def ecg(seconds=100.0, rate=70.0, seed=0):
    """Beats of a breathing heart, with noise, in microvolts; (1, n_samples)."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * SFREQ)) / SFREQ
    at = np.cumsum(60.0 / rate * (1.0 + 0.05 * rng.standard_normal(round(seconds * rate / 60.0))))
    data = 20.0 * rng.standard_normal(time.size)
    for beat in at:
        near = slice(*np.searchsorted(time, [beat - 0.1, beat + 0.1]))
        data[near] += 1000.0 * np.exp(-0.5 * ((time[near] - beat) / 0.012) ** 2)
    return data[None]


def heart_of(data):
    """An ECG's recording, and the recipe of its features."""
    kinds = ("ecg",)
    recording = Recording("h.edf", SFREQ, ("ECG",), data.shape[1], (), lambda at: data[at], kinds)
    return recording, ecg_recipe(recording, HEART, overlap=5.0)


def heart_offline(data):
    recording, recipe = heart_of(data)
    rows, _ = extract(recording, [WHOLE], recipe)
    return rows[0].values, rows[0].start


def test_an_ecg_has_the_features_of_the_recording():
    data = ecg()
    wanted, start = heart_offline(data)
    assert wanted.shape == (9, 4)
    assert np.isfinite(wanted).all()
    recipe = heart_of(data)[1]
    for seed in range(3):
        found = in_chunks(OnlineFeatures(recipe), data, seed)
        np.testing.assert_array_equal(features_of(found), wanted)
        np.testing.assert_allclose([one.start for one in found], start, atol=1e-9)
    # In any unit.
    found = OnlineFeatures(recipe).push(1e-6 * data)
    np.testing.assert_allclose(features_of(found), wanted, rtol=1e-9)


def test_a_window_without_beats_is_left_empty_live_and_offline():
    data = ecg()
    data[:, 4000:7000] = np.random.default_rng(1).standard_normal(3000)
    data[0, 8005] = np.nan
    data[:, 12000:15000] = 3.0
    wanted, _ = heart_offline(data)
    found = in_chunks(OnlineFeatures(heart_of(data)[1]), data)
    np.testing.assert_array_equal(features_of(found), wanted)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(wanted).all(1)), [2, 3, 4, 6])
    assert [one.quality["ECG"] for one in found].count("good") == 6


# -- the past alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_future_changes_nothing(kind):
    data = eeg()
    other = data.copy()
    other[:, 6000:] = 50 * eeg(30.0, seed=7)
    mine, theirs = (offline(recipe_of(kind), one)[0] for one in (data, other))
    np.testing.assert_array_equal(mine[:12], theirs[:12])
    assert not np.array_equal(mine[12:], theirs[12:])


def test_a_stream_starts_anew_after_a_gap():
    data = eeg()
    online = OnlineFeatures(recipe_of("log-powers"))
    online.push(data[:, :1234])
    online.reset(at=100.0)
    again = online.push(data)
    fresh = OnlineFeatures(recipe_of("log-powers")).push(data)
    np.testing.assert_array_equal(features_of(again), features_of(fresh))
    assert again[1].start == pytest.approx(102.5)
    # Tangent vectors keep the mean of the session.
    tangent = OnlineFeatures(recipe_of("tangent"))
    tangent.push(data)
    tangent.reset()
    assert np.isfinite(tangent.push(data)[0].features).all()


def test_tangent_vectors_of_diagonal_covariances_are_logarithms_less_their_mean():
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(size=(20, 3)))
    # As values of windows, (20, 6): upper triangles of diagonal matrices.
    values = np.zeros((20, 6))
    values[:, [0, 3, 5]] = scales
    vectors, counted = finish(values, recipe_of("tangent"))
    np.testing.assert_array_equal(counted, np.arange(20) >= N_REFERENCE)
    assert np.isnan(vectors[:N_REFERENCE]).all()
    logs = np.log(scales)
    np.testing.assert_allclose(vectors[12][[0, 3, 5]], logs[12] - logs[:13].mean(0), atol=1e-12)


# -- refusals ---------------------------------------------------------------------------------

LIVE = Recipe(
    "shares",
    sfreq=250.0,
    channels=("Fz",),
    window=2.0,
    reference="average",
    averaged=("Fz", "Cz"),
    filter="causal",
    band=(1.0, 30.0),
    bands=(("theta", 4.0, 8.0),),
)


@pytest.mark.parametrize(
    "recipe",
    [
        replace(LIVE, filter="zero-phase"),
        Recipe("tangent", 250.0, ("Fz", "Cz"), 2.0, centre="session"),
        Recipe("beats", 250.0, ("ECG",), 60.0, beats=("rate",)),
    ],
)
def test_what_needs_the_future_is_refused(recipe):
    with pytest.raises(ValueError, match="--causal"):
        OnlineFeatures(recipe)


def test_other_channels_and_rates_are_refused():
    with pytest.raises(ValueError, match="average reference"):
        OnlineFeatures(replace(LIVE, averaged=()))
    with pytest.raises(ValueError, match="Fz, Cz"):
        OnlineFeatures(LIVE).push(np.zeros((3, 10)))
    with pytest.raises(ValueError, match="100 samples a second"):
        extract(recording_of(eeg(), 100.0), [WHOLE], recipe_of())


# -- tables -----------------------------------------------------------------------------------


def test_recipes_of_the_recordings(recordings, tmp_path):
    for path in sorted((recordings / "eegmat").glob("Subject0[0-1]_*.edf")):
        (tmp_path / path.name).symlink_to(path)
    assert read_eegmat(tmp_path).recipe == load_mental_math().recipe
    causal = read_eegmat(tmp_path, features="tangent", causal=True)
    assert (causal.recipe.filter, causal.recipe.centre) == ("causal", "past")
    # 182 and 62 s of whole windows, of which the first define the mean.
    assert len(causal[0].y) == 72 + 24 - N_REFERENCE
    assert causal[0].start[0] == 2.5 * N_REFERENCE
