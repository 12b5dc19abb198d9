"""Windows, band powers, references and tangent vectors, against what they must be."""

import numpy as np
import pandas as pd
import pytest

from crossfade.signals import average_reference, band_pass
from crossfade.signals.eeg import BandPower, tangent_vectors, window_covariances
from crossfade.signals.windows import cut_windows

SFREQ = 200.0


def tones(sizes, seconds=2.5):
    """A window with rhythms of 6, 10 and 16 Hz."""
    time = np.arange(round(seconds * SFREQ)) / SFREQ
    return sum(
        a * np.sin(2 * np.pi * f * time) for a, f in zip(sizes, (6.0, 10.0, 16.0), strict=True)
    )


def test_shares_are_the_squares_of_the_amplitudes():
    windows = np.array([[tones((1, 2, 3)), tones((2, 0, 0))], [tones((1, 1, 1)), tones((0, 1, 2))]])
    shares = BandPower(SFREQ).fit_transform(windows)
    expected = [[1 / 14, 4 / 14, 9 / 14, 1, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0, 1 / 5, 4 / 5]]
    np.testing.assert_allclose(shares, expected, atol=1e-12)


def test_power_of_a_tone_is_half_its_square():
    power = BandPower(SFREQ, relative=False).fit_transform(tones((1, 2, 3))[None, None] + 50.0)
    np.testing.assert_allclose(power, [[0.5, 2.0, 4.5]])


def test_power_of_white_noise_is_its_density_times_the_width():
    rng = np.random.default_rng(0)
    windows = 3.0 * rng.standard_normal((2000, 1, 500))
    power = BandPower(SFREQ, {"wide": (20.0, 60.0)}, relative=False).fit_transform(windows)
    # One-sided density 2 * 9 / 200; 101 frequencies 0.4 Hz apart.
    expected = 18.0 / SFREQ * 101 * 0.4
    assert abs(power.mean() - expected) < 4.0 * power.std() / np.sqrt(len(power))


def test_columns_are_named_by_channel_and_band():
    windows = np.random.default_rng(0).standard_normal((4, 2, 500))
    names = np.array(["Fz", "Cz"])
    power = BandPower(SFREQ, {"theta": (4, 8), "beta": (12, 20)}, ch_names=names)
    power.set_output(transform="pandas")
    frame = power.fit_transform(windows)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == ["Fz_theta", "Fz_beta", "Cz_theta", "Cz_beta"]
    unnamed = BandPower(SFREQ).fit(windows).get_feature_names_out()
    assert list(unnamed[:4]) == ["ch1_theta", "ch1_alpha", "ch1_beta", "ch2_theta"]


def test_a_window_without_power_or_with_nan_has_no_features():
    windows = np.random.default_rng(0).standard_normal((3, 1, 500))
    windows[1] = 7.0
    windows[2, 0, 3] = np.nan
    shares = BandPower(SFREQ).fit_transform(windows)
    np.testing.assert_array_equal(np.isnan(shares).all(1), [False, True, True])


def test_log_powers_are_logarithms_of_the_powers():
    windows = np.random.default_rng(0).standard_normal((40, 2, 500))
    powers = BandPower(SFREQ, relative=False).fit_transform(windows)
    logs = BandPower(SFREQ, relative=False, log=True)
    np.testing.assert_allclose(logs.fit_transform(windows), np.log(powers), rtol=1e-12)
    assert list(logs.get_feature_names_out()[:2]) == ["ch1_theta", "ch1_alpha"]


def test_centred_log_ratios_sum_to_zero_and_forget_the_amplitude():
    windows = np.random.default_rng(0).standard_normal((40, 2, 500))
    ratios = BandPower(SFREQ, log=True).fit_transform(windows)
    np.testing.assert_allclose(ratios.reshape(40, 2, 3).sum(-1), 0.0, atol=1e-12)
    # Those of the shares, and of the powers whatever the units of each channel.
    shares = np.log(BandPower(SFREQ).fit_transform(windows)).reshape(40, 2, 3)
    by_hand = shares - shares.mean(-1, keepdims=True)
    np.testing.assert_allclose(ratios, by_hand.reshape(40, 6), atol=1e-12)
    louder = BandPower(SFREQ, log=True).fit_transform(windows * [[[1e-6], [50.0]]])
    np.testing.assert_allclose(louder, ratios, atol=1e-10)


def test_no_power_has_no_logarithm():
    windows = np.random.default_rng(0).standard_normal((5, 2, 500))
    windows[1, 0] = 7.0
    windows[2, 0, 3] = np.nan
    windows[3, 0] = 0.1  # its mean is rounded
    windows[4, 0] = tones((3, 0, 2)) + 1e3  # what is left at 10 Hz is rounding
    powers = BandPower(SFREQ, relative=False, log=True).fit_transform(windows)
    assert not np.isinf(powers).any()
    lacking = np.isnan(powers).reshape(5, 2, 3)
    assert not lacking[:, 1].any()
    assert lacking[:, 0].tolist() == [[False] * 3, *[[True] * 3] * 3, [False, True, False]]
    ratios = np.isnan(BandPower(SFREQ, log=True).fit_transform(windows)).reshape(5, 2, 3)
    assert ratios[:, 0].all(1).tolist() == [False, True, True, True, True]
    assert not ratios[:, 1].any()


@pytest.mark.parametrize(
    ("power", "word"),
    [
        (BandPower(SFREQ, {"alpha": (8, 12)}, log=True), "two bands"),
        (BandPower(0.0), "sfreq"),
        (BandPower(None), "sfreq"),
        (BandPower(SFREQ, {"high": (90.0, 120.0)}), "'high'"),
        (BandPower(SFREQ, {"odd": (8.0, 4.0)}), "'odd'"),
        (BandPower(SFREQ, {"a": 5}), "'a'"),
        (BandPower(SFREQ, {"thin": (8.1, 8.2)}), "'thin'"),
    ],
)
def test_band_power_refuses(power, word):
    with pytest.raises(ValueError, match=word):
        power.fit(np.zeros((3, 2, 500)))


def test_band_power_refuses_other_shapes():
    with pytest.raises(ValueError, match="shape"):
        BandPower(SFREQ).fit(np.zeros((3, 500)))
    power = BandPower(SFREQ).fit(np.zeros((3, 2, 500)))
    with pytest.raises(ValueError, match="2 channels"):
        power.transform(np.zeros((3, 4, 500)))


def test_average_reference_over_channels_that_are_not_flat(make_eeg):
    data = make_eeg(4)
    np.testing.assert_allclose(average_reference(data).mean(0), 0.0, atol=1e-12)
    data[2] = 5.0
    referenced = average_reference(data)
    np.testing.assert_allclose(referenced[[0, 1, 3]].sum(0), 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="two channels"):
        average_reference(data[1:3])


def test_band_pass_keeps_what_is_inside():
    pytest.importorskip("mne")
    time = np.arange(round(20 * SFREQ)) / SFREQ
    inside, outside = np.sin(2 * np.pi * 10.0 * time), np.sin(2 * np.pi * 50.0 * time)
    middle = slice(1000, 3000)
    filtered = band_pass(np.array([inside + outside + 100.0]), SFREQ, 0.5, 30.0)[0]
    np.testing.assert_allclose(filtered[middle], inside[middle], atol=0.01)


def test_tangent_vectors_are_centred_and_forget_the_mixing():
    pytest.importorskip("pyriemann")
    rng = np.random.default_rng(1)
    roots = rng.standard_normal((40, 3, 8))
    matrices = roots @ roots.mT / 8
    mixing = rng.standard_normal((3, 3)) + 2 * np.eye(3)
    vectors = tangent_vectors(matrices)
    assert vectors.shape == (40, 6)
    np.testing.assert_allclose(vectors.mean(0), 0.0, atol=1e-6)
    # Recentring takes out any mixing of the channels, but for a rotation.
    mixed = tangent_vectors(mixing @ matrices @ mixing.T)
    np.testing.assert_allclose(mixed @ mixed.T, vectors @ vectors.T, atol=1e-5)


def test_tangent_vectors_of_two_covariances_by_hand():
    pytest.importorskip("pyriemann")
    # Diagonal matrices: the mean is the geometric one, logarithms go by entry.
    matrices = [np.diag([1.0, 4.0]), np.diag([4.0, 1.0])]
    expected = np.log(2.0) * np.array([[-1, 0, 1], [1, 0, -1]])
    np.testing.assert_allclose(tangent_vectors(matrices), expected, atol=1e-7)


def test_tangent_vectors_pass_over_windows_that_cannot_be_said():
    pytest.importorskip("pyriemann")
    windows = np.random.default_rng(0).standard_normal((6, 3, 300))
    windows[2, 1, 5] = np.nan
    covariances = window_covariances(windows)
    np.testing.assert_allclose(covariances[0], np.cov(windows[0], bias=True), atol=0.1)
    vectors = tangent_vectors(covariances)
    np.testing.assert_array_equal(np.isnan(vectors).all(1), np.arange(6) == 2)


# -- windows --------------------------------------------------------------------------------------


def test_the_last_window_is_moved_back_to_the_end():
    windows = cut_windows(np.arange(23.0), 2.0, length=2.5)
    np.testing.assert_array_equal(windows.start, [0.0, 2.5, 5.0, 7.5, 9.0])
    np.testing.assert_array_equal(windows.data[-1], np.arange(18.0, 23.0))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"length": 30.0}, "shorter"),
        ({"length": 2.0, "overlap": 2.0}, "overlap"),
        ({"length": 0.001}, "overlap"),
        ({"length": -1.0}, "length"),
        ({"length": 1.0, "sfreq": 0.0}, "sfreq"),
    ],
)
def test_windows_refuse(options, word):
    sfreq = options.pop("sfreq", 1.0)
    with pytest.raises(ValueError, match=word):
        cut_windows(np.zeros(20), sfreq, **options)
