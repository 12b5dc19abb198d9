"""The file of a prior: equal after a round trip, whole or not at all, and nothing in it is run."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from crossfade import TaskPrior
from crossfade.prior import _archive as prior_file


@pytest.fixture
def prior(make_tasks):
    names = ["θ", "alpha", "b e t a", "γ"]
    return TaskPrior.from_tasks(make_tasks(labels=("rest", "task"), feature_names=names))


@pytest.fixture
def saved(prior, tmp_path):
    path = tmp_path / "prior.npz"
    prior.save(path)
    return path


def rewritten(path, header=None, **changes):
    """The arrays of a file with some replaced or left out (None), under a valid checksum."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    text = arrays.pop("header").tobytes().decode()
    del arrays["sha256"]
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value
    text = json.dumps({**json.loads(text), **(header or {})}, sort_keys=True)
    np.savez(
        path,
        header=np.frombuffer(text.encode(), dtype=np.uint8),
        sha256=np.frombuffer(prior_file._digest(text, arrays), dtype=np.uint8),
        **arrays,
    )


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("rest", "task"), (-1.0, 2.0)])
@pytest.mark.parametrize("isotropic", [False, True])
def test_round_trip(make_tasks, tmp_path, labels, isotropic):
    prior = TaskPrior.from_tasks(make_tasks(labels=labels), isotropic=isotropic)
    prior.save(tmp_path / "p.npz")
    again = TaskPrior.load(str(tmp_path / "p.npz"))
    assert again == prior
    assert again.classes == labels
    assert [type(name) for name in again.classes] == [type(name) for name in labels]
    assert again.feature_names == prior.feature_names
    assert again.isotropic == isotropic


def test_round_trip_of_bare_and_named_priors(prior, saved, make_prior, tmp_path):
    assert TaskPrior.load(saved) == prior
    assert TaskPrior.load(saved).feature_names == prior.feature_names
    bare = make_prior()
    bare.save(tmp_path / "no-suffix")
    assert TaskPrior.load(tmp_path / "no-suffix") == bare
    assert sorted(path.name for path in tmp_path.iterdir()) == ["no-suffix", "prior.npz"]


def test_loaded_prior_never_changes_either(saved):
    with pytest.raises(ValueError, match="read-only"):
        TaskPrior.load(saved).direction_sum[0] = 1.0


def test_file_can_be_read_with_numpy_alone(prior, saved):
    with np.load(saved, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["direction_sum"], prior.direction_sum)
        header = json.loads(archive["header"].tobytes())
    assert (header["format"], header["version"], header["n_tasks"]) == ("crossfade-prior", 2, 6)


def test_truncated_anywhere(saved):
    content = saved.read_bytes()
    for length in [*range(0, len(content), 37), len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"truncated or damaged|not a prior file|is damaged"):
            TaskPrior.load(saved)


def test_altered_anywhere(prior, saved):
    content = saved.read_bytes()
    refused = 0
    for place in range(0, len(content), 3):
        altered = bytearray(content)
        altered[place] ^= 0xFF
        saved.write_bytes(altered)
        try:
            again = TaskPrior.load(saved)
        except ValueError as refusal:
            assert str(saved) in str(refusal)  # noqa: PT017
            refused += 1
        else:
            # Dates and other notes of the archive that carry nothing.
            assert again == prior
            assert again.feature_names == prior.feature_names
    assert refused > len(content) / 6


def test_altered_numbers_under_an_intact_archive(prior, saved):
    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["direction_sum"] = -arrays["direction_sum"]
    np.savez(saved, **arrays)
    with pytest.raises(ValueError, match="altered after it was saved: its checksum does not match"):
        TaskPrior.load(saved)


def test_newer_version(saved):
    rewritten(saved, {"version": 3, "anything": "else"})
    with pytest.raises(ValueError, match=r"format version 3; .* reads up to 2. Update Crossfade"):
        TaskPrior.load(saved)
    rewritten(saved, {"version": "two"})
    with pytest.raises(ValueError, match="was altered: its format version is 'two'"):
        TaskPrior.load(saved)


class Bomb:
    """What runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    harm, path = tmp_path / "harm", tmp_path / "prior.npz"
    path.write_bytes(pickle.dumps(Bomb(harm)))
    with pytest.raises(ValueError, match="is not a prior file; nothing in it was run or unpickled"):
        TaskPrior.load(path)
    assert not harm.exists()
    # The bomb does go off in the hands of pickle, so that the test would notice.
    pickle.loads(path.read_bytes())
    assert harm.exists()


@pytest.mark.parametrize("where", ["direction_sum", "header", "extra"])
def test_arrays_of_objects_are_refused_and_not_run(saved, tmp_path, where):
    harm = tmp_path / "harm"
    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays[where] = np.array([Bomb(harm)], dtype=object)
    np.savez(saved, allow_pickle=True, **arrays)
    with pytest.raises(ValueError, match="holds something other than numbers"):
        TaskPrior.load(saved)
    assert not harm.exists()


def test_other_archives_are_not_priors(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, direction_sum=np.ones(3))
    with pytest.raises(ValueError, match="not a prior file: it has no header and checksum"):
        TaskPrior.load(path)
    for name in ("readme.txt", "header"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "hello")
            archive.writestr("sha256", "hello")
        with pytest.raises(ValueError, match=f"something other than numbers \\({name} is no array"):
            TaskPrior.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is not a prior file"):
        TaskPrior.load(path)


def test_header_that_is_none(saved):
    rewritten(saved, {"format": "something"})
    with pytest.raises(ValueError, match="its format is not 'crossfade-prior'"):
        TaskPrior.load(saved)
    content = io.BytesIO()
    np.savez(content, header=np.frombuffer(b"{", dtype=np.uint8), sha256=np.zeros(32, np.uint8))
    saved.write_bytes(content.getvalue())
    with pytest.raises(ValueError, match="its header cannot be read"):
        TaskPrior.load(saved)


def test_a_format_that_is_no_text(saved):
    rewritten(saved, {"format": ["crossfade-prior"]})
    with pytest.raises(ValueError, match="is not a prior file: its format is not"):
        TaskPrior.load(saved)


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({}, {"direction_sum": None}),
        ({}, {"feature_scale": None}),
        ({}, {"direction_sum": np.ones(3)}),
        ({}, {"direction_sum": np.ones((4, 4))}),
        ({}, {"outer_sum": np.ones((3, 4))}),
        ({}, {"feature_scale": np.zeros(4)}),
        ({}, {"within_covariance": np.ones(4)}),
        ({}, {"half_gap": np.full(4, np.nan)}),
        ({"n_tasks": 0}, {}),
        ({"n_tasks": "six"}, {}),
        ({"classes": [1]}, {}),
        ({"classes": 7}, {}),
        ({"feature_names": ["only one"]}, {}),
        ({"about": ["made by us"]}, {}),
        ({"about": {"made_by": 7}}, {}),
    ],
)
def test_contents_that_cannot_be_a_prior(saved, header, arrays):
    rewritten(saved, header, **arrays)
    with pytest.raises(ValueError, match=r"prior\.npz holds no valid prior"):
        TaskPrior.load(saved)


def test_missing_file_and_folder(prior, tmp_path):
    with pytest.raises(FileNotFoundError):
        TaskPrior.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        prior.save(tmp_path / "no" / "folder.npz")


def test_classes_that_no_file_can_hold(make_directions, tmp_path):
    prior = TaskPrior.from_projections(make_directions(), classes=(b"a", b"b"))
    with pytest.raises(ValueError, match="classes must be text, numbers or booleans to be saved"):
        prior.save(tmp_path / "p.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, make_prior, monkeypatch, step):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        make_prior().save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["prior.npz"]


def test_saving_again_replaces(saved, make_prior):
    other = make_prior()
    other.save(saved)
    assert TaskPrior.load(saved) == other


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_follow_the_umask(saved, make_prior):
    umask = os.umask(0)
    os.umask(umask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~umask
