"""A pickle in, the arrays wanted of it out: nothing that the file names is imported or run.

A pickle is a program, and Python's own reader runs it. This one knows the instructions that plain
containers and numpy's arrays are written with, and stops at every other. The few functions that
such files name are not looked up: they stand for code of this module. Long strings are passed over,
and read when an array is wanted, so that a gigabyte of recordings takes the memory of one channel.
"""

from __future__ import annotations

import codecs
import math
import os
import pickle as op
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

#: Recordings take some hundred instructions; a file of a million small lists is a trap.
_MOST_INSTRUCTIONS = 100_000
#: Longer strings stay in the file; names of functions and keys of containers are shorter.
_LONGEST_NAME = 256
_MOST_AXES = 32
_BLOCK = 1 << 20
_NUMBERS = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")

_CONSTANTS = {op.NONE: None, op.NEWTRUE: True, op.NEWFALSE: False}
_EMPTY: dict[bytes, Callable[[], object]]
_EMPTY = {op.EMPTY_TUPLE: tuple, op.EMPTY_LIST: list, op.EMPTY_DICT: dict}
_TUPLES = {op.TUPLE1: 1, op.TUPLE2: 2, op.TUPLE3: 3}
_SCALARS = {op.BININT: "<i", op.BININT1: "<B", op.BININT2: "<H", op.BINFLOAT: ">d"}
#: Strings: how their length is written before them, and how they are (None is as they are).
_STRINGS = {
    op.BINBYTES: ("<I", None),
    op.SHORT_BINBYTES: ("<B", None),
    op.BINBYTES8: ("<Q", None),
    op.BYTEARRAY8: ("<Q", None),
    op.BINSTRING: ("<i", "latin1"),
    op.SHORT_BINSTRING: ("<B", "latin1"),
    op.BINUNICODE: ("<I", "utf-8"),
    op.SHORT_BINUNICODE: ("<B", "utf-8"),
    op.BINUNICODE8: ("<Q", "utf-8"),
}
#: Strings that are lines of text; Python 2 puts the first between quotes, with escapes.
_LINES = {op.STRING: "quoted", op.UNICODE: "raw-unicode-escape"}
_PUTS = {op.BINPUT: "<B", op.LONG_BINPUT: "<I"}
_GETS = {op.BINGET: "<B", op.LONG_BINGET: "<I"}
_DAMAGE = (ArithmeticError, LookupError, TypeError, ValueError, struct.error)
_NOTHING_RUN = "refused, and nothing of the file was run"


def load_arrays(
    path: str | os.PathLike[str], wanted: Mapping[str, Sequence[str]]
) -> dict[str, NDArray[Any]]:
    """Arrays of a pickle that holds dictionaries of arrays, and nothing that can run.

    Parameters
    ----------
    path : str or path-like
        A pickle by Python 2 or 3, of any protocol.
    wanted : mapping of str to sequence of str
        Names of the arrays in the result, and the keys that lead to each.

    Returns
    -------
    dict of str to ndarray
        Those arrays; the others are never in memory.
    """
    try:
        with open(path, "rb") as stream:
            tree = _Tape(stream).play()
            return {name: _array_at(tree, keys, stream) for name, keys in wanted.items()}
    except (*_DAMAGE, DeprecationWarning) as reason:  # of an escape; where warnings are errors
        text = str(reason).rstrip(".")
        raise ValueError(f"{path} cannot be read as a pickle of arrays: {text}.") from reason


def _array_at(tree: object, keys: Sequence[str], stream: BinaryIO) -> NDArray[Any]:
    for depth, key in enumerate(keys):
        if not isinstance(tree, dict) or key not in tree:
            found = sorted(map(str, tree))[:10] if isinstance(tree, dict) else type(tree).__name__
            raise ValueError(f"{_trail(keys[:depth])} has no {key!r}; found {found}")
        tree = tree[key]
    if not isinstance(tree, _Array):
        raise ValueError(f"{_trail(keys)} is no array; found {type(tree).__name__}")
    return tree.read(stream)


def _trail(keys: Sequence[str]) -> str:
    return "it" + "".join(f"[{key!r}]" for key in keys)


@dataclass
class _Passage:
    """A long string that was left in the file: where it is, and how it is written."""

    place: int
    length: int
    encoding: str | None

    def read(self, stream: BinaryIO) -> bytes:
        stream.seek(self.place)
        return _bytes_of(_decode(stream.read(self.length), self.encoding))


def _decode(raw: bytes, encoding: str | None) -> str | bytes:
    if encoding is None:
        return raw
    if encoding == "quoted":
        quoted = len(raw) > 1 and raw[:1] == raw[-1:] and raw[:1] in (b"'", b'"')
        if not quoted:
            raise ValueError("it has a string without quotes")
        # What Python's own reader of pickles takes for this; it only knows backslashes.
        unescaped, _ = codecs.escape_decode(memoryview(raw)[1:-1])
        return unescaped if len(unescaped) > _LONGEST_NAME else str(unescaped, "latin1")
    # Bytes of Python 2 that are too long for a name are numbers.
    return raw if encoding == "latin1" and len(raw) > _LONGEST_NAME else str(raw, encoding)


def _bytes_of(content: object) -> bytes:
    """Bytes, in whichever way the two Pythons write them."""
    if isinstance(content, str):
        return content.encode("latin1")
    if isinstance(content, bytes):
        return content
    raise ValueError(f"it has {type(content).__name__} for the bytes of an array")


class _Kind:
    """What numpy writes for a type of numbers: its code first, its byte order after."""

    def __init__(self, code: object, *_: object) -> None:
        self.name = code if isinstance(code, str) else type(code).__name__

    def build(self, state: tuple[Any, ...]) -> None:
        _version, order, *parts = state[:5]
        if not isinstance(order, str) or any(part is not None for part in parts):
            raise ValueError("arrays of records are not admitted, arrays of numbers only")
        self.name = order + self.name

    def numpy(self) -> np.dtype[Any]:
        if not _NUMBERS.fullmatch(self.name):
            raise ValueError(
                f"arrays of type {self.name!r} are not admitted, arrays of numbers only; "
                f"{_NOTHING_RUN}"
            )
        return np.dtype(self.name)


class _Array:
    """What numpy writes for an array: nothing first, its shape, type and bytes after."""

    def __init__(self, *_: object) -> None:
        self.content: object = None
        self.dtype = np.dtype(np.float64)
        self.shape: tuple[int, ...] = ()
        self.order = "C"

    def build(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, content = state
        self.fill(content, kind, shape, "F" if fortran else "C")

    def fill(self, content: object, kind: object, shape: object, order: object) -> None:
        if not isinstance(kind, _Kind) or type(shape) is not tuple or len(shape) > _MOST_AXES:
            raise ValueError("it has an array whose type or shape is not as numpy writes them")
        if order not in ("C", "F") or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("it has an array whose order or shape is not as numpy writes them")
        self.dtype, self.shape, self.order = kind.numpy(), shape, str(order)
        self.content = content

    def read(self, stream: BinaryIO) -> NDArray[Any]:
        content = self.content
        raw = content.read(stream) if isinstance(content, _Passage) else _bytes_of(content)
        # So that no array is larger than what the file holds for it.
        if len(raw) != math.prod(self.shape) * self.dtype.itemsize:
            raise ValueError(
                f"it has an array of shape {self.shape} with {len(raw)} bytes of {self.dtype}"
            )
        array = np.frombuffer(raw, self.dtype)
        return array.reshape(self.shape, order="F" if self.order == "F" else "C")


def _from_buffer(content: object, kind: object, shape: object, order: object) -> object:
    array = _Array()
    array.fill(content, kind, shape, order)
    return array


def _encode(text: object, encoding: object = "latin1") -> object:
    """Python 3's way to write bytes for Python 2; made bytes only where they are wanted."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError("it has bytes in another encoding than latin1")
    return text


def _no_bytes() -> object:
    """Python 3's way to write no bytes at all for Python 2."""
    return ""


def _not_to_be_called(*_: object) -> object:
    raise ValueError("it calls what numpy only mentions")


#: Every name that a file may mention, and what it stands for here.
_ADMITTED: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "dtype"): _Kind,
    ("numpy", "ndarray"): _not_to_be_called,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
}
for _core in ("core", "_core"):
    _ADMITTED[f"numpy.{_core}.multiarray", "_reconstruct"] = _Array
    # A single number is an array without axes.
    _ADMITTED[f"numpy.{_core}.multiarray", "scalar"] = lambda kind, content: _from_buffer(
        content, kind, (), "C"
    )
    _ADMITTED[f"numpy.{_core}.numeric", "_frombuffer"] = _from_buffer


class _Tape:
    """A pickle that is being followed, and what it has made so far."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.size = os.fstat(stream.fileno()).st_size
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def play(self) -> object:
        """Follow the instructions; return what they make."""
        for _ in range(_MOST_INSTRUCTIONS):
            code = self.take(1)
            if code == op.STOP:
                return self.stack.pop()
            if not (self.push(code) or self.gather(code) or self.act(code)):
                raise ValueError(
                    f"it has the instruction {code!r}, which containers and arrays do not need; "
                    f"{_NOTHING_RUN}"
                )
        raise ValueError(f"it has more than {_MOST_INSTRUCTIONS} parts, and recordings have few")

    # -- reading ----------------------------------------------------------------------------

    def take(self, n_bytes: int) -> bytes:
        taken = self.stream.read(n_bytes)
        if len(taken) < n_bytes:
            raise ValueError("it ends in the middle; download it again")
        return taken

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def string(self, length: int, encoding: str | None) -> object:
        place = self.stream.tell()
        if not 0 <= length <= self.size - place:
            raise ValueError("it ends in the middle; download it again")
        if length <= _LONGEST_NAME:
            return _decode(self.take(length), encoding)
        self.stream.seek(length, os.SEEK_CUR)
        return _Passage(place, length, encoding)

    def line(self) -> bytes:
        taken = self.stream.readline(_LONGEST_NAME + 1)
        if not taken.endswith(b"\n"):
            raise ValueError("it has a line that does not end")
        return taken[:-1]

    def line_string(self, encoding: str) -> object:
        place = self.stream.tell()
        length = 0
        while block := self.stream.read(_BLOCK):
            end = block.find(b"\n")
            if end >= 0:
                self.stream.seek(place)
                content = self.string(length + end, encoding)
                self.take(1)
                return content
            length += len(block)
        raise ValueError("it ends in the middle; download it again")

    # -- following --------------------------------------------------------------------------

    def push(self, code: bytes) -> bool:
        """Instructions that bring one new thing; says whether this is one."""
        value: object
        if code in _CONSTANTS:
            value = _CONSTANTS[code]
        elif code in _EMPTY:
            value = _EMPTY[code]()
        elif code in _SCALARS:
            value = self.number(_SCALARS[code])
        elif code in _STRINGS:
            layout, encoding = _STRINGS[code]
            value = self.string(self.number(layout), encoding)
        elif code in _LINES:
            value = self.line_string(_LINES[code])
        elif code == op.LONG1:
            value = int.from_bytes(self.take(self.number("<B")), "little", signed=True)
        elif code == op.INT:
            text = self.line()
            value = text == b"01" if text in (b"00", b"01") else int(text)
        elif code == op.LONG:
            value = int(self.line().rstrip(b"L"))
        elif code == op.FLOAT:
            value = float(self.line())
        elif code in _GETS:
            value = self.memo[self.number(_GETS[code])]
        elif code == op.GET:
            value = self.memo[int(self.line())]
        else:
            return False
        self.stack.append(value)
        return True

    def gather(self, code: bytes) -> bool:
        """Instructions that put things into containers; says whether this is one."""
        stack = self.stack
        if code == op.MARK:
            self.marks.append(len(stack))
        elif code == op.TUPLE:
            stack.append(tuple(self.since_mark()))
        elif code in _TUPLES:
            items = [stack.pop() for _ in range(_TUPLES[code])]
            stack.append(tuple(reversed(items)))
        elif code == op.LIST:
            stack.append(self.since_mark())
        elif code == op.APPENDS:
            self.append(self.since_mark())
        elif code == op.APPEND:
            self.append([stack.pop()])
        elif code == op.DICT:
            items = self.since_mark()
            stack.append({})
            self.set_items(items)
        elif code == op.SETITEMS:
            self.set_items(self.since_mark())
        elif code == op.SETITEM:
            value, key = stack.pop(), stack.pop()
            self.set_items([key, value])
        else:
            return False
        return True

    def act(self, code: bytes) -> bool:
        """Instructions that name, call, change or remember; says whether this is one."""
        if code == op.GLOBAL:
            self.name(self.line().decode(), self.line().decode())
        elif code == op.STACK_GLOBAL:
            name, module = self.stack.pop(), self.stack.pop()
            self.name(module, name)
        elif code == op.REDUCE:
            self.call()
        elif code == op.BUILD:
            self.build()
        elif code in _PUTS:
            self.memo[self.number(_PUTS[code])] = self.stack[-1]
        elif code == op.PUT:
            self.memo[int(self.line())] = self.stack[-1]
        elif code == op.MEMOIZE:
            self.memo[len(self.memo)] = self.stack[-1]
        elif code == op.POP:
            self.stack.pop()
        elif code == op.PROTO:
            self.take(1)
        elif code == op.FRAME:
            # Only a hint about how much to read at once.
            self.take(8)
        else:
            return False
        return True

    def since_mark(self) -> list[Any]:
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def append(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError(f"it appends to {type(self.stack[-1]).__name__}; {_NOTHING_RUN}")
        self.stack[-1].extend(items)

    def set_items(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not dict:
            raise ValueError(f"it sets items of {type(self.stack[-1]).__name__}; {_NOTHING_RUN}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            # Hashing a tuple that is deep enough would take the interpreter down.
            if not isinstance(key, (str, int, float)):
                raise ValueError(f"it has a dictionary with {type(key).__name__} for a key")
            self.stack[-1][key] = value

    def name(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError(f"it names a function by what is not text; {_NOTHING_RUN}")
        # Both exactly: a dotted name such as ndarray.tofile would lead on from an admitted one.
        if (module, name) not in _ADMITTED:
            raise ValueError(
                f"it asks for {f'{module}.{name}'!r}, which neither arrays nor plain containers "
                f"need; {_NOTHING_RUN}"
            )
        self.stack.append(_ADMITTED[module, name])

    def call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not any(function is meaning for meaning in _ADMITTED.values()):
            raise ValueError(f"it calls {type(function).__name__}; {_NOTHING_RUN}")
        if type(arguments) is not tuple:
            raise ValueError(f"it calls with {type(arguments).__name__}; {_NOTHING_RUN}")
        self.stack.append(function(*arguments))

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, (_Array, _Kind)) or type(state) is not tuple:
            raise ValueError(f"it changes {type(target).__name__}; {_NOTHING_RUN}")
        target.build(state)
