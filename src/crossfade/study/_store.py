"""A study in a folder: finished parts are kept there, and read again.

The folder has ``study.json``, a record of all that the rows depend on, and ``shards``, with one
Parquet file for each task and method. Files are written whole or not at all, so that a study can be
stopped at any moment and resumed. The name of a shard is a digest of all that its rows depend on; a
shard whose seal does not hold, or that is of another place, is computed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossfade._files import digest_of, is_intact, json_of, read_whole, write_whole
from crossfade._validate import check_extra
from crossfade._version import __version__
from crossfade.study._estimators import FitEach
from crossfade.study._evaluate import Note, Outcome, Plan, Shard, joined
from crossfade.study._methods import Method
from crossfade.study._sources import Participant
from crossfade.tasks import sealed, unsealed

#: Parts that no row depends on, or that may be added to a study that is there.
_FREE = ("window_seconds", "methods")
#: Where a Parquet file keeps what went wrong.
_NOTES = b"crossfade_notes"
#: Bytes of a plan or a shard.
_LARGEST = 1 << 30
#: Shards that are in memory at a time.
_AT_ONCE = 50


@dataclass(frozen=True)
class Record:
    """A study's plan, its tasks and its methods as JSON."""

    content: dict[str, Any]

    @classmethod
    def of(
        cls,
        plan: Plan,
        participants: Sequence[Participant],
        targets: Sequence[Participant],
        classes: NDArray[Any],
        feature_names: Sequence[str] | None,
    ) -> Record:
        """Record of a study; methods are told apart by their names alone."""
        aimed_at = {one.name for one in targets}
        content = {
            "crossfade": __version__,
            "budgets": list(plan.budgets),
            "n_splits": plan.n_splits,
            "splits": plan.kind,
            "random_state": plan.seed,
            "forecasts": plan.forecasts,
            "classes": classes.tolist(),
            "feature_names": feature_names,
            "tasks": {
                one.name: {
                    "group": one.group,
                    "windows": _digest([_bytes_of(one.X), _bytes_of(one.label.astype(np.int8))]),
                    "target": one.name in aimed_at,
                }
                for one in participants
            },
            "methods": {name: name for name in plan.methods},
            "window_seconds": {one.name: one.step for one in participants if one.step is not None},
        }
        # As it will be when it is read again: no tuples, no numbers of numpy.
        return cls(json.loads(json.dumps(content)))

    def identified(self, methods: Mapping[str, Method]) -> Record:
        """The same with what tells each estimator from another one of its name."""
        described = {
            name: identity(one.run.estimator, name) if isinstance(one.run, FitEach) else name
            for name, one in methods.items()
        }
        return Record({**self.content, "methods": json.loads(json.dumps(described))})

    def shards(self) -> list[Shard]:
        """All shards, in the order of the rows."""
        tasks: Mapping[str, Any] = self.content["tasks"]
        targets = [name for name, task in tasks.items() if task["target"]]
        return [Shard(name, method) for name in targets for method in self.content["methods"]]

    def place(self, shard: Shard) -> str:
        """Name of the file of a shard: a digest of all that its rows depend on."""
        return _digest([self._common, *shard, self.content["methods"][shard.method]])

    @cached_property
    def _common(self) -> str:
        """Digest of what all rows depend on."""
        return _digest({name: part for name, part in self.content.items() if name not in _FREE})

    def drawn_from(self) -> dict[str, str]:
        """For each task a digest of what its splits are drawn from."""
        how = [self.content["splits"], self.content["random_state"]]
        # Whether a task is a target depends on the budgets, and its splits do not.
        return {
            name: _digest([how, task["group"], task["windows"]])
            for name, task in self.content["tasks"].items()
        }

    def differences(self, other: Record) -> list[str]:
        """How another study differs from this one, but for methods that only one of them has."""
        there, here = self.content, other.content
        found = [
            f"{name} is {there.get(name)!r} there and {here.get(name)!r} here"
            for name in {**there, **here}
            if name not in (*_FREE, "tasks") and _digest(there.get(name)) != _digest(here.get(name))
        ]
        if _digest(there["tasks"]) != _digest(here["tasks"]):
            old, new = there["tasks"], here["tasks"]
            names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
            found.append(f"tasks differ: {', '.join(names[:5]) or 'in their order'}")
        old, new = there["methods"], here["methods"]
        for name in new.keys() & old.keys():
            # To Python 1 is 1.0, but to an estimator it may not be.
            if _digest(old[name]) != _digest(new[name]):
                found.append(f"method {name!r} is {old[name]} there and {new[name]} here")
        return found


def identity(value: object, where: str) -> Any:
    """Identity of an estimator or a parameter, as JSON holds it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        # JSON has no word for NaN and infinity.
        return value if np.isfinite(value) else repr(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _digest([value.dtype.str, list(value.shape), _bytes_of(value)])
    if isinstance(value, (list, tuple)):
        return [identity(one, where) for one in value]
    if isinstance(value, Mapping):
        return {str(name): identity(one, f"{where}, {name}") for name, one in value.items()}
    name = str(getattr(value, "__qualname__", getattr(value, "__name__", "<nameless>")))
    if callable(value) and "<" not in name and not isinstance(value, MethodType):
        return f"{value.__module__}.{name}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        inside = value.get_params(deep=False)
    elif is_dataclass(value) and not isinstance(value, type):
        inside = {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
    else:
        raise ValueError(
            f"{where} is {value!r}, which cannot be recognised when the study resumes. Use plain "
            "values and named functions, or run the study without a folder."
        )
    return {f"{type(value).__module__}.{type(value).__qualname__}": identity(inside, where)}


def _digest(content: object) -> str:
    return digest_of(content, in_order=True)[:32]


def _bytes_of(array: NDArray[Any]) -> str:
    return sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


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
    def seed_of(cls, folder: str | os.PathLike[str], drawn: int) -> int:
        """Seed of the study that is in a folder, or else the one that was drawn."""
        if not (Path(folder) / "study.json").exists():
            return drawn
        return cls.read(folder).record.content["random_state"]

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
