"""Arrays of a pickle, by an unpickler that runs nothing and whose memory is bounded by the file.

A pickle is a program. Overriding :meth:`pickle.Unpickler.find_class`, as Python's documentation
advises, keeps it from calling what it likes, but not from taking memory: with the C unpickler five
bytes that remember something under the number 2^32 - 1 allocate 64 GB, and an admitted
``numpy.core.multiarray._reconstruct`` allocates whatever shape it is given. So this is a subclass
of the unpickler in Python, whose memo is a dictionary, with three restrictions:

- of its instructions it keeps those that containers and numpy's arrays are written with;
- the names it admits stand for code of this module, which only takes notes of an array;
- strings of more than 256 bytes stay in the file until their array is asked for, so that a
  gigabyte of recordings takes the memory of one channel.
"""

from __future__ import annotations

import codecs
import math
import os
import pickle
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Recordings take some hundred reads; a file of a million small lists is a trap.
_MOST_READS = 100_000
#: Longer strings stay in the file; names of functions and keys of containers are shorter.
_LONGEST_NAME = 256
_MOST_AXES = 32
_BLOCK = 1 << 20
_NUMBERS = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")
_NOTHING_RUN = "refused, and nothing of the file was run"
#: What Python raises at instructions that do not fit together.
_DAMAGE = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error),
    *(pickle.UnpicklingError, DeprecationWarning),  # of an escape, where warnings are errors
)


def load_arrays(
    path: str | os.PathLike[str], wanted: Mapping[str, Sequence[str]]
) -> dict[str, NDArray[Any]]:
    """Arrays by name, of a pickle by Python 2 or 3 whose dictionaries have the keys wanted."""
    try:
        with open(path, "rb") as stream:
            tree = _Unpickler(stream).load()
            return {name: _array_at(tree, keys, stream) for name, keys in wanted.items()}
    except _DAMAGE as reason:
        text = str(reason).rstrip(".")
        if not isinstance(reason, ValueError):
            text = f"its instructions do not fit together ({text})"
        raise ValueError(f"{path} cannot be read as a pickle of arrays: {text}.") from reason


def _array_at(tree: object, keys: Sequence[str], stream: BinaryIO) -> NDArray[Any]:
    where = "it"
    for key in keys:
        if not isinstance(tree, dict) or key not in tree:
            found = sorted(map(str, tree))[:10] if isinstance(tree, dict) else type(tree).__name__
            raise ValueError(f"{where} has no {key!r}; found {found}")
        tree = tree[key]
        where += f"[{key!r}]"
    if not isinstance(tree, _Array):
        raise ValueError(f"{where} is no array; found {type(tree).__name__}")
    return tree.read(stream)


class _Passage(NamedTuple):
    """A long string that was left in the file: where it is, and how it is written."""

    place: int
    length: int
    encoding: str | None

    def read(self, stream: BinaryIO) -> str | bytes:
        stream.seek(self.place)
        return _decode(stream.read(self.length), self.encoding)


def _decode(raw: bytes, encoding: str | None) -> str | bytes:
    if encoding == "quoted":
        if len(raw) < 2 or raw[0] != raw[-1] or raw[0] not in b"'\"":
            raise ValueError("it has a string without quotes")
        # What Python's own unpickler takes for this; it only knows backslashes.
        raw, encoding = codecs.escape_decode(memoryview(raw)[1:-1])[0], "latin1"
    # Bytes of Python 2 that are too long for a name are numbers.
    if encoding is None or (encoding == "latin1" and len(raw) > _LONGEST_NAME):
        return raw
    return str(raw, encoding)


class _Kind:
    """Stand-in for a dtype: numpy writes its code first and its byte order after."""

    def __init__(self, code: object, *_: object) -> None:
        self.code = code if isinstance(code, str) else type(code).__name__
        self.order = ""

    def build(self, _version: object, order: object, *parts: object) -> None:
        if not isinstance(order, str) or any(part is not None for part in parts[:3]):
            raise ValueError("arrays of records are not admitted, arrays of numbers only")
        self.order = order

    def numpy(self) -> np.dtype[Any]:
        name = self.order + self.code
        if not _NUMBERS.fullmatch(name):
            raise ValueError(
                f"arrays of type {name!r} are not admitted, arrays of numbers only; {_NOTHING_RUN}"
            )
        return np.dtype(name)


class _Array:
    """Stand-in for an array: numpy writes an empty one first, and what it holds after."""

    content: object = None
    dtype: np.dtype[Any] = np.dtype(np.float64)
    shape: tuple[int, ...] = ()
    fortran = False

    def build(
        self, _version: object, shape: Any, kind: Any, fortran: object, content: object
    ) -> _Array:
        written = isinstance(kind, _Kind) and isinstance(shape, tuple) and len(shape) <= _MOST_AXES
        if not written or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("it has an array whose type or shape is not as numpy writes them")
        self.content, self.dtype, self.shape = content, kind.numpy(), shape
        self.fortran = bool(fortran)
        return self

    def read(self, stream: BinaryIO) -> NDArray[Any]:
        raw = self.content.read(stream) if isinstance(self.content, _Passage) else self.content
        if isinstance(raw, str):
            raw = raw.encode("latin1")
        if not isinstance(raw, bytes):
            raise ValueError(f"it has {type(raw).__name__} for the bytes of an array")
        # So that no array is larger than what the file holds for it.
        if len(raw) != math.prod(self.shape) * self.dtype.itemsize:
            raise ValueError(
                f"it has an array of shape {self.shape} with {len(raw)} bytes of {self.dtype}"
            )
        return np.frombuffer(raw, self.dtype).reshape(
            self.shape, order="F" if self.fortran else "C"
        )


def _encode(text: object, encoding: object = "latin1") -> object:
    """Python 3's way to write bytes for Python 2; made bytes only where they are wanted."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError("it has bytes in another encoding than latin1")
    return text


def _not_to_be_called(*_: object) -> object:
    raise ValueError("it calls what numpy only mentions")


#: Every name that a file may mention, and what it stands for here.
_ADMITTED: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _Kind,
    ("numpy", "ndarray"): _not_to_be_called,
    ("_codecs", "encode"): _encode,
    # Python 3's way to write no bytes at all for Python 2.
    ("__builtin__", "bytes"): lambda: b"",
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED |= {
        (f"{_core}.multiarray", "_reconstruct"): lambda *_: _Array(),
        (f"{_core}.multiarray", "scalar"): lambda kind, content: _Array().build(
            1, (), kind, False, content
        ),
        (f"{_core}.numeric", "_frombuffer"): lambda content, kind, shape, order: _Array().build(
            1, shape, kind, order == "F", content
        ),
    }


class _Source:
    """A file that allocates no more than it holds, and stops after too many reads."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.size = os.fstat(stream.fileno()).st_size
        self.n_reads = 0

    def read(self, n_bytes: int) -> bytes:
        self.n_reads += 1
        if self.n_reads > _MOST_READS:
            raise ValueError(f"it has more than {_MOST_READS} parts, and recordings have few")
        return self.stream.read(self.held(n_bytes))

    def readline(self) -> bytes:
        line = self.stream.readline(_LONGEST_NAME + 1)
        if not line.endswith(b"\n"):
            raise ValueError("it has a line that does not end")
        return line

    def held(self, n_bytes: int) -> int:
        if not 0 <= n_bytes <= self.size - self.stream.tell():
            raise ValueError("it ends in the middle; download it again")
        return n_bytes

    def string(self, length: int, encoding: str | None) -> object:
        if length <= _LONGEST_NAME:
            return _decode(self.read(length), encoding)
        passage = _Passage(self.stream.tell(), self.held(length), encoding)
        self.stream.seek(length, os.SEEK_CUR)
        return passage

    def line_string(self, encoding: str) -> object:
        """A string to the end of its line, which may be most of the file."""
        start = self.stream.tell()
        while not (block := self.stream.readline(_BLOCK)).endswith(b"\n"):
            if not block:
                self.held(1)
        end = self.stream.tell()
        self.stream.seek(start)
        content = self.string(end - start - 1, encoding)
        self.stream.seek(end)
        return content


class _Dict(dict[Any, Any]):
    def __setitem__(self, key: object, value: object) -> None:
        # Hashing a tuple that is deep enough would take the interpreter down.
        if not isinstance(key, (str, int, float)):
            raise ValueError(f"it has a dictionary with {type(key).__name__} for a key")
        super().__setitem__(key, value)


class _Instructions(dict[int, Callable[[Any], None]]):
    def __missing__(self, code: int) -> Callable[[Any], None]:
        raise ValueError(
            f"it has the instruction {bytes([code])!r}, which containers and arrays do not need; "
            f"{_NOTHING_RUN}"
        )


class _Unpickler(pickle._Unpickler):
    stack: list[Any]
    metastack: list[list[Any]]
    append: Callable[[object], None]

    def __init__(self, stream: BinaryIO) -> None:
        self.source = _Source(stream)
        super().__init__(self.source)

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        # Both exactly: a dotted name such as ndarray.tofile would lead on from an admitted one.
        if (module, name) not in _ADMITTED:
            raise ValueError(
                f"it asks for {f'{module}.{name}'!r}, which neither arrays nor plain containers "
                f"need; {_NOTHING_RUN}"
            )
        return _ADMITTED[module, name]

    def load_build(self) -> None:
        # Python's own would set attributes, of the functions of this module too.
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, (_Array, _Kind)) or not isinstance(state, tuple):
            raise ValueError(f"it changes {type(target).__name__}; {_NOTHING_RUN}")
        target.build(*state)

    def load_dict(self) -> None:
        self.metastack[-1].append(_Dict())
        self.dispatch[pickle.SETITEMS[0]](self)

    @staticmethod
    def load_counted(layout: str, encoding: str | None) -> Callable[[Any], None]:
        """Instruction that reads the length of a string, and the string."""

        def load(self: _Unpickler) -> None:
            [length] = struct.unpack(layout, self.source.read(struct.calcsize(layout)))
            self.append(self.source.string(length, encoding))

        return load

    # fmt: off
    _kept = (
        "PROTO", "STOP", "MARK", "POP", "REDUCE", "GLOBAL", "STACK_GLOBAL",
        "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET",
        "NONE", "NEWTRUE", "NEWFALSE", "FLOAT", "BINFLOAT",
        "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1",
        "TUPLE", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
        "LIST", "EMPTY_LIST", "APPEND", "APPENDS", "SETITEM", "SETITEMS",
    )
    # fmt: on
    _codes = (vars(pickle)[name][0] for name in _kept)
    dispatch = _Instructions({code: pickle._Unpickler.dispatch[code] for code in _codes})
    dispatch |= {
        # A frame is a hint about how much to read at once.
        pickle.FRAME[0]: lambda self: self.source.read(8),
        pickle.BUILD[0]: load_build,
        pickle.DICT[0]: load_dict,
        pickle.EMPTY_DICT[0]: lambda self: self.append(_Dict()),
        pickle.STRING[0]: lambda self: self.append(self.source.line_string("quoted")),
        pickle.UNICODE[0]: lambda self: self.append(self.source.line_string("raw-unicode-escape")),
        pickle.BINSTRING[0]: load_counted("<i", "latin1"),
        pickle.SHORT_BINSTRING[0]: load_counted("<B", "latin1"),
        pickle.BINUNICODE[0]: load_counted("<I", "utf-8"),
        pickle.SHORT_BINUNICODE[0]: load_counted("<B", "utf-8"),
        pickle.BINUNICODE8[0]: load_counted("<Q", "utf-8"),
        pickle.BINBYTES[0]: load_counted("<I", None),
        pickle.SHORT_BINBYTES[0]: load_counted("<B", None),
        pickle.BINBYTES8[0]: load_counted("<Q", None),
        pickle.BYTEARRAY8[0]: load_counted("<Q", None),
    }
