"""Pickles by both Pythons: arrays as they were written, and hostile files that run nothing."""

import functools
import os
import pickle

import numpy as np
import pytest

from crossfade.datasets import load_arrays


def by_python_2(value, protocol):
    """What Python 2 and its numpy write for dictionaries, strings and arrays."""
    text = protocol == 0

    def string(raw):
        if text:
            return b"S" + repr(raw)[1:].encode() + b"\n"
        return b"T" + len(raw).to_bytes(4, "little") + raw

    def number(n):
        return b"I%d\n" % n if text else b"J" + n.to_bytes(4, "little", signed=True)

    def write(one):
        if isinstance(one, dict):
            items = [string(key.encode()) + write(item) + b"s" for key, item in one.items()]
            return (b"(d" if text else b"}") + b"".join(items)
        if isinstance(one, str):
            return string(one.encode())
        kind = one.dtype.str
        return b"".join(
            [
                b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(",
                number(0) + b"t" + string(b"b") + b"tR(" + number(1) + b"(",
                *(number(n) for n in one.shape),
                b"tcnumpy\ndtype\n(" + string(kind[1:].encode()) + number(0) + number(1) + b"tR(",
                number(3) + string(kind[:1].encode()) + b"NNN" + number(-1) + number(-1),
                number(0) + b"tb" + number(0) + string(one.tobytes()) + b"tb",
            ]
        )

    return (b"" if text else b"\x80\x02") + write(value) + b"."


def by_python_3(value, protocol):
    more = {"one": np.float64(2.5), "list": [1, None, True, 10**12], "pair": (b"x", "é")}
    return pickle.dumps(value | more, protocol)


@pytest.mark.parametrize(
    ("write", "protocol"),
    [(by_python_2, 0), (by_python_2, 2), *((by_python_3, n) for n in range(6))],
)
def test_arrays_are_read_as_they_were_written(tmp_path, write, protocol):
    rng = np.random.default_rng(0)
    tree = {
        "signal": {"ECG": rng.normal(size=(700, 1)), "Temp": rng.normal(size=9).astype("f4")},
        "label": np.arange(100, dtype=np.int32),
        "bytes": np.array([1, 2, 10, 13, 39, 92], dtype=np.uint8),
        "order": np.arange(5, dtype=">i2"),
        "none": np.zeros((0, 3)),
        "subject": "S2",
    }
    if write is by_python_3:
        tree["signal"]["ACC"] = np.asfortranarray(rng.normal(size=(70, 3)))
    path = tmp_path / "S2.pkl"
    path.write_bytes(write(tree, protocol))
    places = [("signal", name) for name in tree["signal"]]
    places += [("label",), ("bytes",), ("order",), ("none",)]
    for place, found in zip(places, load_arrays(path, *places), strict=True):
        wanted = functools.reduce(lambda part, key: part[key], place, tree)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype.newbyteorder("=") == wanted.dtype.newbyteorder("=")


# -- hostile files --------------------------------------------------------------------------------


class Reduced:
    """Pickled as the call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def numpy_load(mark):
    inner = mark.with_name("inner.npy")
    np.save(inner, np.array([Reduced(os.mkdir, str(mark))], dtype=object), allow_pickle=True)
    return pickle.dumps(Reduced(np.load, str(inner), None, True))


def dotted_name(mark):
    path = str(mark).encode()
    array, name = pickle.dumps(np.arange(3.0), 4)[2:-1], b"\x8c\x05numpy\x8c\x0endarray.tofile\x93"
    return b"\x80\x04" + name + b"(" + array + b"\x8c" + len(path).to_bytes(1) + path + b"tR."


#: Each makes a folder or a file if it runs.
HOSTILE = {
    "eval": lambda mark: pickle.dumps(Reduced(eval, f"open({str(mark)!r}, 'w').close()"), 0),
    "system": lambda mark: pickle.dumps(Reduced(os.system, f'mkdir "{mark}"')),
    "object array": lambda mark: pickle.dumps(
        {"label": np.array([Reduced(os.mkdir, str(mark))], dtype=object)}
    ),
    "numpy.load": numpy_load,
    "dotted name": dotted_name,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_run_nothing(tmp_path, name):
    mark, path = tmp_path / "mark", tmp_path / "S2.pkl"
    path.write_bytes(HOSTILE[name](mark))
    with pytest.raises(ValueError, match="nothing in it was run"):
        load_arrays(path, ["label"])
    assert not mark.exists()
    # The file is hostile indeed: Python's own reader runs it.
    pickle.loads(path.read_bytes(), encoding="latin1")
    assert mark.exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"no pickle at all", b"\x80\x04", b"I1\n.", b"(dS'labels'\nI1\ns.", b"(d(tI1\ns."],
)
def test_damaged_files_are_refused(tmp_path, content):
    path = tmp_path / "S2.pkl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"S2\.pkl"):
        load_arrays(path, ["label"])
