"""Labels of recordings: from names, annotations and tables."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from crossfade.signals import (
    Annotation,
    label_from,
)
from crossfade.signals.recordings import Recording


@pytest.fixture
def recording():
    notes = (
        Annotation(0.0, 5.0, "rest"),
        Annotation(6.0, 0.0, "math"),
        Annotation(8.0, 0.0, "blink"),
        Annotation(9.0, 0.0, "rest"),
    )
    path = Path("data/sub-01/sub-01_ses-2_rest.edf")
    return Recording(
        path, 100.0, ("Fz",), 2000, notes, lambda places: np.zeros((1, 2000)), ("eeg",)
    )


def test_a_pattern_names_task_label_and_group(recording):
    label = label_from(
        "filename", pattern=r"(?P<task>(?P<group>sub-\d+)_ses-\d)_(?P<label>\w+)\.edf"
    )
    assert label(recording) == [("sub-01_ses-2", "rest", "sub-01", 0.0, np.inf)]
    [one] = label_from("filename", pattern=r"_(?P<label>rest|math)\.", classes={"rest": "0"})(
        recording
    )
    assert (one.task, one.label) == ("sub-01_ses-2_rest", "0")


def test_the_name_of_a_file_comes_before_its_folders(recording):
    inside = dataclasses.replace(recording, path=Path("study_2/p0_0.edf"))
    [one] = label_from("filename", pattern=r"(?P<task>\w+)_(?P<label>\d)")(inside)
    assert (one.task, one.label) == ("p0", "0")
    [one] = label_from("filename", pattern=r"study_(?P<label>\d)")(inside)
    assert one.label == "2"


def test_annotations_last_until_the_next_that_counts(recording):
    label = label_from(
        "annotations", classes={"rest": "0", "math": "1"}, pattern=r"(?P<task>sub-\d+)"
    )
    assert label(recording) == [
        ("sub-01", "0", None, 0.0, 5.0),
        ("sub-01", "1", None, 6.0, 9.0),
        ("sub-01", "0", None, 9.0, np.inf),
    ]


@pytest.mark.parametrize(
    ("label", "word"),
    [
        (label_from("filename", pattern="(?P<label>zzz)"), "zzz"),
        (label_from("filename", pattern=r"(?P<task>sub)(?P<label>x)?"), "match"),
        (label_from("filename", pattern=r"_(?P<label>rest)", classes={"math": "1"}), "rest"),
        (label_from("annotations", classes={"T1": "T1"}), "blink, math, rest"),
    ],
)
def test_recordings_without_a_label_are_refused(recording, label, word):
    with pytest.raises(ValueError, match=word):
        label(recording)
    with pytest.raises(ValueError, match="--label-from filename"):
        label_from("annotations")(dataclasses.replace(recording, annotations=()))


def test_a_table_labels_segments(tmp_path, recording):
    path = tmp_path / "labels.csv"
    path.write_text(
        "file,label,task,group,start,stop\n"
        "sub-01_ses-2_rest.edf,0,NA,01,0,10.5\n"
        "sub-01_ses-2_rest.edf,1,NA,01,12,\n"
        "other.edf,1,02,,,\n"
    )
    assert label_from("csv", table=path)(recording) == [
        ("NA", "0", "01", 0.0, 10.5),
        ("NA", "1", "01", 12.0, np.inf),
    ]


def test_a_table_finds_files_from_its_own_folder(tmp_path, recording):
    path = tmp_path / "labels.csv"
    path.write_text("file,label\nin/a.edf,rest\n")
    inside = dataclasses.replace(recording, path=tmp_path / "in" / "a.edf")
    assert label_from("csv", table=path)(inside) == [("a", "rest", None, 0.0, np.inf)]
    with pytest.raises(ValueError, match="no row"):
        label_from("csv", table=path)(
            dataclasses.replace(recording, path=tmp_path / "out" / "a.edf")
        )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("name,label\na,1\n", "'file'"),
        ("file,label\na.edf,\n", "'label'"),
        ("file,label,start\na.edf,1,2\nb.edf,1,soon\n", "soon"),
        ("", "columns"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, word):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=word):
        label_from("csv", table=path)
    with pytest.raises(ValueError, match="label"):
        label_from("filename", pattern=r"(?P<task>\d+)")
