"""Features of a running stream, against those of recordings; what needs the future is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import sosfreqz

from crossfade import LiveCalibration, Recipe, Task, TaskPrior, load_mental_math
from crossfade.datasets import read_eegmat
from crossfade.signals._causal import N_REFERENCE, CausalFilter, RunningTangent, StillChannels
from crossfade.signals._extract import ECGFeatures, EEGFeatures
from crossfade.signals._labels import Segment
from crossfade.signals._online import OnlineFeatures
from crossfade.signals.eeg import BandPower, tangent_vectors
from crossfade.signals.recordings import Recording, open_recording
from tests.pages import blocks_of

SFREQ, CHANNELS = 200.0, ("Fz", "Cz", "Pz", "O1", "O2")
WHOLE = Segment("p", "a")
KINDS = ["shares", "powers", "log-powers", "clr", "tangent"]


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


def offline(extract, data, segments=(WHOLE,)):
    """Features of a recording, and their starts."""
    recording = recording_of(data)
    rows, _ = extract.rows(recording, list(segments), extract.channels_of(recording), SFREQ)
    values = extract.finish(np.concatenate([one.values for one in rows]))
    return values, np.concatenate([one.start for one in rows])


def stream(extract, **options):
    recording = recording_of(eeg(1.0))
    channels = extract.channels_of(recording)
    return OnlineFeatures(
        extract.recipe(channels, extract.needed(recording, channels), SFREQ), **options
    )


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


@pytest.mark.parametrize("passband", [(0.5, 30.0), (0.0, 30.0), None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_has_the_features_of_the_recording(kind, passband):
    channels = None if kind == "tangent" else ("Pz", "Fz")
    extract = EEGFeatures(kind, channels, overlap=0.7, passband=passband, causal=True)
    data = eeg()[[2, 0, 1, 3, 4]] if kind != "tangent" else eeg()
    # A stream has the channels in the order of its recipe.
    there = eeg()
    wanted, start = offline(extract, there)
    for seed in range(3):
        online = stream(extract)
        found = in_chunks(online, data, seed)
        np.testing.assert_allclose(features_of(found), wanted, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose([one.start for one in found], start, atol=1e-9)
        assert all(one.stop == pytest.approx(one.start + 2.5) for one in found)
    assert online.recipe.feature_names == tuple(extract.names(online.recipe.channels))
    assert np.isnan(wanted).all(1).sum() == (N_REFERENCE if kind == "tangent" else 0)


@pytest.mark.parametrize("kind", ["shares", "log-powers"])
def test_the_device_page_has_the_formulas(kind):
    """Somebody who writes the features on a device from the page gets those of the recipe."""
    page = (Path(__file__).parents[1] / "docs" / "live.md").read_text("utf-8")
    [block] = [one for one in blocks_of(page)[0] if "def band_powers" in one.code]
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


def test_without_a_filter_the_usual_table_is_the_stream_s():
    extract = EEGFeatures("log-powers", passband=None)
    wanted, _ = offline(extract, eeg(60.0))
    found = in_chunks(stream(extract), eeg(60.0))
    np.testing.assert_allclose(features_of(found), wanted, rtol=1e-10)


@pytest.mark.parametrize("reference", ["average", "none"])
def test_missing_samples_and_still_channels_are_the_same_live(reference):
    data = eeg()
    data[1, 3000:3300] = np.nan
    data[:, 5000:5010] = np.nan
    data[3, 7000:8600] = data[3, 7000]
    extract = EEGFeatures("powers", causal=True, reference=reference)
    wanted, _ = offline(extract, data)
    found = in_chunks(stream(extract), data)
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
    extract = EEGFeatures("log-powers", causal=True)
    wanted, start = offline(extract, data, segments)
    online = stream(extract)
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
        extract = EEGFeatures(kind, channels, causal=True)
        rows, _ = extract.rows(recording, [WHOLE], channels, recording.sfreq)
        wanted = extract.finish(rows[0].values)
        recipe = extract.recipe(channels, extract.needed(recording, channels), recording.sfreq)
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
    """An ECG's recording, its causal features and their recipe."""
    kinds = ("ecg",)
    recording = Recording("h.edf", SFREQ, ("ECG",), data.shape[1], (), lambda at: data[at], kinds)
    extract = ECGFeatures(HEART, overlap=5.0, causal=True)
    return recording, extract, extract.recipe(("ECG",), ("ECG",), SFREQ)


def heart_offline(data):
    recording, extract, _ = heart_of(data)
    rows, notes = extract.rows(recording, [WHOLE], ("ECG",), SFREQ)
    return rows[0].values, rows[0].start, notes


def test_an_ecg_has_the_features_of_the_recording():
    data = ecg()
    wanted, start, notes = heart_offline(data)
    assert wanted.shape == (9, 4)
    assert np.isfinite(wanted).all()
    assert not notes
    recipe = heart_of(data)[2]
    assert recipe.filter == "causal"
    for seed in range(3):
        found = in_chunks(OnlineFeatures(recipe), data, seed)
        np.testing.assert_array_equal(features_of(found), wanted)
        np.testing.assert_allclose([one.start for one in found], start, atol=1e-9)
    # In any unit.
    found = OnlineFeatures(recipe).push(1e-6 * data)
    np.testing.assert_allclose(features_of(found), wanted, rtol=1e-9)


def test_nothing_outside_a_window_of_an_ecg_changes_it():
    data = ecg()
    other = 5.0 * ecg(seed=7, rate=110.0)
    other[:, 6000:9000] = data[:, 6000:9000]
    mine, theirs = (heart_offline(one)[0] for one in (data, other))
    np.testing.assert_array_equal(mine[3], theirs[3])
    assert (mine != theirs).any(1).sum() == 8


def test_a_window_without_beats_is_left_empty_live_and_offline():
    data = ecg()
    data[:, 4000:7000] = np.random.default_rng(1).standard_normal(3000)
    data[0, 8005] = np.nan
    data[:, 12000:15000] = 3.0
    wanted, _, notes = heart_offline(data)
    found = in_chunks(OnlineFeatures(heart_of(data)[2]), data)
    np.testing.assert_array_equal(features_of(found), wanted)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(wanted).all(1)), [2, 3, 4, 6])
    assert [one.quality["ECG"] for one in found].count("good") == 6
    assert "ECG holds too few beats in 1 of 9 windows, or peaks no larger than" in notes[-1]


def test_a_person_is_calibrated_from_their_ecg():
    """Raw windows, in a session whose crowd's hearts race in one of the classes."""
    _, _, recipe = heart_of(ecg())
    people = []
    for person in range(8):
        both = [heart_offline(ecg(100.0, rate, seed=2 * person))[0] for rate in (60.0, 85.0)]
        X, y = np.concatenate(both), np.repeat([0, 1], [len(one) for one in both])
        people.append(Task(X, y, f"p{person}", feature_names=HEART, recipe=recipe))
    live = LiveCalibration(TaskPrior.from_tasks(people, replay=False))
    for seed, label, rate in ((100, 0, 62.0), (101, 1, 88.0), (102, 0, 60.0), (103, 1, 84.0)):
        live.add(ecg(15.0, rate, seed), label)
    assert live.state().counts == {"0": 2, "1": 2}
    assert live.predict(ecg(15.0, 61.0, 104)).label == "0"
    assert live.predict(ecg(15.0, 86.0, 105)).label == "1"


def test_a_window_must_be_long_enough_for_beats():
    with pytest.raises(ValueError, match=r"must last a second or longer; got 0\.5 s"):
        ECGFeatures(length=0.5, causal=True)


# -- the past alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_future_changes_nothing(kind):
    data = eeg()
    other = data.copy()
    other[:, 6000:] = 50 * eeg(30.0, seed=7)
    extract = EEGFeatures(kind, causal=True)
    mine, theirs = (offline(extract, one)[0] for one in (data, other))
    np.testing.assert_array_equal(mine[:12], theirs[:12])
    assert not np.array_equal(mine[12:], theirs[12:])


def test_a_stream_starts_anew_after_a_gap():
    data = eeg()
    extract = EEGFeatures("log-powers", causal=True)
    online = stream(extract)
    online.push(data[:, :1234])
    online.reset(at=100.0)
    again = online.push(data)
    fresh = stream(extract).push(data)
    np.testing.assert_array_equal(features_of(again), features_of(fresh))
    assert again[1].start == pytest.approx(102.5)
    # Tangent vectors keep the mean of the session.
    tangent = stream(EEGFeatures("tangent", causal=True))
    tangent.push(data)
    tangent.reset()
    assert np.isfinite(tangent.push(data)[0].features).all()


def test_filtered_samples_are_taken_as_they_are():
    extract = EEGFeatures("powers", ("Fz", "Pz"), causal=True)
    online = stream(extract, filtered=True)
    assert online.channels == ("Fz", "Pz")
    data = eeg(5.0, n_channels=2)
    expected = BandPower(SFREQ, relative=False).fit(data[None]).transform(data[None, :, :500])
    np.testing.assert_allclose(online.push(data)[0].features, expected[0], rtol=1e-12)


def test_a_causal_filter_passes_its_band_and_nothing_of_a_constant():
    passes = CausalFilter(1, SFREQ, 0.5, 30.0)
    np.testing.assert_allclose(passes(np.full((1, 2000), 250.0)), 0.0, atol=1e-9)
    time = np.arange(4000) / SFREQ
    for frequency, least, most in ((10.0, 0.98, 1.01), (0.05, 0.0, 0.02), (90.0, 0.0, 0.05)):
        wave = np.sin(2 * np.pi * frequency * time)[None]
        largest = np.abs(CausalFilter(1, SFREQ, 0.5, 30.0)(wave)[0, 2000:]).max()
        assert least <= largest <= most
    _, gain = sosfreqz(passes._sections, [0.5, 30.0], fs=SFREQ)
    np.testing.assert_allclose(np.abs(gain), np.sqrt(0.5), rtol=1e-6)


@pytest.mark.parametrize("band", [(30.0, 0.5), (0.5, 100.0)])
def test_a_filter_that_cannot_be_is_refused(band):
    with pytest.raises(ValueError, match="must run upwards and end below 100 Hz"):
        CausalFilter(1, SFREQ, *band)


def test_a_channel_is_still_after_a_second_of_one_value():
    still = StillChannels(2, 10.0)
    data = np.zeros((2, 30))
    data[0, 4:] = 1.0
    data[1] = np.arange(30)
    both = np.concatenate([still(data[:, :7]), still(data[:, 7:])], axis=1)
    np.testing.assert_array_equal(np.flatnonzero(both[0]), np.arange(13, 30))
    assert not both[1].any()


def test_tangent_vectors_at_the_mean_so_far():
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(size=(20, 3)))
    matrices = scales[:, :, None] * np.eye(3)
    tangent = RunningTangent()
    vectors = np.stack([tangent(one) for one in matrices])
    assert np.isnan(vectors[:N_REFERENCE]).all()
    # Of diagonal matrices both means are geometric ones, and so at the last window the same.
    np.testing.assert_allclose(vectors[-1], tangent_vectors(matrices)[-1], atol=1e-6)
    logs = np.log(scales)
    expected = logs[12] - logs[:13].mean(0)
    np.testing.assert_allclose(vectors[12][[0, 3, 5]], expected, atol=1e-12)
    assert np.isnan(tangent(np.full((3, 3), np.nan))).all()
    assert tangent.n_windows == 20


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
    ("recipe", "error"),
    [
        (
            replace(LIVE, filter="zero-phase"),
            r"zero phase, which needs the future.*features eeg \.\.\. --causal`, and build",
        ),
        (
            Recipe("tangent", 250.0, ("Fz", "Cz"), 2.0, centre="session"),
            "mean of all windows of the session, later ones included.*--causal",
        ),
        (
            Recipe("beats", 250.0, ("ECG",), 60.0, beats=("rate",)),
            r"found in whole recordings, later samples included.*features ecg \.\.\. --causal`",
        ),
        (replace(LIVE, averaged=()), "differ in the channels of their average reference"),
    ],
)
def test_what_needs_the_future_is_refused(recipe, error):
    with pytest.raises(ValueError, match=error):
        OnlineFeatures(recipe)


def test_samples_of_other_channels_are_refused():
    with pytest.raises(ValueError, match=r"\(2, n_samples\), one row for each of Fz, Cz; got \(3"):
        OnlineFeatures(LIVE).push(np.zeros((3, 10)))


def test_causal_features_are_not_resampled():
    extract = EEGFeatures("powers", causal=True)
    with pytest.raises(ValueError, match="others have 100, and causal features are not resampled"):
        extract.rows(recording_of(eeg()), [WHOLE], CHANNELS, 100.0)


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
