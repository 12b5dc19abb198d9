"""The file of a prior: equal after a round trip, whole or not at all, and nothing in it is run."""

import hashlib
import io
import json
import os
import pickle
import re
import socket
import stat
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossfade import (
    MulticlassPrior,
    PosteriorBlendClassifier,
    TaskPrior,
    load_model,
    save_model,
)

ROOT = Path(__file__).parents[1]
OLD = ROOT / "tests/contracts/golden/files"
KINDS = (TaskPrior, MulticlassPrior)


@pytest.fixture
def prior(make_tasks):
    names = ["θ", "alpha", "b e t a", "γ"]
    return TaskPrior.from_tasks(make_tasks(labels=("rest", "task"), feature_names=names))


@pytest.fixture
def make_kind(prior, make_many):
    """A prior of each kind."""

    def make(kind):
        return prior if kind is TaskPrior else MulticlassPrior.from_tasks(make_many(4))

    return make


@pytest.fixture
def saved(prior, tmp_path):
    path = tmp_path / "prior.npz"
    prior.save(path)
    return path


def arrays_of(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def header_of(path):
    return json.loads(arrays_of(path)["header"].tobytes())


def write_archive(path, header, arrays):
    """A file under a checksum that fits it."""
    text = json.dumps(header, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    content = {"header": text.encode(), "sha256": digest.digest()}
    content = {name: np.frombuffer(part, np.uint8) for name, part in content.items()}
    np.savez(path, **content, **arrays)


def rewritten(path, header=None, **changes):
    """The file with some fields and arrays replaced or left out (None), under a valid checksum."""
    arrays = arrays_of(path) | changes
    fields = json.loads(arrays.pop("header").tobytes()) | (header or {})
    del arrays["sha256"]
    write_archive(path, fields, {name: one for name, one in arrays.items() if one is not None})


# -- there and back -------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_and_is_saved_to_the_same_bytes(make_kind, kind, tmp_path):
    prior = make_kind(kind)
    prior.save(tmp_path / "p.npz")
    again = kind.load(tmp_path / "p.npz")
    assert again == prior
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "p.npz").read_bytes()
    header = header_of(tmp_path / "p.npz")
    fixed = {"format": "crossfade-prior", "version": 4, "kind": kind.__name__, "metadata": {}}
    assert {name: header[name] for name in fixed} == fixed


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


def test_priors_inside_a_prior_have_prefixed_names(make_kind, tmp_path):
    many = make_kind(MulticlassPrior)
    many.save(tmp_path / "many.npz")
    arrays, header = arrays_of(tmp_path / "many.npz"), header_of(tmp_path / "many.npz")
    assert [tuple(pair) for pair in header["pairs"]] == list(many.pairs)
    for place, pair in enumerate(many.pairs):
        np.testing.assert_array_equal(
            arrays[f"priors.{place}.direction_sum"], many[pair].direction_sum
        )
        assert arrays[f"priors.{place}.card_md"].tobytes().decode() == many[pair].card()
        assert header["priors"][str(place)]["n_tasks"] == many[pair].n_tasks


def test_the_page_on_the_file_reads_it(prior, saved, monkeypatch, capsys):
    text = (ROOT / "docs/sharing.md").read_text(encoding="utf-8")
    *_, code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(saved.parent)
    exec(code, {})
    assert capsys.readouterr().out == f"6 tasks, agreement R = {prior.resultant_length:.3f}\n"


def test_a_prior_of_ones_own_class(prior, tmp_path):
    class Mine(TaskPrior):
        pass

    mine = Mine(**{name: getattr(prior, name) for name in prior.__dataclass_fields__})
    mine.save(tmp_path / "p.npz")
    assert isinstance(Mine.load(tmp_path / "p.npz"), Mine)
    assert TaskPrior.load(tmp_path / "p.npz") == prior


# -- what may be added ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_else_a_file_says_is_kept(make_kind, kind, tmp_path):
    prior, path = make_kind(kind), tmp_path / "p.npz"
    prior.save(path)
    said = {"device": {"channels": [1, 2], "gain": 0.5, "note": None}, "θ": "é"}
    rewritten(path, {"metadata": said})
    again = kind.load(path)
    assert again == prior
    for copy in (again, pickle.loads(pickle.dumps(again))):
        copy.save(tmp_path / "again.npz")
        assert header_of(tmp_path / "again.npz")["metadata"] == said
        assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


@pytest.mark.filterwarnings("ignore:Only one of the two priors")
def test_what_was_said_of_one_prior_is_not_said_of_another(saved, tmp_path):
    rewritten(saved, {"metadata": {"mean_age": 71.25}})
    loaded = TaskPrior.load(saved)
    more = TaskPrior.from_projections(np.eye(4), feature_scale=loaded.feature_scale)
    for other in (loaded + more, loaded.update(np.eye(4)), loaded.reversed(), replace(loaded)):
        other.save(tmp_path / "other.npz")
        assert header_of(tmp_path / "other.npz")["metadata"] == {}


@pytest.mark.parametrize("kind", KINDS)
def test_fields_and_arrays_of_other_names_are_passed_over(make_kind, kind, tmp_path):
    prior, path = make_kind(kind), tmp_path / "p.npz"
    prior.save(path)
    whole = path.read_bytes()
    more = {"weights": np.ones(3), "metadata.weights": np.ones(3), "later.on.weights": np.ones(3)}
    rewritten(path, {"of_tomorrow": [1, {"deep": None}]}, **more)
    again = kind.load(path)
    assert again == prior
    again.save(path)
    assert path.read_bytes() == whole


def test_metadata_is_an_object(saved):
    rewritten(saved, {"metadata": ["device"]})
    with pytest.raises(ValueError, match="no valid prior: metadata must be an object; got list"):
        TaskPrior.load(saved)


def test_a_model_records_the_checksum_of_the_file(prior, make_target, tmp_path):
    prior = replace(prior, classes=None, feature_names=None)
    prior.save(tmp_path / "p.npz")
    rewritten(tmp_path / "p.npz", {"metadata": {"device": "cap"}})
    loaded = pickle.loads(pickle.dumps(TaskPrior.load(tmp_path / "p.npz")))
    save_model(PosteriorBlendClassifier(loaded).fit(*make_target()), tmp_path / "m.json")
    digest = hashlib.sha256((tmp_path / "p.npz").read_bytes()).hexdigest()
    assert load_model(tmp_path / "m.json").prior_["sha256"] == digest


# -- damage ---------------------------------------------------------------------------------


def test_truncated_anywhere(saved):
    content = saved.read_bytes()
    for length in [*range(0, len(content), 37), len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"truncated or damaged|not a prior file"):
            TaskPrior.load(saved)


@pytest.mark.parametrize("kind", KINDS)
def test_altered_anywhere(make_kind, kind, tmp_path):
    prior, path = make_kind(kind), tmp_path / "prior.npz"
    prior.save(path)
    content = path.read_bytes()
    refused, places = 0, range(0, len(content), 7 if kind is TaskPrior else 61)
    for place in places:
        altered = bytearray(content)
        altered[place] ^= 0xFF
        path.write_bytes(altered)
        try:
            again = kind.load(path)
        except ValueError as refusal:
            assert str(path) in str(refusal)  # noqa: PT017
            refused += 1
        else:
            # Dates and other notes of the archive that carry nothing.
            assert again == prior
            assert again.feature_names == prior.feature_names
    assert refused > len(places) / 2


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update(direction_sum=-arrays["direction_sum"]),
        lambda arrays: arrays.update(direction_sum=arrays["direction_sum"][:, None]),
        lambda arrays: arrays.update(half_gap=arrays["half_gap"].view(np.uint8)),
        lambda arrays: arrays.update(half_gaps=arrays.pop("half_gap")),
        lambda arrays: arrays.update(more=np.ones(2)),
        lambda arrays: arrays.pop("card_md"),
    ],
    ids=["numbers", "shape", "type", "name", "more", "less"],
)
def test_altered_under_an_intact_archive(saved, change):
    arrays = arrays_of(saved)
    change(arrays)
    np.savez(saved, **arrays)
    with pytest.raises(ValueError, match="altered after it was saved: its checksum does not match"):
        TaskPrior.load(saved)


@pytest.mark.parametrize("version", [1, 2, 3, 5, "4", True, None])
def test_other_versions_are_refused(saved, version):
    rewritten(saved, {"version": version})
    with pytest.raises(ValueError, match=f"version {version!r} .* only version 4"):
        TaskPrior.load(saved)


@pytest.mark.parametrize("asked", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_another_kind(make_kind, kind, asked, tmp_path):
    if kind is asked:
        return
    make_kind(kind).save(tmp_path / "p.npz")
    other, mine = kind.__name__, asked.__name__
    message = rf"is the file of a {other}: its kind is not '{mine}'\. Read it with {other}\.load\."
    with pytest.raises(ValueError, match=message):
        asked.load(tmp_path / "p.npz")


@pytest.mark.parametrize("kind", ["ForestPrior", None, ["TaskPrior"]])
def test_a_kind_that_nobody_knows(saved, kind):
    rewritten(saved, {"kind": kind})
    with pytest.raises(ValueError, match="not a kind of prior"):
        TaskPrior.load(saved)


# -- malice ---------------------------------------------------------------------------------


class Bomb:
    """What runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_is_refused_and_not_run(tmp_path, kind):
    harm, path = tmp_path / "harm", tmp_path / "prior.npz"
    path.write_bytes(pickle.dumps(Bomb(harm)))
    message = f"is not a prior file; nothing in it was run or unpickled. .* {kind.__name__}.save"
    with pytest.raises(ValueError, match=message):
        kind.load(path)
    assert not harm.exists()
    # The bomb does go off in the hands of pickle, so that the test would notice.
    pickle.loads(path.read_bytes())
    assert harm.exists()


@pytest.mark.parametrize("where", ["direction_sum", "header", "extra"])
def test_arrays_of_objects_are_refused_and_not_run(saved, tmp_path, where):
    harm = tmp_path / "harm"
    arrays = arrays_of(saved)
    arrays[where] = np.array([Bomb(harm)], dtype=object)
    np.savez(saved, allow_pickle=True, **arrays)
    message = f"something other than numbers ({where} is of type '|O', neither '<f8' nor '|u1')"
    with pytest.raises(ValueError, match=re.escape(message)):
        TaskPrior.load(saved)
    assert not harm.exists()


@pytest.mark.parametrize("dtype", [">f8", "<f4", "<c16", "<i8", "|b1", "<U3", "<M8[s]", "|V8"])
def test_arrays_of_other_types(saved, dtype):
    rewritten(saved, extra=np.zeros(3, dtype=dtype))
    message = f"(extra is of type {dtype!r}, neither '<f8' nor '|u1'); nothing in it was run"
    with pytest.raises(ValueError, match=re.escape(message)):
        TaskPrior.load(saved)


def with_member(path, name, content, compression=zipfile.ZIP_STORED):
    """The file with one more member."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, content, compress_type=compression)


def npy(array, shape=None):
    """Bytes of an array, which may say that it has another shape."""
    stream = io.BytesIO()
    about = {"descr": array.dtype.str, "fortran_order": False, "shape": shape or array.shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    "name",
    [
        "readme.txt",
        "header",
        "../up.npy",
        "/etc/x.npy",
        "a//b.npy",
        "Header.npy",
        ".npy",
        "a\nb.npy",
    ],
)
def test_members_that_are_no_arrays(saved, name):
    with_member(saved, name, npy(np.ones(2)))
    with pytest.raises(ValueError, match=re.escape(f"than numbers ({name!r} is no array)")):
        TaskPrior.load(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_the_same_name(saved):
    with_member(saved, "direction_sum.npy", npy(np.ones(4)))
    with pytest.raises(ValueError, match=r"\(direction_sum is there twice\)"):
        TaskPrior.load(saved)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "EOF: reading magic string"),
        (b"hello, world", "the magic string is not correct"),
        (b"\x93NUMPY\x02\x00" + bytes(60), "extra is not in version 1.0 of numpy's format"),
        (b"\x93NUMPY\x01\x00" + bytes(60), "extra|header|Header"),
        (npy(np.ones(3))[:-1], r"does not have the numbers of its shape \(3,\)"),
        (npy(np.ones(3)) + b" ", r"does not have the numbers of its shape \(3,\)"),
        (npy(np.ones(3), (10**12,)), r"does not have the numbers of its shape \(1000000000000,\)"),
        (npy(np.ones(1), (-1, -1)), "can only specify one unknown dimension"),
    ],
)
def test_members_that_say_what_they_are_not(saved, content, reason):
    with_member(saved, "extra.npy", content)
    with pytest.raises(ValueError, match=f"something other than numbers .*{reason}"):
        TaskPrior.load(saved)


def test_arrays_in_the_order_of_fortran(prior, saved):
    arrays = arrays_of(saved)
    arrays["outer_sum"] = np.asfortranarray(arrays["outer_sum"])
    np.savez(saved, **arrays)
    assert TaskPrior.load(saved) == prior


def test_compressed_files_are_read(prior, saved):
    np.savez_compressed(saved, **arrays_of(saved))
    assert TaskPrior.load(saved) == prior


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_numpy_does_not_use(saved, method):
    with_member(saved, "extra.npy", npy(np.ones(2)), method)
    with pytest.raises(ValueError, match=r"\(extra is compressed in a way that numpy does not use"):
        TaskPrior.load(saved)


def refused_without_unpacking(path, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            TaskPrior.load(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4_000_000


def test_a_bomb_is_not_unpacked(saved):
    with_member(saved, "extra.npy", npy(np.zeros(2_000_000)), zipfile.ZIP_DEFLATED)
    size = saved.stat().st_size
    message = rf"has {size} bytes and would unpack to 160\d{{5}}; nothing in it was read"
    refused_without_unpacking(saved, message)


def test_a_bomb_that_says_it_is_small_is_not_unpacked(saved):
    content = npy(np.zeros(2_000_000))
    with_member(saved, "extra.npy", content, zipfile.ZIP_DEFLATED)
    # The size stands before the file and in the directory behind all of them.
    whole = saved.read_bytes()
    assert whole.count(len(content).to_bytes(4, "little")) == 2
    saved.write_bytes(whole.replace(len(content).to_bytes(4, "little"), bytes([200, 0, 0, 0])))
    refused_without_unpacking(saved, "is damaged or holds something other than numbers")


@pytest.mark.parametrize(
    "text", [b"{", b"[" * 200_000, b'{"a":' * 200_000, b"\xff\xfe", b"9" * 9999]
)
def test_header_that_cannot_be_read(saved, text):
    np.savez(saved, header=np.frombuffer(text, np.uint8), sha256=np.zeros(32, np.uint8))
    with pytest.raises(ValueError, match="was altered: its header cannot be read"):
        TaskPrior.load(saved)


# -- other content --------------------------------------------------------------------------


def test_other_archives_are_not_priors(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, direction_sum=np.ones(3))
    with pytest.raises(ValueError, match="not a prior file: it has no header and checksum"):
        TaskPrior.load(path)
    for content in (b"", b"hello", b"[]"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a prior file; nothing in it was run"):
            TaskPrior.load(path)


@pytest.mark.parametrize("name", ["something", ["crossfade-prior"], None, "crossfade-model"])
def test_other_formats_are_not_priors(saved, name):
    rewritten(saved, {"format": name})
    with pytest.raises(ValueError, match="not a prior file: its format is not 'crossfade-prior'"):
        TaskPrior.load(saved)


@pytest.mark.parametrize(
    ("header", "arrays", "reason"),
    [
        ({}, {"direction_sum": None}, "the field 'direction_sum' is missing"),
        ({}, {"feature_scale": None}, "the field 'feature_scale' is missing"),
        ({}, {"direction_sum": np.ones(3)}, "feature_names must be 3 names; got 4"),
        ({}, {"direction_sum": np.ones((4, 4))}, "feature_names must be 16 names; got 4"),
        ({}, {"direction_sum": np.full(4, 9.0)}, "longer than 6 unit directions"),
        ({}, {"outer_sum": np.ones((3, 4))}, r"outer_sum must be of shape \(4, 4\)"),
        (
            {},
            {"outer_sum": np.diag([9.0, -1.0, -1.0, -1.0])},
            "outer_sum must have no negative eigen",
        ),
        (
            {},
            {"within_covariance": np.triu(np.ones((4, 4)))},
            "within_covariance must be symmetric",
        ),
        ({}, {"feature_scale": np.zeros(4)}, "feature_scale must be 4 positive numbers"),
        ({}, {"within_covariance": np.ones(4)}, "within_covariance must"),
        ({}, {"half_gap": np.full(4, np.nan)}, "half_gap must be finite"),
        ({"n_tasks": 0}, {}, "n_tasks must be a whole number of at least 1; got 0"),
        ({"n_tasks": "six"}, {}, "n_tasks must be a whole number"),
        ({"n_tasks": None}, {}, "n_tasks must be a whole number"),
        ({"n_tasks": 10**400}, {}, "n_tasks must be a whole number of at most"),
        ({"classes": [1]}, {}, "classes must be two different labels in sorted order"),
        ({"classes": 7}, {}, "classes must be two different labels in sorted order"),
        ({"feature_names": ["only one"]}, {}, "feature_names must be 4 names; got 1"),
        ({"about": ["made by us"]}, {}, "about must be a mapping of text to text; got list"),
        ({"about": {"made_by": 7}}, {}, "about must be a mapping of text to text; got 'made_by'"),
        ({"about": None}, {}, "about must be a mapping of text to text; got NoneType"),
        ({"scale_learnt": None}, {}, "scale_learnt must be True or False; got None"),
        ({"summarised": 0}, {}, "summarised must be True or False; got 0"),
        ({"release": {"epsilon": 1.0}}, {}, "missing 3 required positional arguments"),
        ({}, {"classes.first": np.ones(2)}, "classes must be an object; got list"),
    ],
)
def test_contents_that_cannot_be_a_prior(saved, header, arrays, reason):
    rewritten(saved, header, **arrays)
    message = rf"prior\.npz holds no valid prior: .*{reason}.* Ask for a file that TaskPrior\.save"
    with pytest.raises(ValueError, match=message):
        TaskPrior.load(saved)


@pytest.mark.parametrize(
    ("kind", "header", "arrays", "reason"),
    [
        (MulticlassPrior, {"pairs": None}, {}, "'NoneType' object is not iterable"),
        (
            MulticlassPrior,
            {"pairs": []},
            {},
            "pairs must be those of two classes or more; got none",
        ),
        (MulticlassPrior, {"pairs": [["class 0", "class 9"]]}, {}, "priors must be those of pairs"),
        (MulticlassPrior, {"priors": [1, 2]}, {}, "priors must be an object; got list"),
        (MulticlassPrior, {"strategy": "all"}, {}, "strategy must be one of"),
        (MulticlassPrior, {}, {"priors.1.direction_sum": None}, "'direction_sum' is missing"),
    ],
)
def test_contents_that_cannot_be_a_prior_of_priors(
    make_kind, kind, header, arrays, reason, tmp_path
):
    make_kind(kind).save(tmp_path / "p.npz")
    rewritten(tmp_path / "p.npz", header, **arrays)
    message = rf"holds no valid prior: .*{reason}.* Ask for a file that {kind.__name__}\.save wrote"
    with pytest.raises(ValueError, match=message):
        kind.load(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("kind", "field"),
    [(MulticlassPrior, "pairs"), (MulticlassPrior, "0")],
)
def test_fields_that_are_missing(make_kind, kind, field, tmp_path):
    path = tmp_path / "p.npz"
    make_kind(kind).save(path)
    header, arrays = header_of(path), arrays_of(path)
    (header["priors"] if field == "0" else header).pop(field)
    kept = {
        name: array
        for name, array in arrays.items()
        if name not in ("header", "sha256") and field not in name.split(".")
    }
    write_archive(path, header, kept)
    with pytest.raises(ValueError, match=f"no valid prior: the field '{field}' is missing. Ask"):
        kind.load(path)


# -- writing --------------------------------------------------------------------------------


def test_missing_file_and_folder(prior, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        TaskPrior.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match=r"There is no folder"):
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


def make_node(path, kind):
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("making a device takes a permission")


@pytest.mark.skipif(os.name != "posix", reason="nodes of POSIX")
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a socket", "a device"])
def test_only_files_are_replaced(prior, kind, linked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    node = tmp_path / "node"
    make_node(node, kind)
    before = node.stat()
    (tmp_path / "link").symlink_to(node)
    message = rf"node is {kind}, and is not replaced by a file\. Give another name"
    with pytest.raises(FileExistsError, match=message):
        prior.save("link" if linked else node)
    assert (node.stat().st_ino, node.stat().st_mode) == (before.st_ino, before.st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"link", "node"}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_follow_the_umask(saved, make_prior):
    umask = os.umask(0)
    os.umask(umask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~umask
