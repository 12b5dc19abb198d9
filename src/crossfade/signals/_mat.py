"""MATLAB files, walked through before SciPy loads them.

SciPy's reader looks types up without asking whether they exist, so that a damaged file ends the
process. A file of version 5 is a list of elements, each with a type, a size and its bytes; those of
type 14 are matrices, lists again, and those of type 15 are compressed.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

#: Types of elements that hold numbers or text, and the two that hold elements.
_PLAIN = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18))
_MATRIX, _COMPRESSED = 14, 15
#: Cells in cells in cells, and so on; and bytes of a file that is unpacked.
_DEEPEST, _LARGEST = 32, 4 << 30


def load_mat(path: Path, **options: Any) -> dict[str, Any]:
    """Load variables as :func:`scipy.io.loadmat` does; refuses a damaged file."""
    from scipy.io import loadmat
    from scipy.io.matlab import matfile_version

    if matfile_version(path)[0] == 1:
        _walk_file(path)
    content: dict[str, Any] = loadmat(path, **options)
    return content


def _walk_file(path: Path) -> None:
    content = memoryview(path.read_bytes())
    order = ">" if bytes(content[126:128]) == b"MI" else "<"
    place, room = 128, _LARGEST
    while place < len(content):
        kind, size = _tag(content, place, order)
        body = content[place + 8 : place + 8 + size]
        place += 8 + size
        if kind == _COMPRESSED:
            # Of a compressed element SciPy reads as much as the matrix in it says.
            unpacker = zlib.decompressobj()
            body = memoryview(unpacker.decompress(body, room))
            room -= len(body)
            if unpacker.unconsumed_tail or room <= 0:
                raise ValueError("it unpacks to more than 4 GB")
            kind, size = _tag(body, 0, order)
            body = body[8 : 8 + size]
        if kind != _MATRIX or len(body) < size:
            raise ValueError(f"an element is of type {kind} and {size} bytes, of which not all are")
        _walk_matrix(body, order, 1)


def _walk_matrix(body: memoryview, order: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    place = 0
    while place < len(body):
        kind, size = _tag(body, place, order)
        if kind >> 16:  # a small element: its size, its type and up to four bytes
            kind, size, room = kind & 0xFFFF, kind >> 16, 0
            if kind not in _PLAIN or size > 4:
                raise ValueError(f"a small element is of type {kind} and {size} bytes")
        elif kind == _MATRIX and size <= len(body) - place - 8:
            _walk_matrix(body[place + 8 : place + 8 + size], order, depth + 1)
            room = size
        elif kind in _PLAIN and size <= len(body) - place - 8:
            room = size + -size % 8
        else:
            raise ValueError(f"an element is of type {kind} and {size} bytes")
        place += 8 + room


def _tag(content: memoryview, place: int, order: str) -> tuple[int, int]:
    """Type and size of the element at a place."""
    if len(content) < place + 8:
        raise ValueError("it ends in the middle of an element")
    kind, size = struct.unpack_from(f"{order}II", content, place)
    return kind, size
