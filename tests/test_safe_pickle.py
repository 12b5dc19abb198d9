"""Pickles by both Pythons: arrays as they were written, and hostile files that run nothing."""

import contextlib
import copyreg
import functools
import os
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfade.datasets._safe_pickle import load_arrays

LABEL = {"label": ["label"]}


def by_python_2(value, protocol):
    """What Python 2 and its numpy write for dictionaries, strings and arrays, by hand."""
    text = protocol == 0

    def string(raw):
        if text:
            return b"S" + repr(raw)[1:].encode() + b"\n"
        if len(raw) < 256:
            return b"U" + len(raw).to_bytes(1) + raw
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


@pytest.fixture
def tree():
    rng = np.random.default_rng(0)
    return {
        "signal": {
            "chest": {
                "ECG": rng.normal(size=(700, 1)),
                "ACC": rng.normal(size=(700, 3)),
                "Temp": rng.normal(size=(700, 1)).astype(np.float32),
            }
        },
        "label": np.repeat(np.arange(7), 100).astype(np.int32),
        "few": np.array([1, 2, 10, 13, 39, 92], dtype=np.uint8),
        "none": np.zeros((0, 3)),
        "subject": "S2",
    }


WANTED = {
    "ecg": ("signal", "chest", "ECG"),
    "acc": ("signal", "chest", "ACC"),
    "temperature": ("signal", "chest", "Temp"),
    "label": ("label",),
    "few": ("few",),
    "none": ("none",),
}


def check(found, tree):
    for name, keys in WANTED.items():
        wanted = functools.reduce(lambda part, key: part[key], keys, tree)
        np.testing.assert_array_equal(found[name], wanted)
        assert found[name].dtype == wanted.dtype


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_python_3_writes_is_read(tree, tmp_path, protocol):
    tree["signal"]["chest"]["ACC"] = np.asfortranarray(tree["signal"]["chest"]["ACC"])
    tree |= {"one": np.float64(2.5), "list": [1, -2.5, None, True, 10**12], "pair": (b"x", "é")}
    path = tmp_path / "S2.pkl"
    path.write_bytes(pickle.dumps(tree, protocol))
    check(load_arrays(path, WANTED), tree)
    assert load_arrays(path, {"one": ["one"]})["one"] == 2.5


@pytest.mark.parametrize("protocol", [0, 2])
def test_what_python_2_writes_is_read(tree, tmp_path, protocol):
    path = tmp_path / "S2.pkl"
    path.write_bytes(by_python_2(tree, protocol))
    # That this is a pickle at all is for Python's own reader to say.
    own = pickle.loads(path.read_bytes(), encoding="latin1")
    np.testing.assert_array_equal(own["signal"]["chest"]["ECG"], tree["signal"]["chest"]["ECG"])
    check(load_arrays(path, WANTED), tree)


def test_other_byte_orders_are_kept(tmp_path):
    path = tmp_path / "S2.pkl"
    path.write_bytes(pickle.dumps({"label": np.arange(5, dtype=">i2")}))
    np.testing.assert_array_equal(load_arrays(path, LABEL)["label"], np.arange(5))


# -- hostile -------------------------------------------------------------------------------


class Reduced:
    """Pickled as the call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def code_for(mark):
    return f"open({str(mark)!r}, 'w').close()"


def numpy_load(mark):
    inner = mark.with_name("inner.npy")
    np.save(inner, np.array([Reduced(eval, code_for(mark))], dtype=object), allow_pickle=True)
    return pickle.dumps(Reduced(np.load, str(inner), None, True))


def dotted_name(mark):
    array = pickle.dumps(np.arange(3.0), 4)[2:-1]
    path = str(mark).encode()
    name = b"\x8c\x05numpy\x8c\x0endarray.tofile\x93"
    return b"\x80\x04" + name + b"(" + array + b"\x8c" + len(path).to_bytes(1) + path + b"tR."


#: Each leaves a mark on the disk if it runs.
HOSTILE = {
    "eval": lambda mark: pickle.dumps(Reduced(eval, code_for(mark))),
    "eval, text": lambda mark: pickle.dumps(Reduced(eval, code_for(mark)), 0),
    "system": lambda mark: pickle.dumps(Reduced(os.system, f'echo x > "{mark}"')),
    "in containers": lambda mark: pickle.dumps(
        {"label": np.arange(3), "signal": {"chest": [(1, {"ECG": Reduced(eval, code_for(mark))})]}}
    ),
    "partial": lambda mark: pickle.dumps(
        {"label": [Reduced(functools.partial(eval, code_for(mark)))]}
    ),
    "object array": lambda mark: pickle.dumps(
        {"label": np.array([Reduced(eval, code_for(mark))], dtype=object)}
    ),
    "numpy.load": numpy_load,
    "dotted name": dotted_name,
    "instance": lambda mark: b"(S" + repr(code_for(mark)).encode() + b"\nibuiltins\neval\n.",
    "object": lambda mark: b"(cbuiltins\neval\nS" + repr(code_for(mark)).encode() + b"\no.",
    "after an array": lambda mark: (
        pickle.dumps({"label": np.arange(3)}, 2)[:-1]
        + b"0"
        + pickle.dumps(Reduced(eval, code_for(mark)), 2)
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_run_nothing(tmp_path, name):
    mark, path = tmp_path / "mark", tmp_path / "S2.pkl"
    path.write_bytes(HOSTILE[name](mark))
    with pytest.raises(ValueError, match=r"S2\.pkl cannot be read.*nothing of the file was run"):
        load_arrays(path, LABEL)
    assert not mark.exists()
    # The file is hostile indeed: Python's own reader runs it.
    pickle.loads(path.read_bytes(), encoding="latin1")
    assert mark.exists()


def test_refusals_name_what_was_asked_for(tmp_path):
    path = tmp_path / "S2.pkl"
    for function, name in ((eval, "builtins.eval"), (os.system, f"{os.name}.system")):
        path.write_bytes(pickle.dumps(Reduced(function, "1")))
        with pytest.raises(ValueError, match=f"asks for '{name}'"):
            load_arrays(path, LABEL)


def test_registered_extensions_are_refused(tmp_path):
    path, mark = tmp_path / "S2.pkl", tmp_path / "mark"
    copyreg.add_extension("builtins", "eval", 240)
    try:
        path.write_bytes(pickle.dumps(Reduced(eval, code_for(mark)), 2))
        with pytest.raises(ValueError, match=r"instruction b'\\x82'.*nothing of the file was run"):
            load_arrays(path, LABEL)
    finally:
        copyreg.remove_extension("builtins", "eval", 240)
    assert not mark.exists()


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
KIND = b"cnumpy\ndtype\n(S'f8'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"ends in the middle"),
        (b"\x80\x04", r"ends in the middle"),
        (b"PSome id\n.", r"instruction b'P'"),
        (b"I1\nQ.", r"instruction b'Q'"),
        (b"\x97.", r"instruction b'\\x97'"),
        (b"no pickle at all", r"instruction b'n'"),
        (RECONSTRUCT + b"(dS'__defaults__'\n(I1\ntsb.", r"changes function"),
        (b"c_codecs\nencode\n(dS'__defaults__'\n(S'zip'\ntsb.", r"changes function"),
        (b"c_codecs\nencode\n(S'x'\nS'zip'\ntR.", r"another encoding than latin1"),
        (b"cnumpy\nndarray\n(I1000000000000\ntR.", r"calls what numpy only mentions"),
        (b"c__builtin__\nbytes\n(I1000000000000\ntR.", r"argument"),
        (b"cnumpy\ndtype.fields\n.", r"asks for 'numpy\.dtype\.fields'"),
        (b"cnumpy.core.multiarray\nfromfile\n.", r"asks for 'numpy\.core\.multiarray\.fromfile'"),
        (b"S'x'\n(tR.", r"do not fit together \('str' object is not callable"),
        (RECONSTRUCT + b"I1\nR.", r"do not fit together \(.*must be an iterable, not int"),
        (b"I1\nI2\na.", r"do not fit together \('int' object has no attribute 'append'"),
        (RECONSTRUCT + b"I1\nI2\ns.", r"do not fit together \('function' .* item assignment"),
        (b"(d(tI1\ns.", r"dictionary with tuple for a key"),
        (b"I1\n.", r"it has no 'label'; found int"),
        (b"(dS'labels'\nI1\nsS'a'\nNs.", r"it has no 'label'; found \['a', 'labels'\]"),
        (b"(dS'label'\nI1\ns.", r"it\['label'\] is no array; found int"),
        (b"(dS'label\nI1\ns.", r"string without quotes"),
        (b"T\xff\xff\xff\xff.", r"ends in the middle"),
        (b"B\xff\xff\xff\x7f.", r"ends in the middle"),
        (b"S'" + 9000 * b"x", r"ends in the middle"),
        (b"I" + 9000 * b"1" + b"\n.", r"line that does not end"),
        (b"g7\n.", r"cannot be read"),
        (b"0.", r"cannot be read"),
        (b"]" * 100_001, r"more than 100000 parts"),
        (b"(dS'label'\n" + RECONSTRUCT + b"(tRs.", r"NoneType for the bytes of an array"),
        (
            b"(dS'label'\n" + RECONSTRUCT + b"(tR(I1\n(I9999999999\nt" + KIND + b"I0\nS'x'\ntbs.",
            r"array of shape \(9999999999,\) with 1 bytes",
        ),
        (
            RECONSTRUCT + b"(tR(I1\n(I-1\nt" + KIND + b"I0\nS''\ntb.",
            r"type or shape is not as numpy writes",
        ),
        (
            RECONSTRUCT + b"(tR(I1\n(" + 33 * b"I1\n" + b"t" + KIND + b"I0\nS''\ntb.",
            r"type or shape is not as numpy writes",
        ),
        (RECONSTRUCT + b"(tR(I1\n(tS'f8'\nI0\nS''\ntb.", r"type or shape is not as numpy writes"),
        (
            RECONSTRUCT + b"(tR(I1\n(tcnumpy\ndtype\n(S'O8'\nI0\nI1\ntRI0\nS''\ntb.",
            r"arrays of type 'O8' are not admitted.*nothing of the file was run",
        ),
        (
            b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR(I3\nS'|'\nN(S'a'\ntNI8\nI1\nI0\ntb.",
            r"arrays of records",
        ),
    ],
)
def test_damaged_and_strange_files_are_refused(tmp_path, content, message):
    path = tmp_path / "S2.pkl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as refusal:
        load_arrays(path, LABEL)
    assert "S2.pkl cannot be read as a pickle of arrays: " in str(refusal.value)


HUGE = (2**62).to_bytes(8, "little")


@pytest.mark.parametrize(
    "content",
    [
        # Five bytes after the N, for which Python's own unpickler allocates 64 GB.
        pytest.param(b"Nr\xff\xff\xff\xff.", id="memo"),
        pytest.param(b"Np4294967295\n.", id="memo, text"),
        pytest.param(b"\x8b\xff\xff\xff\x7f.", id="number"),
        pytest.param(b"\x8e" + HUGE + b".", id="bytes"),
        pytest.param(b"\x8d" + HUGE + b".", id="text"),
        pytest.param(b"\x96" + HUGE + b".", id="bytearray"),
        pytest.param(b"\x80\x04\x95" + HUGE + b".", id="frame"),
        pytest.param(
            RECONSTRUCT + b"(cnumpy\nndarray\n(I1000000000000\ntS'd'\ntR.", id="empty array"
        ),
        pytest.param(
            b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'V2000000000'\nI0\nI1\ntRtR.",
            id="scalar",
        ),
        pytest.param(RECONSTRUCT + b"(I1000000000000\nu.", id="item"),
        pytest.param(b"(d)" + 60_000 * b"\x85" + b"Ns.", id="deep key"),
        pytest.param(b"l(" + 60 * b"(l2(ll" + b".", id="nested"),
    ],
)
def test_small_files_take_little_memory(tmp_path, content):
    path = tmp_path / "S2.pkl"
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ValueError, match="cannot be read as a pickle of arrays"):
        load_arrays(path, LABEL)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 + 100 * len(content)


def test_nothing_of_this_module_is_changed_by_a_file(tmp_path):
    path = tmp_path / "S2.pkl"
    state = b"N(dS'__defaults__'\n(S'zip'\ntst"
    path.write_bytes(b"c_codecs\nencode\n(" + state + b"b.")
    with pytest.raises(ValueError, match="changes function"):
        load_arrays(path, LABEL)
    path.write_bytes(pickle.dumps({"label": np.arange(3.0)}, 2))
    np.testing.assert_array_equal(load_arrays(path, LABEL)["label"], np.arange(3.0))


@given(data=st.data())
def test_damage_leads_to_refusals_and_nothing_else(tmp_path_factory, data):
    protocol = data.draw(st.sampled_from(["python 2", *range(pickle.HIGHEST_PROTOCOL + 1)]))
    whole = {"label": np.arange(100.0), "x": {"y": [1, "z", None]}}
    written = (
        by_python_2({"label": whole["label"], "x": {"y": "z"}}, 0)
        if protocol == "python 2"
        else pickle.dumps(whole, protocol)
    )
    content = bytearray(written)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, min(len(content), 250) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.mktemp("damaged") / "S2.pkl"
    path.write_bytes(content)
    # Anything else that is raised fails the test.
    with contextlib.suppress(ValueError):
        assert isinstance(load_arrays(path, LABEL)["label"], np.ndarray)


@pytest.mark.parametrize(
    ("write", "protocol"),
    [(by_python_2, 0), (by_python_2, 2), (pickle.dumps, 0), (pickle.dumps, 2), (pickle.dumps, 5)],
)
def test_what_is_not_wanted_is_not_in_memory(tmp_path, write, protocol):
    path = tmp_path / "S2.pkl"
    large = np.zeros(1_000_000)
    path.write_bytes(write({"large": large, "label": np.arange(1000)}, protocol))
    tracemalloc.start()
    load_arrays(path, LABEL)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < large.nbytes / 2
