"""Labels of recordings: from names, annotations and tables."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from crossfade.signals._labels import (
    AnnotationLabels,
    FilenameLabels,
    TableLabels,
    UnselectedLabelsError,
    matched,
)
from crossfade.signals.recordings import Annotation, Recording


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
    labels = FilenameLabels(r"(?P<task>(?P<group>sub-\d+)_ses-\d)_(?P<label>\w+)\.edf")
    assert labels(recording) == [("sub-01_ses-2", "rest", "sub-01", 0.0, np.inf)]


def test_without_a_task_the_file_is_the_task(recording):
    (one,) = FilenameLabels(r"_(?P<label>rest|math)\.")(recording)
    assert (one.task, one.label) == ("sub-01_ses-2_rest", "rest")


def test_classes_rename_and_choose(recording):
    pattern = r"_(?P<label>\w+?)\.edf"
    assert FilenameLabels(r"(?P<label>rest)", {"rest": "0"})(recording)[0].label == "0"
    with pytest.raises(UnselectedLabelsError, match="'rest' is none of the labels that count"):
        FilenameLabels(pattern, {"math": "1"})(recording)


def test_a_pattern_that_cannot_be_used_is_refused(recording):
    with pytest.raises(ValueError, match="must name the label"):
        FilenameLabels(r"(?P<task>\d+)")
    with pytest.raises(ValueError, match=r"no regular expression: missing \)"):
        FilenameLabels(r"(?P<label>\d+")
    with pytest.raises(ValueError, match=r"'\(\?P<label>zzz\)' does not match"):
        FilenameLabels("(?P<label>zzz)")(recording)
    with pytest.raises(ValueError, match=r"matches none of the 1 files; the first is 'data/sub-01"):
        matched([recording.path], FilenameLabels("(?P<label>zzz)"))


def test_annotations_last_until_the_next_that_counts(recording):
    labels = AnnotationLabels({"rest": "0", "math": "1"}, r"(?P<task>sub-\d+)")
    assert labels(recording) == [
        ("sub-01", "0", None, 0.0, 5.0),
        ("sub-01", "1", None, 6.0, 9.0),
        ("sub-01", "0", None, 9.0, np.inf),
    ]


def test_annotations_that_do_not_count_are_listed(recording):
    with pytest.raises(ValueError, match="No annotation counts as a class; there are: blink, math"):
        AnnotationLabels({"T1": "T1"})(recording)
    bare = dataclasses.replace(recording, annotations=())
    with pytest.raises(ValueError, match="there are: none"):
        AnnotationLabels()(bare)


def test_a_table_labels_segments(tmp_path, recording):
    path = tmp_path / "labels.csv"
    path.write_text(
        "file,label,task,group,start,stop\n"
        "sub-01_ses-2_rest.edf,0,01-2,01,0,10.5\n"
        "sub-01_ses-2_rest.edf,1,01-2,01,12,\n"
        "other.edf,1,02,,,\n"
    )
    labels = TableLabels(path)
    assert labels(recording) == [
        ("01-2", "0", "01", 0.0, 10.5),
        ("01-2", "1", "01", 12.0, np.inf),
    ]
    assert labels.unmatched([recording.path]) == {
        f"{path}, row 4": "'other.edf' is none of the files that were given."
    }


def test_a_table_finds_files_from_its_own_folder(tmp_path, recording):
    path = tmp_path / "labels.csv"
    path.write_text("file,label\nin/a.edf,rest\n")
    inside = dataclasses.replace(recording, path=tmp_path / "in" / "a.edf")
    assert TableLabels(path)(inside) == [("a", "rest", None, 0.0, np.inf)]
    with pytest.raises(ValueError, match="has no row for this file"):
        TableLabels(path)(dataclasses.replace(recording, path=tmp_path / "out" / "a.edf"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,label\na,1\n", "has no column 'file'; its columns are"),
        ("file,label\na.edf,\n", "row 2, column 'label': is empty"),
        (
            "file,label,start\na.edf,1,2\nb.edf,1,soon\n",
            "row 3, column 'start': 'soon' is no number",
        ),
        ("", "cannot be read as a table of labels"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, message):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        TableLabels(path)


def test_the_name_of_a_file_comes_before_its_folders(recording):
    inside = dataclasses.replace(recording, path=Path("study_2/p0_0.edf"))
    [one] = FilenameLabels(r"(?P<task>\w+)_(?P<label>\d)")(inside)
    assert (one.task, one.label) == ("p0", "0")
    [one] = FilenameLabels(r"study_(?P<label>\d)")(inside)
    assert one.label == "2"
    with pytest.raises(ValueError, match="finds no label in it"):
        FilenameLabels(r"(?P<task>p\d)(?P<label>x)?")(inside)


def test_a_table_may_speak_of_a_person_called_na(tmp_path, recording):
    path = tmp_path / "labels.csv"
    path.write_text(f"file,label,task\n{recording.path.name},None,NA\n")
    assert TableLabels(path)(recording) == [("NA", "None", None, 0.0, np.inf)]
