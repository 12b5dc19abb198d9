"""Many files to one table; no bad file loses the others."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from crossfade import TaskSet
from crossfade.signals import (
    KINDS,
    average_reference,
    band_pass,
    collect,
    ecg_recipe,
    eeg_recipe,
    label_from,
)
from crossfade.signals.eeg import BandPower
from crossfade.signals.recordings import open_recording
from crossfade.signals.windows import cut_windows

pytest.importorskip("mne")
# The two states of these simulated people differ more than any real ones do.
pytestmark = pytest.mark.filterwarnings("ignore:.*alone separate:crossfade.exceptions.TableWarning")

NAMES = ["EEG Fz", "EEG Cz", "EEG Pz", "EEG Oz", "ECG ECG"]
LABELS = label_from("filename", pattern=r"(?P<task>p\d+)_(?P<label>\d)")
SHARES = partial(eeg_recipe, channels=("Fz", "Cz"))


@pytest.fixture
def folder(tmp_path, make_eeg, write_edf):
    for person in range(3):
        for label in range(2):
            data = make_eeg(alpha=0.5 + 2.0 * label, seed=10 * person + label, seconds=21.0)
            write_edf(tmp_path / f"p{person}_{label}.edf", data, NAMES)
    return tmp_path


def run(folder, recipe_for=SHARES, label=LABELS, **options):
    return collect([folder], recipe_for, label, **options)


def write_matlab(path, data, sfreq=100.0, names=("Fz", "Cz", "Pz")):
    savemat(path, {"x": data, "fs": sfreq, "ch_names": np.array(names, dtype=object)})


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
    tasks = TaskSet.from_frame(run(folder, partial(eeg_recipe, kind=kind)).frame, missing="error")
    assert len(tasks) == 3
    names = ("Fz_Fz", "Fz_Cz") if kind == "tangent" else ("Fz_theta", "Fz_alpha")
    assert tasks.feature_names[:2] == names
    assert len(tasks.feature_names) == (10 if kind == "tangent" else 12)
    assert tasks.recipe.kind == kind


def test_the_number_of_jobs_changes_nothing(folder):
    calls = []
    one = run(folder)
    two = run(folder, n_jobs=2, on_progress=lambda done, total: calls.append((done, total)))
    assert one.frame.equals(two.frame)
    assert calls == [(place, 6) for place in range(1, 7)]


def test_bad_files_are_named_and_the_others_are_there(folder, make_eeg, write_edf, capfd):
    full = run(folder).frame
    cut = folder / "p0_0.edf"
    cut.write_bytes(cut.read_bytes()[:-4000])
    (folder / "p1_0.edf").write_bytes(b"no recording at all")
    (folder / "p8_0.xdf").write_bytes(b"XDF:nothing of the kind")
    (folder / "._p0_0.edf").write_bytes(b"what a Mac leaves behind")
    write_edf(folder / "p3_0.edf", make_eeg(3), ["EEG Fz", "EEG Pz", "EEG Oz"])
    write_edf(folder / "p4_0.edf", make_eeg(seconds=2.0), NAMES)
    write_edf(folder / "p5_0.edf", make_eeg(seconds=21.0, sfreq=200.0), NAMES, sfreq=200.0)
    write_edf(folder / "other.edf", make_eeg(), NAMES)
    write_matlab(folder / "p9_0.mat", make_eeg(3), sfreq=40.0)
    found = run(folder)
    reasons = {
        "p0_0.edf": "records",
        "p1_0.edf": "EDF",
        "p8_0.xdf": "XDF",
        "p3_0.edf": "no channel Cz; there are Fz, Pz, Oz",
        "p4_0.edf": "No window fits",
        "p5_0.edf": "200 samples a second; most files have 100",
        "other.edf": "does not match",
        "p9_0.mat": "40 samples",
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
    assert capfd.readouterr() == ("", "")


def test_what_all_files_share_is_said_once(folder):
    with pytest.raises(ValueError, match=r"None of the 6 files.*--label-from filename"):
        run(folder, label=label_from("annotations"))
    with pytest.raises(ValueError, match="T7"):
        run(folder, partial(eeg_recipe, channels=("T7",)))


def test_two_files_for_one_person_and_class_are_both_left_out(folder):
    (folder / "again").mkdir()
    (folder / "again" / "p1_0.edf").write_bytes((folder / "p1_0.edf").read_bytes())
    found = run(folder)
    assert set(found.failures) == {str(folder / "p1_0.edf"), str(folder / "again" / "p1_0.edf")}
    assert str(folder / "again" / "p1_0.edf") in found.failures[str(folder / "p1_0.edf")]
    assert len(found.frame) == 5 * 9
    assert len(run(folder, merge=True).frame) == 7 * 9


def test_a_flat_channel_is_reported_and_no_part_of_the_reference(folder, make_eeg, write_edf):
    data = make_eeg(seconds=21.0)
    data[1], data[3] = 0.0, 40.0
    write_edf(folder / "p0_0.edf", data, NAMES)
    found = run(folder)
    assert found.notes[0] == (str(folder / "p0_0.edf"), "Cz is flat")
    rows = found.frame.iloc[:9]
    assert rows.filter(like="Cz_").isna().all(axis=None)
    by_hand = band_pass(average_reference(data[[0, 2]]), 100.0, 0.5, 30.0)[:1]
    by_hand = BandPower(100.0).fit_transform(cut_windows(by_hand, 100.0, length=2.5).data)
    np.testing.assert_allclose(rows.filter(like="Fz_"), by_hand, atol=1e-3)
    with pytest.warns(UserWarning, match=r"9 of 54 rows were dropped, .* Cz_theta \(9\)"):
        TaskSet.from_frame(found.frame)


def test_windows_with_nan_have_no_features(tmp_path, make_eeg):
    data = make_eeg(3, seconds=20.0)
    data[1, 300:310] = np.nan
    write_matlab(tmp_path / "p1_0.mat", data)
    found = run(tmp_path)
    assert found.notes[0] == (str(tmp_path / "p1_0.mat"), "Cz lacks 10 samples")
    absent = found.frame.filter(like="Cz_").isna().all(axis=1)
    np.testing.assert_array_equal(absent, np.arange(8) == 1)
    assert found.frame.filter(like="Fz_").notna().all(axis=None)


def test_a_recording_of_one_channel_has_no_reference(tmp_path, make_eeg):
    write_matlab(tmp_path / "p1_0.mat", make_eeg(1), names=["Fz"])
    found = run(tmp_path, eeg_recipe)
    assert found.frame.attrs["recipe"]["reference"] == "none"
    assert found.frame.notna().all(axis=None)


def test_channels_are_those_that_most_files_have(folder, make_eeg, write_edf):
    write_edf(folder / "p0_0.edf", make_eeg(3, 21.0), ["EEG Fz", "EEG Cz", "EEG Pz"])
    write_edf(folder / "p0_1.edf", make_eeg(6, 21.0), [*NAMES, "EEG T7"])
    found = run(folder, eeg_recipe)
    assert list(found.failures) == [str(folder / "p0_0.edf")]
    assert len([name for name in found.frame if name.endswith("_theta")]) == 4
    assert found.frame.attrs["recipe"]["averaged"] == ["Fz", "Cz", "Pz", "Oz"]


# -- labels ---------------------------------------------------------------------------------------


def test_annotations_label_parts_of_one_file(tmp_path, make_eeg, write_edf):
    notes = [(1.0, 6.0, "rest"), (8.0, None, "math"), (19.0, None, "rest")]
    write_edf(tmp_path / "s1.edf", make_eeg(seconds=20.0), NAMES, annotations=notes)
    found = run(tmp_path, label=label_from("annotations"))
    assert found.frame["label"].tolist() == ["rest"] * 3 + ["math"] * 5
    assert found.frame["start"].tolist() == [1.0, 3.5, 4.5, 8.0, 10.5, 13.0, 15.5, 16.5]
    assert len(found.notes) == 1
    # A marker lasts until the next one that counts.
    found = run(tmp_path, label=label_from("annotations", classes={"rest": "low"}))
    assert set(found.frame["label"]) == {"low"}


def test_files_of_other_labels_are_left_out_with_a_note(folder):
    found = run(
        folder,
        label=label_from(
            "filename", pattern=r"(?P<task>p\d+)_(?P<label>\d)", classes={"1": "math"}
        ),
    )
    assert [what for _, what in found.notes if "left out" in what and "0" in what][2:]
    assert found.failures == {}
    assert set(found.frame["label"]) == {"math"}


def test_a_task_in_two_groups_is_left_out(folder):
    found = run(
        folder, label=label_from("filename", pattern=r"(?P<task>p\d+)_(?P<group>(?P<label>\d))")
    )
    assert set(found.failures) == {"Task p0", "Task p1", "Task p2"}
    assert len(found.frame) == 0


# -- files ----------------------------------------------------------------------------------------


def test_a_file_given_twice_is_read_once(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = collect([Path("p0_0.edf"), folder, folder / "p0_0.edf"], SHARES, LABELS)
    assert found.failures == {}
    assert len(found.frame) == 6 * 9


def test_no_file_to_read(tmp_path):
    with pytest.raises(ValueError, match="no recording"):
        run(tmp_path)
    (tmp_path / "p1_0.edf").write_bytes(b"")
    found = run(tmp_path)
    assert len(found.frame) == 0
    assert list(found.failures) == [str(tmp_path / "p1_0.edf")]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"kind": "spectra"}, "kind"),
        ({"overlap": 3.0}, "overlap"),
        ({"bands": {"alpha": (12.0, 8.0)}}, "band"),
        ({"bands": {"alpha": (8.0, 60.0)}}, "'alpha'"),
        ({"kind": "clr", "bands": {"alpha": (8.0, 12.0)}}, "two bands"),
    ],
)
def test_recipes_that_cannot_be_are_refused(folder, options, word):
    with pytest.raises(ValueError, match=word):
        run(folder, partial(eeg_recipe, **options))
    with pytest.raises(ValueError, match="features"):
        run(folder, partial(ecg_recipe, features=("pulse",)))
    with pytest.raises(ValueError, match="window"):
        run(folder, partial(ecg_recipe, window=0.5))
