"""Windows: where they begin, how long they are."""

import numpy as np
import pytest

from crossfade.signals.windows import cut_windows


def test_the_last_window_is_moved_back_to_the_end():
    windows = cut_windows(np.arange(23.0), 2.0, length=2.5)
    np.testing.assert_array_equal(windows.start, [0.0, 2.5, 5.0, 7.5, 9.0])
    np.testing.assert_array_equal(windows.data[-1], np.arange(18.0, 23.0))


def test_a_signal_that_divides_has_no_extra_window():
    assert len(cut_windows(np.arange(20.0), 2.0, length=2.5).start) == 4


def test_overlapping_windows():
    windows = cut_windows(np.arange(10.0), 1.0, length=4.0, overlap=3.0)
    np.testing.assert_array_equal(windows.start, np.arange(7.0))


def test_channels_stay_together(make_eeg):
    data = make_eeg(3)
    windows = cut_windows(data, 100.0, length=2.0)
    assert windows.data.shape == (10, 3, 200)
    np.testing.assert_array_equal(windows.data[4, 1], data[1, 800:1000])


def test_the_full_pair_of_the_paper_has_73_and_25_windows():
    for seconds, count in ((182, 73), (62, 25)):
        assert len(cut_windows(np.zeros(seconds * 500), 500.0, length=2.5).start) == count


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 30.0}, "shorter than a window: 20 s for 30 s"),
        ({"length": 2.0, "overlap": 2.0}, "overlap must be shorter than a window"),
        ({"length": 0.001}, "length must be one sample or more"),
        ({"length": -1.0}, "length must be a number of at least 0"),
        ({"length": 1.0, "sfreq": 0.0}, "sfreq must be a positive number"),
        ({"length": 1.0, "sfreq": None}, "sfreq must be a number"),
    ],
)
def test_refusals(options, message):
    sfreq = options.pop("sfreq", 1.0)
    with pytest.raises(ValueError, match=message):
        cut_windows(np.zeros(20), sfreq, **options)
