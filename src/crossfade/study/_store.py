"""A study in a folder: finished parts are kept there, and read again.

The folder has ``study.json``, the plan, and ``shards``, with one Parquet file for each task and
method. Files are written whole or not at all, so that a study can be stopped at any moment and
resumed. The name of a shard is a digest of all that its rows depend on; a shard whose seal does not
hold, or is of another place, is computed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from crossfade._files import digest_of, is_intact, json_of, read_whole, write_whole
from crossfade._validate import check_extra
from crossfade.study._evaluate import Note, Outcome, Shard, joined
from crossfade.study._record import Record
from crossfade.tasks import sealed, unsealed

#: Where a Parquet file keeps what went wrong.
_NOTES = b"crossfade_notes"
#: Bytes of a plan or a shard.
_LARGEST = 1 << 30
#: Shards that are in memory at a time.
_AT_ONCE = 50


class Store:
    """The finished shards of one study."""

    def __init__(self, folder: Path, record: Record) -> None:
        check_extra("pyarrow", "tables", "A study in a folder")
        self.folder = folder.absolute()
        self.record = record

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Store:
        """The study that is in a folder."""
        path = Path(folder) / "study.json"
        if not path.exists():
            raise FileNotFoundError(f"There is no study in {folder}: it has no study.json.")
        try:
            content = json_of(read_whole(path, _LARGEST))
            intact = is_intact(content, content.pop("sha256"), in_order=True)
        except (ValueError, KeyError, TypeError, AttributeError) as reason:
            raise ValueError(f"{path} is not the plan of a study: {reason}.") from reason
        if not intact:
            raise ValueError(f"{path} was altered. Run the study in another folder.")
        return cls(Path(folder), Record(content))

    @classmethod
    def seed_of(cls, folder: str | os.PathLike[str]) -> int | None:
        """Seed of the study that is in a folder, if there is one."""
        if not (Path(folder) / "study.json").exists():
            return None
        seed: int = cls.read(folder).record.content["random_state"]
        return seed

    @classmethod
    def open(cls, folder: str | os.PathLike[str], record: Record) -> Store:
        """Begin a study in a folder, or go on with the one that is there."""
        store, plan = cls(Path(folder), record), Path(folder) / "study.json"
        content, known = record.content, {}
        if plan.exists():
            there = cls.read(folder).record
            differences = there.differences(record)
            if differences:
                raise ValueError(
                    f"There is another study in {folder}: {'; '.join(differences)}. Choose another "
                    "folder, or the arguments that it was begun with."
                )
            known = there.content["methods"]
        grown = known | content["methods"]
        if grown != known:
            (store.folder / "shards").mkdir(parents=True, exist_ok=True)
            content = {**content, "methods": grown}
            content["sha256"] = digest_of(content, in_order=True)
            write_whole(plan, json.dumps(content, indent=1).encode())
        return store

    def path(self, shard: Shard) -> Path:
        """File of a shard."""
        return self.folder / "shards" / f"{self.record.place(shard)}.parquet"

    def write(self, shard: Shard, outcome: Outcome) -> None:
        """Keep a shard."""
        import pyarrow as pa

        table = pa.Table.from_pandas(outcome.rows, preserve_index=False)
        table = table.replace_schema_metadata({_NOTES: json.dumps(outcome.notes)})
        path = self.path(shard)
        write_whole(path, sealed(table, "shard", path.stem))

    def finished(self, shards: Sequence[Shard]) -> tuple[dict[Shard, list[Note]], list[str]]:
        """Notes of the shards that are there, in order; why others are refused."""
        found, refused = {}, []
        for shard in shards:
            try:
                found[shard] = self._read(shard).notes
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError) as reason:
                refused.append(f"Task {shard.task!r}, method {shard.method!r}: {reason}")
        return found, refused

    def rows(self, shards: Sequence[Shard]) -> Iterator[pd.DataFrame]:
        """Rows of finished shards, some at a time, in order."""
        for first in range(0, len(shards), _AT_ONCE):
            yield joined([self._read(one).rows for one in shards[first : first + _AT_ONCE]])

    def _read(self, shard: Shard) -> Outcome:
        """Outcome of a shard; refuses what was not written for this place."""
        path = self.path(shard)
        table = unsealed(path, read_whole(path, _LARGEST), "shard", path.stem)
        notes = json_of(table.schema.metadata[_NOTES])
        return Outcome(table.to_pandas(), [Note(*note) for note in notes])
