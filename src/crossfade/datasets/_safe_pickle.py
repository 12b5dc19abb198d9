"""Arrays of a pickle, read by an unpickler that knows numpy's arrays and plain containers only.

A pickle is a program that calls what it names. Each name that is admitted here stands for a class
of this module, which only takes notes; numpy is called for the arrays that are asked for.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

#: Instructions and numbers of a file. Recordings have some hundred.
_MOST_READS = 10_000
_NUMBERS = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")


def load_arrays(path: str | os.PathLike[str], *places: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays by their keys in nested dictionaries, of a pickle by Python 2 or 3."""
    try:
        with open(path, "rb") as stream:
            tree = _Unpickler(stream).load()
        return [_array_at(tree, place) for place in places]
    except OSError:
        raise
    except Exception as reason:  # a damaged pickle raises whatever its instructions lead to
        why = reason if type(reason) is ValueError else repr(reason)
        raise ValueError(f"{path} cannot be read as a pickle of arrays: {why}.") from reason


def _array_at(tree: Any, place: Sequence[str]) -> NDArray[Any]:
    for key in place:
        found = {_text(one): part for one, part in tree.items()} if type(tree) is dict else {}
        if key not in found:
            raise ValueError(f"it has no {key!r}; found {sorted(map(str, found))!r:.200}")
        tree = found[key]
    if not isinstance(tree, _Array):
        raise ValueError(f"{place[-1]!r} is not an array but {type(tree).__name__}")
    return tree.read()


def _text(value: Any) -> Any:
    """Text of Python 2 is bytes."""
    return value.decode("latin1") if isinstance(value, bytes) else value


class _Dtype:
    """Stands for ``numpy.dtype``: first comes its code, then its byte order."""

    order = ""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = _text(code)

    def __setstate__(self, state: Any) -> None:
        self.order = _text(state[1])


class _Array:
    """Stands for ``_reconstruct``, which makes an empty array for a state to fill.

    It also stands for numpy's scalars and ``numpy.ndarray``, which nobody asks for.
    """

    state: Any = None

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def read(self) -> NDArray[Any]:
        _, shape, kind, fortran, content = self.state
        name = f"{kind.order}{kind.code}"
        if not _NUMBERS.fullmatch(name):
            raise ValueError(f"it has an array of type {name!r:.50}; only numbers are read")
        return np.frombuffer(content, name).reshape(shape, order="F" if fortran else "C")


class _FromBuffer(_Array):
    """Stands for ``_frombuffer``, of protocol 5."""

    def __init__(self, content: Any, kind: Any, shape: Any, order: Any) -> None:
        self.state = (1, shape, kind, order == "F", content)


class _Bytes(_Array):
    """Stands for ``_codecs.encode``, by which Python 3 writes bytes for Python 2."""

    def __new__(cls, text: str = "", *_: Any) -> Any:
        return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], type] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("_codecs", "encode"): _Bytes,
    ("__builtin__", "bytes"): _Bytes,
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = _Array
    _ADMITTED[f"{_core}.multiarray", "scalar"] = _Array
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _FromBuffer


class _Source:
    """A file of which no more is read than it holds, however long a pickle says its strings are."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.readline = stream.readline
        self.size = os.fstat(stream.fileno()).st_size
        self.n_reads = 0

    def read(self, n_bytes: int) -> bytes:
        self.n_reads += 1
        if self.n_reads > _MOST_READS:
            raise ValueError(f"it has more than {_MOST_READS} parts; recordings have few")
        if n_bytes > self.size - self.stream.tell():
            raise ValueError("it ends in the middle; download it again")
        return self.stream.read(n_bytes)


def _as_list(n_items: int) -> Callable[[Any], None]:
    def load(self: Any) -> None:
        self.stack[-n_items:] = [self.stack[-n_items:]]

    return load


def _skip_frame(self: Any) -> None:
    self.read(8)


_plain = pickle._Unpickler.dispatch


class _Unpickler(pickle._Unpickler):
    # Not the unpickler in C, which allocates 64 GB for five bytes that set a memo entry.
    dispatch: ClassVar = {
        **_plain,
        # Tuples become lists: the hash of nested tuples may overflow the stack, or never end.
        pickle.EMPTY_TUPLE[0]: _plain[pickle.EMPTY_LIST[0]],
        pickle.TUPLE[0]: _plain[pickle.LIST[0]],
        pickle.TUPLE1[0]: _as_list(1),
        pickle.TUPLE2[0]: _as_list(2),
        pickle.TUPLE3[0]: _as_list(3),
        # Python would allocate a bytearray, and read a frame, of whatever length is written.
        pickle.BYTEARRAY8[0]: _plain[pickle.BINBYTES8[0]],
        pickle.FRAME[0]: _skip_frame,
    }

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(_Source(stream), encoding="bytes")

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in _ADMITTED:
            raise ValueError(
                f"it asks for '{module}.{name}', and only arrays and containers are read; nothing "
                "in it was run"
            )
        return _ADMITTED[module, name]

    def get_extension(self, code: int) -> None:
        raise ValueError(f"it asks for extension {code}; nothing in it was run")
