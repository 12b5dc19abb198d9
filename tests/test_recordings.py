"""Recordings of every format, read and refused."""

import struct

import numpy as np
import pytest
from scipy.io import savemat

from crossfade.signals.recordings import open_recording, plain_name

NAMES = ["EEG Fz", "EEG Cz", "EEG Pz", "EEG A2-A1", "ECG ECG"]


@pytest.fixture
def edf(tmp_path, make_eeg, write_edf):
    notes = [(2.0, 3.0, "rest"), (8.0, None, "math")]
    return write_edf(tmp_path / "p1.edf", make_eeg(), NAMES, annotations=notes)


def write_xdf(path, data, sfreq, names, markers):
    """An XDF file with one stream of EEG and one of markers, by the published layout."""

    def chunk(tag, content):
        body = struct.pack("<H", tag) + content
        return b"\x04" + struct.pack("<I", len(body)) + body

    def header(number, kind, n_channels, rate, form, desc=""):
        text = (
            f"<info><name>{kind}</name><type>{kind}</type><channel_count>{n_channels}"
            f"</channel_count><nominal_srate>{rate}</nominal_srate>"
            f"<channel_format>{form}</channel_format><desc>{desc}</desc></info>"
        )
        return chunk(2, struct.pack("<I", number) + text.encode())

    labels = "".join(f"<channel><label>{name}</label></channel>" for name in names)
    stamps = 5.0 + np.arange(data.shape[1]) / sfreq
    samples = b"".join(
        b"\x08" + struct.pack("<d", stamp) + column.astype("<f4").tobytes()
        for stamp, column in zip(stamps, data.T, strict=True)
    )
    words = b"".join(
        b"\x08" + struct.pack("<d", 5.0 + time) + b"\x01" + bytes([len(text)]) + text.encode()
        for time, text in markers
    )
    count = b"\x04" + struct.pack("<I", data.shape[1])
    path.write_bytes(
        b"XDF:"
        + chunk(1, b"<info><version>1.0</version></info>")
        + header(1, "EEG", len(data), sfreq, "float32", f"<channels>{labels}</channels>")
        + header(2, "Markers", 1, 0, "string")
        + chunk(3, struct.pack("<I", 1) + count + samples)
        + chunk(3, struct.pack("<I", 2) + b"\x04" + struct.pack("<I", len(markers)) + words)
    )


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("EEG Fz", "Fz"),
        ("EEG Fz-REF", "Fz"),
        ("Fc5.", "Fc5"),
        ("ECG", "ECG"),
        ("ECG ECG", "ECG"),
        ("EEG A2-A1", "A2-A1"),
        (" Pz ", "Pz"),
        ("EEG 001", "001"),
    ],
)
def test_plain_names(name, plain):
    assert plain_name(name) == plain


def test_edf_is_read_in_microvolts_by_channel(edf, make_eeg):
    recording = open_recording(edf)
    assert recording.sfreq == 100.0
    assert recording.ch_names == ("Fz", "Cz", "Pz", "A2-A1", "ECG")
    # 16 bits over a range of about 100 microvolts.
    np.testing.assert_allclose(recording.read(["pz", "EEG Fz"]), make_eeg()[[2, 0]], atol=0.01)


def test_scalp_and_ecg_channel_are_found_by_name(edf):
    recording = open_recording(edf)
    assert recording.scalp() == ("Fz", "Cz", "Pz")
    assert recording.ecg_channel() == "ECG"


def test_two_channels_that_might_be_the_ecg_are_asked_about(tmp_path, make_eeg, write_edf):
    path = write_edf(tmp_path / "a.edf", make_eeg(2), ["lead1", "lead2"])
    with pytest.raises(ValueError, match=r"Which channel is the ECG\? There are lead1, lead2"):
        open_recording(path).ecg_channel()


def test_annotations_have_their_times(edf):
    assert open_recording(edf).annotations == ((2.0, 3.0, "rest"), (8.0, 0.0, "math"))


def test_a_missing_channel_lists_those_present(edf):
    with pytest.raises(ValueError, match=r"no channel Oz, T9; there are Fz, Cz, Pz, A2-A1, ECG"):
        open_recording(edf).read(["Oz", "Fz", "T9"])


def test_a_file_that_is_cut_short_is_refused(edf):
    content = edf.read_bytes()
    edf.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ValueError, match=r"cut short: its header says 20 s, it holds 1\d s"):
        open_recording(edf)


@pytest.mark.parametrize("content", [b"", b"0       ", b"\xff" * 5000, b"0" * 300])
def test_a_damaged_header_is_refused(tmp_path, content):
    path = tmp_path / "a.edf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"no EDF or BDF file, or its header is damaged|cut short"):
        open_recording(path)


def test_bdf_has_three_bytes_for_a_sample(tmp_path, make_eeg):
    edfio = pytest.importorskip("edfio")
    if not hasattr(edfio, "Bdf"):
        pytest.skip("This edfio writes no BDF.")
    data = make_eeg(3)
    path = tmp_path / "a.bdf"
    edfio.Bdf(
        [
            edfio.BdfSignal(row, 100.0, label=name, physical_dimension="uV")
            for row, name in zip(data, ("Fz", "Cz", "Pz"), strict=True)
        ]
    ).write(path)
    np.testing.assert_allclose(open_recording(path).read(["Cz"]), data[[1]], atol=1e-4)
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(ValueError, match="cut short"):
        open_recording(path)


def test_matlab_finds_samples_rate_and_names(tmp_path, make_eeg):
    data = make_eeg(3)
    names = np.array(["Fz", "Cz", "ECG"], dtype=object)
    for place, samples in enumerate((data, data.T)):
        path = tmp_path / f"{place}.mat"
        savemat(path, {"EEGData": samples, "fs": 250.0, "ch_names": names, "difficulty": 2})
        recording = open_recording(path)
        assert (recording.sfreq, recording.ch_names) == (250.0, ("Fz", "Cz", "ECG"))
        np.testing.assert_array_equal(recording.read(["ECG"]), data[[2]])


def test_matlab_without_a_rate_asks_for_it(tmp_path, make_eeg):
    path = tmp_path / "a.mat"
    savemat(path, {"x": make_eeg(2)})
    with pytest.raises(ValueError, match=r"does not hold its sampling rate .*State it"):
        open_recording(path)
    assert open_recording(path, sfreq=128.0).sfreq == 128.0
    assert open_recording(path, sfreq=128.0).ch_names == ("ch1", "ch2")


def test_matlab_with_two_matrices_or_none_is_refused(tmp_path, make_eeg):
    path = tmp_path / "a.mat"
    savemat(path, {"x": make_eeg(2), "y": make_eeg(3), "note": 1})
    with pytest.raises(ValueError, match=r"one matrix of samples; this one has \['x', 'y'\] among"):
        open_recording(path)
    path.write_bytes(b"MATLAB 7.3 or what")
    with pytest.raises(ValueError, match="no MATLAB file, or it is damaged"):
        open_recording(path)


def test_xdf_finds_the_stream_and_the_markers(tmp_path, make_eeg):
    data = make_eeg(3)
    path = tmp_path / "a.xdf"
    write_xdf(path, data, 100.0, ["Fz", "Cz", "Pz"], [(1.0, "rest"), (9.5, "math")])
    recording = open_recording(path)
    assert recording.sfreq == 100.0
    assert recording.ch_names == ("Fz", "Cz", "Pz")
    np.testing.assert_allclose(recording.read(["Cz"]), data[[1]], rtol=1e-6)
    assert [(round(a.start, 6), a.text) for a in recording.annotations] == [
        (1.0, "rest"),
        (9.5, "math"),
    ]


def test_a_damaged_xdf_is_refused(tmp_path):
    path = tmp_path / "a.xdf"
    path.write_bytes(b"XDF:nothing of the kind")
    with pytest.raises(ValueError, match=r"one stream of EEG or ECG; found none|damaged"):
        open_recording(path)
    path.write_bytes(b"XDX:nothing")
    with pytest.raises(ValueError, match="no XDF file, or it is damaged"):
        open_recording(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_recording(tmp_path / "a.edf")


# -- MATLAB files that SciPy would crash on ----------------------------------------------------


@pytest.fixture
def matlab(tmp_path):
    path = tmp_path / "r.mat"
    content = {"data": np.zeros((3, 400)), "fs": 100.0, "names": np.array(["a", "bcdefgh"], object)}
    savemat(path, content, do_compression=False)
    return path


@pytest.mark.parametrize("kind", [0, 8, 10, 19, 200, 2**16 - 1, 2**31])
def test_a_type_that_does_not_exist_is_refused_before_it_is_looked_up(matlab, kind):
    content = bytearray(matlab.read_bytes())
    # Behind the tag of the first matrix come its flags, its size and its name; then its numbers.
    place = 128 + 8 + 16 + 16 + 8
    assert int.from_bytes(content[place : place + 4], "little") == 9
    content[place : place + 4] = kind.to_bytes(4, "little")
    matlab.write_bytes(content)
    with pytest.raises(ValueError, match=r"This is no MATLAB file, or it is damaged: a.* of type"):
        open_recording(matlab)


def test_matlab_files_that_are_cut_or_nested_are_refused(matlab, tmp_path):
    whole = matlab.read_bytes()
    for n_bytes in (130, 140, 200, len(whole) - 1):
        matlab.write_bytes(whole[:n_bytes])
        with pytest.raises(ValueError, match="or it is damaged"):
            open_recording(matlab)
    deep = np.zeros(1)
    for _ in range(40):
        cell = np.empty(1, object)
        cell[0] = deep
        deep = cell
    savemat(matlab, {"data": np.zeros((3, 400)), "deep": deep})
    with pytest.raises(ValueError, match="it is nested more than 32 deep"):
        open_recording(matlab)
