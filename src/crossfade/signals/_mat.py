"""MATLAB files, checked before SciPy loads them: a damaged one would crash Python."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

#: Types of elements that hold numbers or text, and the two that hold elements.
_PLAIN = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18))
_MATRIX, _COMPRESSED = 14, 15
#: Bytes of an unpacked file.
_LARGEST = 4 << 30


def load_mat(path: Path, **options: Any) -> dict[str, Any]:
    """Load variables as :func:`scipy.io.loadmat` does; refuses a damaged file."""
    from scipy.io import loadmat
    from scipy.io.matlab import matfile_version

    if matfile_version(path)[0] == 1:
        _check_file(memoryview(path.read_bytes()))
    try:
        content: dict[str, Any] = loadmat(path, **options)
    except NotImplementedError:
        raise ValueError("it is of version 7.3. Save it with save(..., '-v7')") from None
    return content


def _check_file(content: memoryview) -> None:
    """Refuse a file with an element that SciPy would not check."""
    order = ">" if bytes(content[126:128]) == b"MI" else "<"
    place, room = 128, _LARGEST
    while place < len(content):
        kind, size = _tag(content, place, order)
        body = content[place + 8 : place + 8 + size]
        place += 8 + size
        if kind == _COMPRESSED:
            # SciPy reads as much of it as the matrix in it states.
            body = memoryview(zlib.decompressobj().decompress(body, room))
            room -= len(body)
            kind, size = _tag(body, 0, order)
            body = body[8 : 8 + size]
        if kind != _MATRIX or len(body) < size or room <= 0:
            raise ValueError(f"an element has the type {kind} or is cut short")
        _check_matrix(body, order)


def _check_matrix(body: memoryview, order: str) -> None:
    """Refuse a matrix with an element that SciPy would not check."""
    place = 0
    while place < len(body):
        kind, size = _tag(body, place, order)
        place += 8
        # A small element has its size, its type and up to four bytes in those eight.
        small = kind >> 16
        most = 4 if small else len(body) - place
        kind, size = (kind & 0xFFFF, small) if small else (kind, size)
        if (kind not in _PLAIN and (small or kind != _MATRIX)) or size > most:
            raise ValueError(f"an element has the type {kind} or is cut short")
        if kind == _MATRIX:
            _check_matrix(body[place : place + size], order)
            place += size
        elif not small:
            place += size + -size % 8


def _tag(content: memoryview, place: int, order: str) -> tuple[int, int]:
    """Type and size of the element at a place."""
    if len(content) < place + 8:
        raise ValueError("it ends in the middle of an element")
    kind, size = struct.unpack_from(f"{order}II", content, place)
    return kind, size
