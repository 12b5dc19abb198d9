"""A study in a folder: what is finished is kept there, and read again.

The folder has ``study.json``, the plan, and ``shards``, with one Parquet file for each task and
method. Files are written whole or not at all, so that a study can be stopped at any moment and
resumed.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade._atomic import write_whole
from crossfade.study._evaluate import FitEach, Note, Outcome, Plan
from crossfade.study._sources import Participant

#: What a record says that no row depends on.
_ABOUT = ("window_seconds",)
#: Where a Parquet file keeps what went wrong.
_NOTES = b"crossfade_notes"


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
                name: identity(method.run.estimator, f"Method {name!r}")
                if identified and isinstance(method.run, FitEach)
                else name
                for name, method in plan.methods.items()
            },
        }
        steps = {one.name: one.step for one in participants if one.step is not None}
        if steps:
            content["window_seconds"] = steps
        # What a study did not have before is written only where it differs from what was done then.
        if plan.mix is not None:
            content["mix"] = plan.mix
        if not plan.forecasts:
            content["forecasts"] = False
        # As it will be when it is read again: no tuples, no numbers of numpy.
        return cls(json.loads(json.dumps(content)))

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Record of the study in a folder."""
        path = folder / "study.json"
        try:
            content = json.loads(path.read_bytes())
            if not {"crossfade", "tasks", "methods", "random_state"} <= content.keys():
                raise ValueError("it has other contents")
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no study in {folder}: it has no study.json."
            ) from None
        except (ValueError, AttributeError, RecursionError) as reason:
            raise ValueError(f"{path} is not the plan of a study: {reason}.") from reason
        return cls(content)

    @classmethod
    def find(cls, folder: Path) -> Record | None:
        """Record of the study in a folder, if there is one."""
        return cls.read(folder) if (folder / "study.json").exists() else None

    def shards(self) -> list[tuple[str, str]]:
        """Names of the task and the method of each shard, in the order of the rows."""
        tasks: Mapping[str, Any] = self.content["tasks"]
        names = [name for name, task in tasks.items() if task["target"]]
        return [(name, method) for name in names for method in self.content["methods"]]

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
            if name not in ("tasks", "methods", *_ABOUT) and _digest(here) != _digest(there):
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
        self._folder = folder
        self._record = record

    @classmethod
    def open(cls, folder: str | os.PathLike[str], record: Record) -> Store:
        """Begin a study in a folder, or go on with the one that is there."""
        store = cls(Path(folder), record)
        path = store._folder / "study.json"
        known: dict[str, Any] = {}
        there = Record.find(store._folder)
        if there is not None:
            differences = there.differences(record)
            if differences:
                raise ValueError(
                    f"There is another study in {folder}: {'; '.join(differences)}. Choose another "
                    "folder, or go on with the arguments that it was begun with."
                )
            known = there.content["methods"]
        methods = {**known, **record.content["methods"]}
        if methods != known:
            text = json.dumps({**record.content, "methods": methods}, indent=1)
            try:
                (store._folder / "shards").mkdir(parents=True, exist_ok=True)
                write_whole(path, text.encode())
            except OSError as reason:
                raise OSError(
                    reason.errno,
                    f"A study cannot be kept in {folder}: {reason.strerror}. "
                    "Choose another folder.",
                ) from reason
        return store

    def finished(self) -> dict[tuple[str, str], Outcome]:
        """Outcomes of the shards of the plan that are there, in order."""
        found = {shard: self._read(*shard) for shard in self._record.shards()}
        return {shard: outcome for shard, outcome in found.items() if outcome is not None}

    def _read(self, task: str, method: str) -> Outcome | None:
        """Outcome of a shard; None if it is missing, or damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            content = self._path(task, method).read_bytes()
            table = pq.read_table(io.BytesIO(content), page_checksum_verification=True)
            notes = json.loads(table.schema.metadata[_NOTES])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            return None
        columns = {name: table[name].to_numpy() for name in table.column_names}
        return Outcome(columns, [Note(*note) for note in notes])

    def write(self, task: str, method: str, outcome: Outcome) -> None:
        """Keep a shard."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: pa.array(values) for name, values in outcome.columns.items()})
        table = table.replace_schema_metadata({_NOTES: json.dumps(outcome.notes)})
        content = io.BytesIO()
        pq.write_table(table, content, write_page_checksum=True)
        path = self._path(task, method)
        try:
            write_whole(path, content.getvalue())
        except OSError as reason:
            raise OSError(
                reason.errno,
                f"A part of the study could not be written ({reason.strerror}). Those before it "
                "are kept: run it again when that is mended",
                str(path),
            ) from reason

    def _path(self, task: str, method: str) -> Path:
        digest = _digest([self._common, task, self._record.content["methods"][method], method])
        return self._folder / "shards" / f"{digest}.parquet"

    @cached_property
    def _common(self) -> str:
        return _digest(
            {
                name: part
                for name, part in self._record.content.items()
                if name not in ("methods", *_ABOUT)
            }
        )


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


def _digest_of_windows(one: Participant) -> str:
    return _digest([_digest_of_array(one.X), _digest_of_array(one.label.astype(np.int8))])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
