"""A study in a folder: what is finished is kept there, and read again.

The folder has ``study.json``, the plan, and ``shards``, with one Parquet file for each task and
method. Files are written whole or not at all, so that a study can be stopped at any moment and
resumed. Both carry digests, and a shard what it is for: a plan that was altered is refused, and a
shard that is not what was computed for its place is computed again.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade._files import (
    digest_of,
    is_intact,
    json_of,
    kind_of,
    read_whole,
    sweep,
    temporary,
    write_whole,
)
from crossfade.study._estimators import FitEach
from crossfade.study._evaluate import (
    COLUMNS,
    NEW_COLUMNS,
    Columns,
    Note,
    Outcome,
    Plan,
    Shard,
    joined,
)
from crossfade.study._methods import METHODS, Method
from crossfade.study._sources import Participant
from crossfade.tasks import sealed, unsealed

#: What a record says that no row depends on.
_ABOUT = ("window_seconds",)
#: What may be added to a study that is there.
_GROWS = ("methods",)
#: Where a Parquet file keeps what went wrong.
_NOTES = b"crossfade_notes"
#: Bytes of a plan or a shard.
_LARGEST = 1 << 30
#: Shards that are in memory at a time.
_AT_ONCE = 50


class Record:
    """All that the rows of a study depend on, as it is written to ``study.json``."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def of(
        cls,
        plan: Plan,
        participants: Sequence[Participant],
        targets: Sequence[Participant],
        classes: NDArray[Any],
        feature_names: Sequence[str] | None,
        *,
        identified: bool,
    ) -> Record:
        """Record of a study."""
        from crossfade._version import __version__

        aimed_at = {one.name for one in targets}
        content = {
            "crossfade": __version__,
            "budgets": list(plan.budgets),
            "n_splits": plan.n_splits,
            "splits": plan.kind,
            "random_state": plan.seed,
            "classes": classes.tolist(),
            "feature_names": feature_names,
            "tasks": {
                one.name: {
                    "group": one.group,
                    "windows": _digest_of_windows(one),
                    "target": one.name in aimed_at,
                }
                for one in participants
            },
            "methods": {
                name: _description(method, identified) for name, method in plan.methods.items()
            },
        }
        steps = {one.name: one.step for one in participants if one.step is not None}
        if steps:
            content["window_seconds"] = steps
        # What a study did not have before is written only where it differs from what was done then.
        if not plan.forecasts:
            content["forecasts"] = False
        # As it will be when it is read again: no tuples, no numbers of numpy.
        return cls(json.loads(json.dumps(content)))

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Record of the study in a folder."""
        path = folder / "study.json"
        try:
            content = json_of(read_whole(path, _LARGEST))
            if not {"crossfade", "tasks", "methods", "random_state"} <= content.keys():
                raise ValueError("it has other contents")
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no study in {folder}: it has no study.json."
            ) from None
        except (ValueError, AttributeError) as reason:
            why = str(reason).rstrip(".")
            raise ValueError(f"{path} is not the plan of a study: {why}.") from reason
        checksum = content.pop("sha256", None)
        if not is_intact(content, checksum, in_order=True):
            how = "has no checksum: an older Crossfade wrote it, or it was altered"
            if checksum is not None:
                how = "was altered after it was written: its checksum does not match"
            raise ValueError(f"{path} {how}. Run the study in another folder.")
        return cls(content)

    def text(self) -> str:
        """JSON of the plan, with its checksum."""
        checksum = digest_of(self.content, in_order=True)
        return json.dumps({**self.content, "sha256": checksum}, indent=1)

    @classmethod
    def find(cls, folder: Path) -> Record | None:
        """Record of the study in a folder, if there is one."""
        return cls.read(folder) if (folder / "study.json").exists() else None

    def shards(self) -> list[Shard]:
        """All shards, in the order of the rows."""
        tasks: Mapping[str, Any] = self.content["tasks"]
        return [
            Shard(name, method)
            for name, task in tasks.items()
            if task["target"]
            for method in self.content["methods"]
        ]

    def drawn_from(self) -> dict[str, str]:
        """For each task a digest of what its splits are drawn from."""
        how = [self.content["splits"], self.content["random_state"]]
        # Whether a task is a target depends on the budgets, and its splits do not.
        return {
            name: _digest([how, task["group"], task["windows"]])
            for name, task in self.content["tasks"].items()
        }

    def differences(self, other: Record) -> list[str]:
        """How another plan differs from this one, but for methods that only one of them has."""
        found = []
        for name in {**self.content, **other.content}:
            there, here = self.content.get(name), other.content.get(name)
            if name not in ("tasks", *_GROWS, *_ABOUT) and _digest(here) != _digest(there):
                found.append(f"{name} is {there!r} there and {here!r} here")
        there, here = self.content["tasks"], other.content["tasks"]
        if there != here:
            names = {
                "missing here": [name for name in there if name not in here],
                "new": [name for name in here if name not in there],
                "changed": [name for name in there if name in here and there[name] != here[name]],
            }
            found += [f"tasks are {how}: {_listed(some)}" for how, some in names.items() if some]
        elif list(there) != list(here):
            found.append("the tasks have another order")
        there, here = self.content["methods"], other.content["methods"]
        for name in here:
            # To Python 1 is 1.0, but to an estimator it may not be.
            if name in there and _digest(there[name]) != _digest(here[name]):
                found.append(f"method {name!r} is {there[name]} there and {here[name]} here")
        return found


class Shelf(NamedTuple):
    """Where shards of one study are written; small, so that it can be sent to a worker.

    `common` is a digest of what all shards depend on, `methods` what tells them apart by name.
    """

    folder: Path
    common: str
    methods: Mapping[str, Any]
    #: A file that is there while the study runs: who sees it sees the folder.
    beacon: Path | None = None

    def path(self, shard: Shard) -> Path:
        """File of a shard."""
        task, method = shard
        digest = _digest([self.common, task, self.methods[method], method])
        return self.shards / f"{digest}.parquet"

    @property
    def shards(self) -> Path:
        """Folder of the files."""
        return self.folder / "shards"

    def write(self, shard: Shard, outcome: Outcome) -> None:
        """Keep a shard."""
        import pyarrow as pa

        table = pa.table({name: pa.array(values) for name, values in outcome.columns.items()})
        table = table.replace_schema_metadata({_NOTES: json.dumps(outcome.notes)})
        path = self.path(shard)
        content = sealed(table, "shard", path.stem)
        try:
            write_whole(path, content)
        except OSError as reason:
            if not path.parent.is_dir():
                raise FileNotFoundError(
                    errno.ENOENT,
                    "The folder of the study has disappeared while it was running. Put it back, if "
                    "it was moved, and run the study again",
                    str(self.folder),
                ) from reason
            if isinstance(reason, FileExistsError):
                raise FileExistsError(
                    f"Could not write {path}: it is {kind_of(path)}. Finished parts are kept; "
                    "remove it and run the study again."
                ) from reason
            raise OSError(
                reason.errno or errno.EIO,
                f"A part of the study could not be written ({reason.strerror or reason}). Those "
                "before it are kept: run it again when that is mended",
                str(path),
            ) from reason


class Store:
    """A folder with the finished shards of one study."""

    def __init__(self, folder: Path, record: Record) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as reason:
            raise ImportError(
                "A study in a folder is written as Parquet, which needs pyarrow. Install "
                "crossfade[tables], or run the study without a folder."
            ) from reason
        self._record = record
        common = {
            name: part for name, part in record.content.items() if name not in (*_GROWS, *_ABOUT)
        }
        self.shelf = Shelf(folder.absolute(), _digest(common), record.content["methods"])

    @classmethod
    def open(cls, folder: str | os.PathLike[str], record: Record) -> Store:
        """Begin a study in a folder, or go on with the one that is there."""
        store = cls(Path(folder), record)
        path = Path(folder) / "study.json"
        known: dict[str, Any] = {"methods": {}}
        there = Record.find(path.parent)
        if there is not None:
            differences = there.differences(record)
            if differences:
                raise ValueError(
                    f"There is another study in {folder}: {'; '.join(differences)}. Choose another "
                    "folder, or go on with the arguments that it was begun with."
                )
            known |= {name: there.content[name] for name in _GROWS if name in there.content}
        grown: dict[str, Any] = {"methods": {**known["methods"], **record.content["methods"]}}
        if any(part != known[name] for name, part in grown.items()):
            plan = Record({**record.content, **grown})
            try:
                store.shelf.shards.mkdir(parents=True, exist_ok=True)
                write_whole(path, plan.text().encode())
            except OSError as reason:
                raise OSError(
                    reason.errno or errno.EIO,
                    f"A study cannot be kept in {folder}: {reason.strerror or reason}. "
                    "Choose another folder.",
                ) from reason
        return store

    @contextmanager
    def shown(self) -> Iterator[Shelf]:
        """Shelf for workers of other machines, who write themselves if they see its beacon."""
        sweep(self.shelf.folder)
        with temporary(self.shelf.folder) as beacon:
            yield self.shelf._replace(beacon=beacon)
        # A worker that was lost may have left a file, and the cache says that all were removed.
        sweep.__wrapped__(self.shelf.shards)

    def finished(self) -> tuple[dict[Shard, list[Note]], list[str]]:
        """Notes of the shards of the plan that are there, in order; why others are refused."""
        found, refused = {}, []
        for shard in self._record.shards():
            try:
                found[shard] = self._read(shard).notes
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as reason:
                refused.append(f"Task {shard.task!r}, method {shard.method!r}: {reason}")
        return found, refused

    def read(self, shards: Sequence[Shard], at_once: int = _AT_ONCE) -> Iterator[Columns]:
        """Rows of finished shards, some at a time, in order."""
        for first in range(0, len(shards), at_once):
            try:
                parts = [self._read(shard).columns for shard in shards[first : first + at_once]]
            except OSError as reason:
                raise FileNotFoundError(
                    errno.ENOENT,
                    "The rows of the study are no longer where they were written. Put the folder "
                    "back, or run the study again",
                    str(self.shelf.folder),
                ) from reason
            yield joined(parts)

    def _read(self, shard: Shard) -> Outcome:
        """Outcome of a shard; refuses what was not written for this place."""
        path = self.shelf.path(shard)
        table = unsealed(path, read_whole(path, _LARGEST), "shard", path.stem)
        columns = {name: table[name].to_numpy() for name in table.column_names}
        _check_rows(columns, shard.task, shard.method)
        notes = json_of(table.schema.metadata[_NOTES])
        return Outcome(columns, [Note(*note) for note in notes])


def _check_rows(columns: Mapping[str, NDArray[Any]], task: str, method: str) -> None:
    """Refuse rows that no method can have left here, whatever their seal says."""
    for name, kind in COLUMNS.items():
        values = columns.get(name)
        if values is None and name not in NEW_COLUMNS:
            raise ValueError(f"It lacks the column {name!r}.")
        if values is not None and kind is not object and values.dtype.kind not in "fiu":
            raise ValueError(f"Its column {name!r} holds no numbers.")
    if {*columns["task"]} - {task} or {*columns["method"]} - {method}:
        raise ValueError("It holds rows of another task or method.")
    for name in ("balanced_accuracy", "accuracy"):
        if (np.abs(columns[name] - 0.5) > 0.5 + 1e-9).any():
            raise ValueError(f"Its column {name!r} is not from 0 to 1.")


def identity(value: object, where: str) -> Any:
    """What tells an estimator from another one, as JSON holds it; nothing is pickled."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        # JSON would read a NaN that equals nothing.
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _digest_of_array(value)
    if isinstance(value, (list, tuple)):
        return [identity(one, f"{where}[{place}]") for place, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(name): identity(one, f"{where}[{name!r}]") for name, one in value.items()}
    name = str(getattr(value, "__qualname__", getattr(value, "__name__", "<nameless>")))
    if callable(value) and "<" not in name and not isinstance(value, MethodType):
        return f"{value.__module__}.{name}"
    if isinstance(value, type) or not (hasattr(value, "get_params") or is_dataclass(value)):
        raise ValueError(
            f"{where} is {value!r}, which cannot be told from another one when the study goes on. "
            "Use plain values and functions that have a name, or run the study without a folder."
        )
    if is_dataclass(value):
        inside = {one.name: getattr(value, one.name) for one in fields(value)}
    else:
        inside = value.get_params(deep=False)
    named = {name: identity(one, f"{where}, {name}") for name, one in inside.items()}
    return {f"{type(value).__module__}.{type(value).__qualname__}": named}


def _digest(content: object) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()[:32]


def _digest_of_array(array: NDArray[Any]) -> str:
    head = f"{array.dtype.str} {array.shape} "
    return sha256(head.encode() + np.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def _description(method: Method, identified: bool) -> Any:
    """What tells a method apart from another of the same name."""
    if isinstance(method.run, FitEach):
        what = f"Method {method.name!r}"
        return identity(method.run.estimator, what) if identified else method.name
    return method.name if METHODS.get(method.name) == method else method.label


def _digest_of_windows(one: Participant) -> str:
    return _digest([_digest_of_array(one.X), _digest_of_array(one.label.astype(np.int8))])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
