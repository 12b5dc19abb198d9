"""Recordings of every format, read and refused."""

import struct

import numpy as np
import pytest
from scipy.io import savemat

from crossfade.signals import plain_name
from crossfade.signals.recordings import open_recording

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


def test_annotations_have_their_times(edf):
    assert open_recording(edf).annotations == ((2.0, 3.0, "rest"), (8.0, 0.0, "math"))


def test_channels_that_are_not_there_or_not_clear_are_refused(edf, tmp_path, make_eeg, write_edf):
    with pytest.raises(ValueError, match="Oz, T9; there are Fz, Cz, Pz, A2-A1, ECG"):
        open_recording(edf).read(["Oz", "Fz", "T9"])
    path = write_edf(tmp_path / "a.edf", make_eeg(2), ["lead1", "lead2"])
    with pytest.raises(ValueError, match="lead1, lead2"):
        open_recording(path).ecg_channel()
    path = write_edf(tmp_path / "b.edf", make_eeg(3), ["EEG Fz-Ref", "EEG Fz-LE", "EEG Cz"])
    assert open_recording(path).ch_names == ("EEG Fz-Ref", "EEG Fz-LE", "Cz")


def test_other_kinds_of_channels_are_no_eeg(tmp_path, make_eeg, write_edf):
    names = ["C3-A2", "C4-A1", "EOG left", "ECG II", "EMG chin"]
    recording = open_recording(write_edf(tmp_path / "a.edf", make_eeg(), names))
    assert recording.scalp() == ("C3-A2", "C4-A1")
    assert recording.ecg_channel() == "II"
    names = ["A1", "A2", "B1", "B2", "C1"]
    assert open_recording(write_edf(tmp_path / "b.edf", make_eeg(), names)).scalp() == tuple(names)


def test_a_file_that_is_cut_short_is_refused(edf):
    content = edf.read_bytes()
    edf.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ValueError, match="of its 20 records"):
        open_recording(edf)


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
    with pytest.raises(ValueError, match="records"):
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


def matlab_of(**content):
    def write(path, make_eeg):
        savemat(path, {name: make_eeg(n) if n > 1 else n for name, n in content.items()})

    return write


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.edf", b"", "EDF"),
        ("a.edf", b"\xff" * 5000, "EDF"),
        ("a.edf", b"0" * 300, "EDF"),
        ("a.mat", matlab_of(x=2), "sfreq"),
        ("a.mat", matlab_of(x=2, y=3, fs=1), "one matrix"),
        ("a.mat", b"MATLAB 7.3 or what", "MAT"),
        ("a.xdf", b"XDF:nothing of the kind", "XDF"),
        ("a.xdf", b"XDX:nothing", "XDF"),
        ("a.fif", b"nothing", "FIF"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, make_eeg, name, content, word):
    path = tmp_path / name
    if callable(content):
        content(path, make_eeg)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=word):
        open_recording(path)
    with pytest.raises(FileNotFoundError):
        open_recording(tmp_path / "none.edf")


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
    with pytest.raises(ValueError, match="type"):
        open_recording(matlab)


def test_matlab_files_that_are_cut_are_refused(matlab):
    whole = matlab.read_bytes()
    for n_bytes in (130, 140, 200, len(whole) - 1):
        matlab.write_bytes(whole[:n_bytes])
        with pytest.raises(ValueError, match="MAT"):
            open_recording(matlab)
