"""Sums by their declaration, and the file of a prior: equal after a round trip, and never run."""

import hashlib
import io
import json
import os
import pickle
import re
import tracemalloc
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from crossfade import TaskPrior
from crossfade.prior import Sums, summed

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def prior(make_tasks):
    names = ["θ", "alpha", "b e t a", "γ"]
    tasks = make_tasks(labels=("rest", "task"), feature_names=names)
    return TaskPrior.from_tasks(tasks).annotated(made_by="Lab A")


@pytest.fixture
def saved(prior, tmp_path):
    path = tmp_path / "prior.npz"
    prior.save(path)
    return path


def arrays_of(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def rewritten(path, header=None, **changes):
    """The file with some fields and arrays replaced or left out (None), under a valid checksum."""
    arrays = arrays_of(path) | changes
    fields = json.loads(arrays.pop("header").tobytes())
    for name, value in (header or {}).items():
        place = fields
        *inside, last = name.split(".")
        for step in inside:
            place = place[step]
        place[last] = value
    del arrays["sha256"]
    arrays = {name: one for name, one in arrays.items() if one is not None}
    text = json.dumps(fields, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    content = {"header": text.encode(), "sha256": digest.digest()}
    content = {name: np.frombuffer(part, np.uint8) for name, part in content.items()}
    np.savez(path, **content, **arrays)


def refused(path, word):
    with pytest.raises(ValueError, match=word) as caught:
        TaskPrior.load(path)
    assert str(path) in str(caught.value)


def test_a_declaration_is_all_that_a_new_kind_of_sums_needs(make_tasks, tmp_path):
    @dataclass(frozen=True, eq=False)
    class Blinks(Sums, name="blinks"):
        n_people: float = summed(of="people")
        count: np.ndarray = summed("d", of="blinks in each feature")  # noqa: RUF009
        products: np.ndarray | None = summed(  # noqa: RUF009
            "Kd", "Kd", of="products", default=None, semidefinite=True
        )

    def holding(prior, **arrays):
        return replace(prior, sums={**prior.sums, "blinks": Blinks(3.0, **arrays)})

    one, other = (
        TaskPrior.from_tasks(tasks, feature_scale=None, rehearse=False)
        for tasks in (make_tasks(6)[:3], make_tasks(6)[3:])
    )
    first = holding(one, count=np.arange(4.0), products=np.eye(8))
    second = holding(other, count=np.ones(4))
    both = first + second
    assert both.holds == ("directions", "class_means", "blinks")
    assert both.sums["blinks"].n_people == 6.0
    np.testing.assert_array_equal(both.sums["blinks"].count, np.arange(4.0) + 1.0)
    assert both.sums["blinks"].products is None
    left = both.sums["blinks"] - second.sums["blinks"]
    np.testing.assert_array_equal(left.count, np.arange(4.0))
    np.testing.assert_array_equal((left * 0.5).count, np.arange(4.0) / 2.0)
    for prior in (first, both):
        prior.save(tmp_path / "prior.npz")
        again = TaskPrior.load(tmp_path / "prior.npz")
        assert again == prior
        assert again != (one if prior is first else one + other)
    for changes, word in (
        ({"blinks/count": np.ones(3)}, "shape"),
        ({"blinks/count": np.full(4, np.nan)}, "finite"),
        ({"blinks/products": -np.eye(8)}, "negative"),
        ({"blinks/n_people": None}, "n_people"),
    ):
        first.save(tmp_path / "prior.npz")
        rewritten(tmp_path / "prior.npz", **changes)
        refused(tmp_path / "prior.npz", word)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("rest", "task"), (-1.0, 2.0)])
@pytest.mark.parametrize("isotropic", [False, True])
def test_round_trip(make_tasks, tmp_path, labels, isotropic):
    prior = TaskPrior.from_tasks(make_tasks(labels=labels), isotropic=isotropic, rehearse=False)
    prior.save(tmp_path / "p.npz")
    again = TaskPrior.load(str(tmp_path / "p.npz"))
    assert again == prior
    assert again.origin.builds == prior.origin.builds
    assert [type(name) for name in again.classes] == [type(name) for name in labels]
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "p.npz").read_bytes()


def test_all_that_a_prior_says_comes_back(prior, saved):
    again = TaskPrior.load(saved)
    assert again == prior
    assert again.about == {"made_by": "Lab A"}
    assert again.forecast_records == prior.forecast_records
    with pytest.raises(ValueError, match="read-only"):
        again.directions.direction[0] = 1.0


def test_the_page_on_the_file_reads_it(prior, saved, monkeypatch, capsys):
    text = (ROOT / "docs/sharing.md").read_text(encoding="utf-8")
    *_, code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(saved.parent)
    exec(code, {})
    assert capsys.readouterr().out == f"6 tasks, agreement R = {prior.resultant_length:.3f}\n"


def test_arrays_may_be_compressed_or_in_the_order_of_fortran(prior, saved):
    arrays = arrays_of(saved)
    arrays["directions/outer"] = np.asfortranarray(arrays["directions/outer"])
    np.savez_compressed(saved, **arrays)
    assert TaskPrior.load(saved) == prior


def test_truncated_anywhere(saved):
    content = saved.read_bytes()
    for length in [*range(0, len(content), 97), len(content) - 1]:
        saved.write_bytes(content[:length])
        refused(saved, "damaged")


class Bomb:
    """What runs when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickles_are_refused_and_not_run(saved, tmp_path):
    harm = tmp_path / "harm"
    arrays = arrays_of(saved)
    for name in ("directions/outer", "header", "extra"):
        np.savez(saved, allow_pickle=True, **arrays | {name: np.array([Bomb(harm)], object)})
        refused(saved, "damaged")
    saved.write_bytes(pickle.dumps(Bomb(harm)))
    refused(saved, "damaged")
    assert not harm.exists()


def with_member(path, name, content, compression=zipfile.ZIP_STORED):
    """Add a member to the file."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, content, compress_type=compression)


def npy(array, shape=None):
    """Bytes of an array, which may say that it has another shape."""
    stream = io.BytesIO()
    about = {"descr": array.dtype.str, "fortran_order": False, "shape": shape or array.shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue() + array.tobytes()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("readme.txt", b"hello"),
        ("feature_scale.npy", npy(np.ones(4))),
        ("extra.npy", b""),
        ("extra.npy", npy(np.ones(3, np.float32))),
        ("extra.npy", npy(np.ones(3), (10**12,))),
        ("extra.npy", npy(np.ones(3))[:-1]),
        ("extra.npy", npy(np.ones(3))),
    ],
)
def test_members_that_do_not_belong_there(saved, name, content):
    with_member(saved, name, content)
    refused(saved, "damaged|altered")


@pytest.mark.parametrize("hidden", [False, True])
def test_a_bomb_is_not_unpacked(saved, hidden):
    content = npy(np.zeros(2_000_000))
    with_member(saved, "extra.npy", content, zipfile.ZIP_DEFLATED)
    if hidden:
        # The size stands before the file and in the directory behind all of them.
        whole, size = saved.read_bytes(), len(content).to_bytes(4, "little")
        saved.write_bytes(whole.replace(size, bytes([200, 0, 0, 0])))
    tracemalloc.start()
    try:
        refused(saved, "damaged")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4_000_000


@pytest.mark.parametrize("text", [b"{", b"[" * 200_000, b"\xff\xfe", b"9" * 9999, b"7", b"{}"])
def test_headers_that_cannot_be_read(saved, text):
    np.savez(saved, header=np.frombuffer(text, np.uint8), sha256=np.zeros(32, np.uint8))
    refused(saved, "damaged")


@pytest.mark.parametrize(
    ("header", "arrays", "word"),
    [
        ({"version": 3}, {}, "another version"),
        ({"version": "4"}, {}, "another version"),
        ({"format": "crossfade-model"}, {}, "not a prior"),
        ({}, {"feature_scale": None}, "feature_scale"),
        ({}, {"feature_scale": np.zeros(4)}, "positive"),
        ({}, {"directions/direction": np.ones(3)}, "shape"),
        ({}, {"directions/direction": np.full(4, 9.0)}, "unit vectors"),
        ({}, {"directions/outer": np.diag([9.0, -1.0, -1.0, -1.0])}, "negative"),
        ({}, {"directions/within": np.triu(np.ones((4, 4)))}, "symmetric"),
        ({}, {"directions/within": np.full((4, 4), np.nan)}, "finite"),
        ({}, {"directions/n_tasks": np.array(0.0)}, "unit vectors"),
        ({}, {"class_means/n_people": np.array(0.0)}, "people"),
        ({}, {"class_means/mean_sum": np.full(8, 1e300)}, "large"),
        ({}, {"forecast_records.posterior/sums": -np.ones((9, 9, 6))}, "forecasts"),
        ({}, {"unknown/sums": np.ones(4)}, "unknown"),
        ({"space.classes": [1]}, {}, "classes"),
        ({"space.classes": 7}, {}, "valid"),
        ({"space.feature_names": ["only one"]}, {}, "feature_names"),
        ({"space": None}, {}, "valid"),
        ({"origin.about": {"made_by": 7}}, {}, "about"),
        ({"origin.release": {"epsilon": 1.0}}, {}, "valid"),
        ({"origin": {}}, {}, "builds|scale_learnt|release"),
    ],
)
def test_contents_that_cannot_be_a_prior(saved, header, arrays, word):
    rewritten(saved, header, **arrays)
    refused(saved, word)


def test_a_file_is_written_whole_or_not_at_all(prior, saved, make_prior, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as full:
        full.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            make_prior().save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["prior.npz"]
    make_prior().save(saved)
    assert TaskPrior.load(saved) == make_prior()
    with pytest.raises(FileNotFoundError):
        TaskPrior.load(saved.with_name("none.npz"))
    with pytest.raises(FileNotFoundError):
        prior.save(saved.parent / "no" / "folder.npz")
