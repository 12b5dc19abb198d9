"""Parquet files: ours carry a seal, which must hold; all others are read without one.

The seal is an entry of the file's metadata: what kind of file it is, what it is for, and the
SHA-256 of the whole file, computed with zeros in the place of its own 64 digits. Its name is in the
entry's key and in its value, so that one of them is found where the other is damaged.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import chain
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfade._files import replacing
from crossfade._validate import check_extra

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_MARK = "crossfade_seal"
_BLANK = b"0" * 64
_SEAL = re.compile(
    rb'\{"crossfade_seal": 1, "kind": "([a-z]*)", "for": "([0-9a-f]*)", '
    rb'"sha256": "([0-9a-f]{64})"\}'
)
#: How large a table may become in memory: this much, or so many times the size of its file.
_LARGEST, _LARGEST_RATIO = 2 << 30, 100


def parquet_of(frame: pd.DataFrame) -> bytes:
    """Bytes of a Parquet file of a table, without its index, under a seal."""
    check_extra("pyarrow", "tables", "Parquet")
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if frame.attrs:
        # Where pandas keeps them.
        told = {**table.schema.metadata, b"PANDAS_ATTRS": json.dumps(frame.attrs)}
        table = table.replace_schema_metadata(told)
    return sealed(table, "table")


def frame_of_parquet(path: object, content: bytes) -> pd.DataFrame:
    """Table of a Parquet file, whoever wrote it; one of ours only as it was written."""
    import pandas as pd

    if _is_ours(content):
        _check_seal(path, content, "table")
    frame: pd.DataFrame = _read(
        path, content, lambda file: pd.read_parquet(file, page_checksum_verification=True)
    )
    named = [name for name in frame.index.names if name is not None and name not in frame]
    return frame.reset_index(named) if named else frame


def _is_ours(content: bytes) -> bool:
    """Whether a file has a seal, whole or damaged, in its footer."""
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content.find(_MARK.encode(), max(footer, 0)) >= 0


def sealed(table: pa.Table, kind: str, purpose: str = "") -> bytes:
    """Bytes of a Parquet file under a seal that says what kind it is, and what it is for."""
    import pyarrow.parquet as pq

    content = io.BytesIO()
    with pq.ParquetWriter(content, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(_blank_seal(kind, purpose))
    before, blank, after = content.getvalue().rpartition(_BLANK)
    digest = sha256(before + blank + after).hexdigest()
    return before + digest.encode() + after


def _blank_seal(kind: str, purpose: str = "") -> dict[str, str]:
    """Entry of the metadata, before the digits are known."""
    return {_MARK: json.dumps({_MARK: 1, "kind": kind, "for": purpose, "sha256": _BLANK.decode()})}


def write_parquet(path: Path, parts: Iterable[pd.DataFrame]) -> None:
    """Write a table in parts under a seal, whole or not at all; leave an equal file alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = (pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    first = next(tables)
    with replacing(path, unless_same=True) as new:
        with pq.ParquetWriter(new, first.schema, write_page_checksum=True) as writer:
            for table in chain([first], tables):
                writer.write_table(table.cast(first.schema))
            writer.add_key_value_metadata(_blank_seal("table"))
        with open(new, "rb+") as stream, mmap(stream.fileno(), 0) as content:
            place = content.rfind(_BLANK)
            content[place : place + len(_BLANK)] = sha256(content).hexdigest().encode()


def unsealed(path: object, content: bytes, kind: str, purpose: str = "") -> pa.Table:
    """Table of a Parquet file of ours, of this kind and for this; refuses every other."""
    import pyarrow.parquet as pq

    if _MARK.encode() not in content:
        raise ValueError(
            f"{path} has no seal of Crossfade. It is damaged, or somebody else wrote it."
        )
    _check_seal(path, content, kind, purpose)
    return _read(path, content, pq.read_table)


def _check_seal(path: object, content: bytes, kind: str, purpose: str = "") -> None:
    """Refuse a file of ours if its seal does not hold or belongs to another file."""
    # The last one: a table may hold the text of a seal.
    found = _SEAL.match(content, max(content.rfind(b'{"crossfade_seal"'), 0))
    if found is not None:
        whole = sha256(memoryview(content)[: found.start(3)])
        whole.update(_BLANK)
        whole.update(memoryview(content)[found.end(3) :])
    if found is None or whole.hexdigest().encode() != found[3]:
        raise ValueError(
            f"{path} was altered after it was written: its checksum does not match. Copy or make "
            "it again."
        )
    if (found[1].decode(), found[2].decode()) != (kind, purpose):
        raise ValueError(f"{path} is a {found[1].decode()} of Crossfade, and not this {kind}.")


def _read(path: object, content: bytes, read: Callable[[io.BytesIO], Any]) -> Any:
    """Read a Parquet file; refuse one that is damaged or too large."""
    check_extra("pyarrow", "tables", "Parquet")
    import pyarrow.parquet as pq

    most = max(_LARGEST, _LARGEST_RATIO * len(content))
    # For a damaged file pandas and pyarrow raise a dozen kinds.
    try:
        size = _size_of(pq.ParquetFile(io.BytesIO(content)).metadata)
        if size <= most:
            return read(io.BytesIO(content))
    except Exception as reason:
        why = str(reason) if isinstance(reason, (ValueError, OSError)) else repr(reason)
        raise ValueError(
            f"{path} cannot be read as a table: {why.strip().rstrip('.')}."
        ) from reason
    raise ValueError(
        f"{path} cannot be read as a table: it would fill {size / 1e9:.1f} GB of memory, and "
        f"{most / 1e9:.1f} GB are allowed."
    )


def _size_of(metadata: Any) -> int:
    """Size in memory or unpacked, whichever is larger, as the footer states it."""
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return int(max(unpacked, 8 * metadata.num_rows * metadata.num_columns))
