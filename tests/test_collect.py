"""Many files to one table; no bad file loses the others."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from crossfade import TaskSet
from crossfade.signals._collect import collect, find_recordings
from crossfade.signals._extract import KINDS, ECGFeatures, EEGFeatures
from crossfade.signals._labels import AnnotationLabels, FilenameLabels
from crossfade.signals.eeg import BandPower, average_reference, band_pass
from crossfade.signals.recordings import open_recording
from crossfade.signals.windows import cut_windows

pytest.importorskip("mne")
# The two states of these simulated people differ more than any real ones do.
pytestmark = pytest.mark.filterwarnings("ignore:.*alone separate:crossfade.exceptions.TableWarning")

NAMES = ["EEG Fz", "EEG Cz", "EEG Pz", "EEG Oz", "ECG ECG"]
LABELS = FilenameLabels(r"(?P<task>p\d+)_(?P<label>\d)")
SHARES = EEGFeatures("shares", ("Fz", "Cz"))


@pytest.fixture
def folder(tmp_path, make_eeg, write_edf):
    for person in range(3):
        for label in range(2):
            data = make_eeg(alpha=0.5 + 2.0 * label, seed=10 * person + label, seconds=21.0)
            write_edf(tmp_path / f"p{person}_{label}.edf", data, NAMES)
    return tmp_path


def run(folder, extract=SHARES, label=LABELS, **options):
    return collect(find_recordings([folder]), extract, label, **options)


def test_features_are_those_of_the_steps_by_hand(folder):
    found = run(folder)
    assert (found.failures, found.notes) == ({}, [])
    assert list(found.frame) == [
        *("task", "label", "start", "Fz_theta", "Fz_alpha", "Fz_beta"),
        *("Cz_theta", "Cz_alpha", "Cz_beta"),
    ]
    data = open_recording(folder / "p1_1.edf").read(["Fz", "Cz", "Pz", "Oz"])
    data = band_pass(average_reference(data), 100.0, 0.5, 30.0)[:2]
    windows = cut_windows(data, 100.0, length=2.5)
    rows = found.frame[(found.frame["task"] == "p1") & (found.frame["label"] == 1)]
    np.testing.assert_allclose(
        rows.iloc[:, 3:], BandPower(100.0).fit_transform(windows.data), atol=1e-12
    )
    np.testing.assert_array_equal(rows["start"], windows.start)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_a_table_that_reads(folder, kind):
    pytest.importorskip("pyriemann")
    found = run(folder, EEGFeatures(kind))
    tasks = TaskSet.from_frame(found.frame, missing="error")
    assert len(tasks) == 3
    assert tasks.feature_names[:2] == (
        ("Fz_Fz", "Fz_Cz") if kind == "tangent" else ("Fz_theta", "Fz_alpha")
    )
    assert len(tasks.feature_names) == (10 if kind == "tangent" else 12)


def test_logarithms_are_those_of_powers_and_shares(folder):
    values = {kind: run(folder, EEGFeatures(kind)).frame.iloc[:, 3:] for kind in KINDS[:4]}
    np.testing.assert_allclose(values["log-powers"], np.log(values["powers"]), rtol=1e-12)
    shares = np.log(values["shares"].to_numpy()).reshape(-1, 4, 3)
    ratios = (shares - shares.mean(-1, keepdims=True)).reshape(-1, 12)
    np.testing.assert_allclose(values["clr"], ratios, atol=1e-10)


@pytest.mark.parametrize(("kind", "keeps"), [("log-powers", "powers"), ("clr", "shares")])
def test_windows_without_power_in_a_band_are_reported(tmp_path, make_eeg, kind, keeps):
    data = make_eeg(3, seconds=20.0)
    time = np.arange(data.shape[1]) / 100.0
    data[1, :500] = np.sin(2 * np.pi * 6.0 * time[:500])
    data[2, 750:1000] = 3.0
    content = {"data": data, "sfreq": 100.0, "ch_names": np.array(["Fz", "Cz", "Pz"], dtype=object)}
    savemat(tmp_path / "p0_0.mat", content)
    raw = {"passband": None, "reference": "none"}
    found = run(tmp_path, EEGFeatures(kind, **raw))
    said = [note for _, note in found.notes]
    assert said[0] == (
        f"Cz has no power in some band, and so no logarithm, in 2 windows; the features {keeps} "
        "need none"
    )
    # Pz stands still in one window, which lacks its features whatever they are.
    assert not any("Pz" in note or "Fz" in note for note in said)
    lacking = found.frame.isna().any(axis=1).to_numpy()
    np.testing.assert_array_equal(np.flatnonzero(lacking), [0, 1, 3])
    kept = run(tmp_path, EEGFeatures(keeps, **raw)).frame.isna().any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(kept), [3])


def test_one_band_has_no_log_ratios():
    with pytest.raises(ValueError, match=r"one band only\. Add a band, or choose .* log-powers"):
        EEGFeatures("clr", bands={"alpha": (8.0, 12.0)})
    assert EEGFeatures("log-powers", bands={"alpha": (8.0, 12.0)}).names(("Fz",)) == ["Fz_alpha"]


def test_the_number_of_jobs_changes_nothing(folder):
    calls = []
    one = run(folder)
    two = run(folder, n_jobs=2, on_progress=lambda done, total: calls.append((done, total)))
    assert one.frame.equals(two.frame)
    assert calls == [(place, 6) for place in range(1, 7)]


def test_bad_files_are_named_and_the_others_are_there(folder, make_eeg, write_edf):
    full = run(folder).frame
    cut = folder / "p0_0.edf"
    cut.write_bytes(cut.read_bytes()[:-4000])
    (folder / "p1_0.edf").write_bytes(b"no recording at all")
    write_edf(folder / "p3_0.edf", make_eeg(3), ["EEG Fz", "EEG Pz", "EEG Oz"])
    write_edf(folder / "p4_0.edf", make_eeg(seconds=2.0), NAMES)
    write_edf(folder / "other.edf", make_eeg(), NAMES)
    found = run(folder)
    reasons = {
        "p0_0.edf": "cut short",
        "p1_0.edf": "no EDF or BDF file",
        "p3_0.edf": "There is no channel Cz; there are Fz, Pz, Oz",
        "p4_0.edf": "No window fits: 1 segment of '0' left out, since shorter than a window",
        "other.edf": "does not match",
    }
    assert set(found.failures) == {str(folder / name) for name in reasons}
    for name, reason in reasons.items():
        assert reason in found.failures[str(folder / name)]
    assert set(found.notes) == {
        ("Task p0", "has windows of one class only, '1'"),
        ("Task p1", "has windows of one class only, '1'"),
    }
    kept = full[~((full["label"] == 0) & full["task"].isin(["p0", "p1"]))]
    assert found.frame.equals(kept.reset_index(drop=True))


def test_two_files_for_one_person_and_class_are_both_left_out(folder):
    (folder / "again").mkdir()
    (folder / "again" / "p1_0.edf").write_bytes((folder / "p1_0.edf").read_bytes())
    found = run(folder)
    assert set(found.failures) == {str(folder / "p1_0.edf"), str(folder / "again" / "p1_0.edf")}
    reason = found.failures[str(folder / "p1_0.edf")]
    assert f"Task 'p1', label '0' is in {folder / 'again' / 'p1_0.edf'} too" in reason
    assert len(found.frame) == 5 * 9
    assert len(run(folder, merge=True).frame) == 7 * 9


def test_different_rates_are_brought_to_the_lowest_and_said(folder, make_eeg, write_edf):
    time = np.arange(21 * 250) / 250.0
    tone = 10.0 * np.sin(2 * np.pi * 10.0 * time)
    write_edf(folder / "p7_0.edf", [tone, -tone, tone, -tone, tone], NAMES, sfreq=250.0)
    found = run(folder)
    assert found.notes[0] == (str(folder / "p7_0.edf"), "resampled from 250 to 100 Hz")
    rows = found.frame[found.frame["task"] == "p7"]
    assert len(rows) == 9
    assert rows["Fz_alpha"].min() > 0.99


def test_flat_and_clipped_channels_are_reported(folder, make_eeg, write_edf):
    data = make_eeg(seconds=21.0)
    data[1] = 0.0
    data[0] = np.clip(data[0], -8.0, 8.0)
    write_edf(folder / "p0_0.edf", data, NAMES)
    found = run(folder)
    (first, second) = [note for where, note in found.notes if where.endswith("p0_0.edf")]
    assert first == "Cz is flat"
    assert second.startswith("Fz is clipped (")
    rows = found.frame[(found.frame["task"] == "p0") & (found.frame["label"] == 0)]
    assert rows.filter(like="Cz_").isna().all(axis=None)
    assert rows.filter(like="Fz_").notna().all(axis=None)
    with pytest.warns(UserWarning, match=r"9 of 54 rows were dropped, .* Cz_theta \(9\)"):
        TaskSet.from_frame(found.frame)


def test_a_flat_channel_is_no_part_of_the_reference(folder, make_eeg, write_edf):
    data = make_eeg(seconds=21.0)
    data[3] = 40.0
    write_edf(folder / "p0_0.edf", data, NAMES)
    rows = run(folder).frame.iloc[:9, 3:]
    data = band_pass(average_reference(data[:3]), 100.0, 0.5, 30.0)[:2]
    by_hand = BandPower(100.0).fit_transform(cut_windows(data, 100.0, length=2.5).data)
    np.testing.assert_allclose(rows, by_hand, atol=1e-3)


def test_windows_with_nan_have_no_features(tmp_path, make_eeg):
    data = make_eeg(3, seconds=20.0)
    data[1, 300:310] = np.nan
    names = np.array(["Fz", "Cz", "Pz"], dtype=object)
    savemat(tmp_path / "p1_0.mat", {"x": data, "fs": 100.0, "ch_names": names})
    found = run(tmp_path)
    assert found.notes[0] == (str(tmp_path / "p1_0.mat"), "Cz lacks 10 samples (NaN)")
    absent = found.frame.filter(like="Cz_").isna().all(axis=1)
    np.testing.assert_array_equal(absent, np.arange(8) == 1)
    assert found.frame.filter(like="Fz_").notna().all(axis=None)


def test_annotations_label_parts_of_one_file(tmp_path, make_eeg, write_edf):
    notes = [(1.0, 6.0, "rest"), (8.0, None, "math"), (19.0, None, "rest")]
    write_edf(tmp_path / "s1.edf", make_eeg(seconds=20.0), NAMES, annotations=notes)
    found = run(tmp_path, label=AnnotationLabels())
    assert found.frame["label"].tolist() == ["rest"] * 3 + ["math"] * 5
    assert found.frame["start"].tolist() == [1.0, 3.5, 4.5, 8.0, 10.5, 13.0, 15.5, 16.5]
    assert found.notes == [
        (
            str(tmp_path / "s1.edf"),
            "1 segment of 'rest' left out, since shorter than a window of 2.5 s",
        )
    ]


def test_files_of_other_labels_are_left_out_and_counted(folder):
    labels = FilenameLabels(r"(?P<task>p\d+)_(?P<label>\d)", {"1": "math"})
    found = run(folder, label=labels)
    why = "left out, since '0' is none of the labels that count"
    assert [what for _, what in found.notes].count(why) == 3
    assert set(found.frame["label"]) == {"math"}


def test_channels_are_those_that_most_files_have(folder, make_eeg, write_edf):
    write_edf(folder / "p0_0.edf", make_eeg(3, 21.0), ["EEG Fz", "EEG Cz", "EEG Pz"])
    write_edf(folder / "p0_1.edf", make_eeg(6, 21.0), [*NAMES, "EEG T7"])
    found = run(folder, EEGFeatures())
    reason = "It lacks Oz, which most files have; there are Fz, Cz, Pz."
    assert found.failures == {str(folder / "p0_0.edf"): reason}
    assert len([name for name in found.frame if name.endswith("_theta")]) == 4


def test_channels_are_found_in_any_case_and_only_once(folder, make_eeg, write_edf):
    usual = run(folder).frame
    loud = [name.upper() for name in NAMES]
    for person in range(3):
        for label in range(2):
            data = make_eeg(alpha=0.5 + 2.0 * label, seed=10 * person + label, seconds=21.0)
            write_edf(folder / f"p{person}_{label}.edf", data, loud if person else NAMES)
    for channels in (("Fz", "Cz"), ("fz", "EEG Cz")):
        found = run(folder, EEGFeatures("shares", channels))
        assert found.failures == {}
        np.testing.assert_array_equal(found.frame.iloc[:, 3:], usual.iloc[:, 3:])
    assert run(folder, EEGFeatures()).failures == {}
    twice = run(folder, EEGFeatures("shares", ("Fz", "FZ")))
    assert set(twice.failures.values()) == {"A channel is asked for twice: Fz, FZ."}


def test_two_channels_of_one_name_keep_their_long_names(tmp_path, make_eeg, write_edf):
    write_edf(tmp_path / "p1_0.edf", make_eeg(3), ["EEG Fz-Ref", "EEG Fz-LE", "EEG Cz"])
    found = run(tmp_path)
    assert list(found.failures.values()) == [
        "There is no channel Fz; there are EEG Fz-Ref, EEG Fz-LE, Cz."
    ]


@pytest.mark.parametrize("rate", [0.0, 40.0])
def test_a_file_of_too_low_a_rate_fails_alone(folder, make_eeg, rate):
    names = np.array(["Fz", "Cz", "Pz"], dtype=object)
    savemat(folder / "p9_0.mat", {"x": make_eeg(3), "fs": rate, "ch_names": names})
    found = run(folder)
    assert list(found.failures) == [str(folder / "p9_0.mat")]
    why = found.failures[str(folder / "p9_0.mat")]
    assert ("need more than 60" if rate else "sfreq must be a positive number") in why
    assert len(found.frame) == 6 * 9


def test_a_task_without_a_whole_window_is_named(folder, make_eeg, write_edf):
    for label in range(2):
        data = make_eeg(seconds=21.0, seed=label)
        data[1] = 0.0
        write_edf(folder / f"p1_{label}.edf", data, NAMES)
    found = run(folder)
    assert found.failures == {
        "Task p1": "No window of it has all features; readers will leave it out."
    }
    with pytest.warns(UserWarning, match=r"18 of 54 rows were dropped.* Nothing is left of 'p1'"):
        assert [task.name for task in TaskSet.from_frame(found.frame)] == ["p0", "p2"]


def test_a_missing_sample_survives_resampling(tmp_path, make_eeg):
    names = np.array(["Fz", "Cz", "Pz"], dtype=object)
    data = make_eeg(3, sfreq=200.0)
    data[0, 1001] = np.nan
    savemat(tmp_path / "p1_0.mat", {"x": data, "fs": 200.0, "ch_names": names})
    savemat(tmp_path / "p1_1.mat", {"x": make_eeg(3), "fs": 100.0, "ch_names": names})
    rows = run(tmp_path).frame
    absent = rows[rows["label"] == 0]["Fz_theta"].isna().to_numpy()
    np.testing.assert_array_equal(absent, np.arange(8) == 2)


def test_a_task_in_two_groups_is_left_out(folder):
    labels = FilenameLabels(r"(?P<task>p\d+)_(?P<group>(?P<label>\d))")
    found = run(folder, label=labels)
    assert found.failures["Task p1"] == "It is in the groups 0, 1; it needs one."
    assert len(found.frame) == 0


def test_labels_that_are_no_plain_numbers_stay_text(folder):
    (folder / "p1_0.edf").rename(folder / "p1_01.edf")
    labels = FilenameLabels(r"(?P<task>p\d+)_(?P<label>\d+)")
    assert set(run(folder, label=labels).frame["label"]) == {"0", "01", "1"}


def test_other_kinds_of_channels_are_no_eeg(tmp_path, make_eeg, write_edf):
    names = ["C3-A2", "C4-A1", "EOG left", "ECG II", "EMG chin"]
    recording = open_recording(write_edf(tmp_path / "a.edf", make_eeg(), names))
    assert recording.scalp() == ("C3-A2", "C4-A1")
    assert recording.ecg_channel() == "II"
    names = ["A1", "A2", "B1", "B2", "C1"]
    assert open_recording(write_edf(tmp_path / "b.edf", make_eeg(), names)).scalp() == tuple(names)


def test_an_ecg_without_a_heartbeat_has_empty_windows(tmp_path, write_edf):
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(6000)
    time = np.arange(6000) / 100.0
    beats = np.exp(-0.5 * ((time[:, None] - np.arange(0.5, 60.0, 0.83)) / 0.02) ** 2).sum(1)
    write_edf(tmp_path / "p1_0.edf", [100.0 * beats + noise], ["ECG"])
    write_edf(tmp_path / "p1_1.edf", [noise], ["ECG"])
    found = run(tmp_path, ECGFeatures(("rate",)))
    assert found.failures == {}
    assert found.notes == [
        (
            str(tmp_path / "p1_1.edf"),
            "ECG holds no heartbeat: its peaks are no larger than those of noise, and its windows "
            "are left empty",
        ),
        ("Task p1", "has windows with all features of one class only, '0'"),
    ]
    assert found.frame["label"].tolist() == [0] * 4 + [1] * 4
    np.testing.assert_allclose(found.frame["rate"], [60 / 0.83] * 4 + [np.nan] * 4, rtol=0.01)


def test_a_file_given_twice_is_read_once(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "._p0_0.edf").write_bytes(b"what a Mac leaves behind")
    paths = find_recordings([Path("p0_0.edf"), folder, folder / "p0_0.edf"])
    assert len(paths) == 6


def test_no_file_at_all_gives_an_empty_table(tmp_path):
    (tmp_path / "p1_0.edf").write_bytes(b"")
    found = run(tmp_path)
    assert len(found.frame) == 0
    assert list(found.failures) == [str(tmp_path / "p1_0.edf")]


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no recording \(looked for .edf, .bdf"):
        find_recordings([tmp_path])
    with pytest.raises(ValueError, match="There is no file to read"):
        find_recordings([])


def test_extracts_refuse_what_they_do_not_know():
    with pytest.raises(
        ValueError, match=r"features must be one of 'shares', 'powers', .* 'tangent'"
    ):
        EEGFeatures("spectra")
    with pytest.raises(ValueError, match="reference must be one of 'average', 'none'"):
        EEGFeatures(reference="Cz")
    with pytest.raises(ValueError, match=r"overlap must be shorter than a window; got 3 of 2.5 s"):
        EEGFeatures(overlap=3.0)
    with pytest.raises(ValueError, match="'alpha' must run upwards; got 12 to 8 Hz"):
        EEGFeatures(bands={"alpha": (12.0, 8.0)})
    with pytest.raises(ValueError, match="A band-pass must run upwards; got 30 to 1 Hz"):
        EEGFeatures(passband=(30.0, 1.0))
    with pytest.raises(ValueError, match="features must be"):
        ECGFeatures(("pulse",))


def test_a_damaged_xdf_file_is_named_and_nothing_is_printed(folder, capfd, caplog):
    (folder / "p8_0.xdf").write_bytes(b"XDF:nothing of the kind")
    found = run(folder)
    assert list(found.failures) == [str(folder / "p8_0.xdf")]
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
