"""Cases of files: damaged, or hostile under a right checksum."""

import hashlib
import io
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import edfio
import numpy as np
import pandas as pd
from scipy.io import savemat

from crossfade import (
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    TaskSet,
    export_model,
    load_model,
    read_tasks,
    save_model,
)
from crossfade.signals.recordings import open_recording
from tests.fuzz import _hostile as hostile
from tests.fuzz._hostile import pick, seldom

D, NAMES = 3, ("a", "b", "c")


class Kind(NamedTuple):
    """A kind of file: how it ends, what is in it, how it is read, and what of it must be as it was.

    `told` of what was read must equal `told` of the original.
    """

    suffix: str
    content: bytes
    read: Callable
    told: Callable


def people(n_people=7, names=(0, 1), seed=0):
    """Tasks of people who are somewhat alike."""
    tasks = hostile.people(D, n_people, (9,) * len(names), seed, names)
    return TaskSet(replace(task, feature_names=NAMES) for task in tasks)


def few(names=(0, 1)):
    """Windows of a newcomer."""
    [task] = people(1, names, seed=1)
    return pd.DataFrame(task.X, columns=list(NAMES)), task.y


def _told_of_tasks(tasks):
    return [(task.name, np.asarray(task.X).tobytes(), task.y.tolist()) for task in tasks]


def _told_of_model(model):
    X = np.linspace(-2.0, 2.0, 5 * D).reshape(5, D)
    return [model.predict_proba(pd.DataFrame(X, columns=list(NAMES))).tobytes(), model.card()]


def _written(name, write):
    """Bytes that a writer of ours leaves under a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


@cache
def kinds():
    """All kinds of single files, made once."""
    many_names = ("a", "b", "c")
    prior = TaskPrior.from_tasks(people())
    many = TaskPrior.from_tasks(people(names=many_names))
    rules = {
        "model": PosteriorBlendClassifier(prior).fit(*few()),
        "model of many": HierarchicalBlendClassifier(many).fit(*few(many_names)),
    }
    parquet = _written("t.parquet", people().write)
    found = {"table": Kind(".parquet", parquet, read_tasks, _told_of_tasks)}
    for name, one in {"prior": prior, "prior of many": many}.items():
        found[name] = Kind(".npz", _written("p.npz", one.save), TaskPrior.load, lambda x: x)
    for name, one in rules.items():
        content = _written("m.json", partial(save_model, one))
        found[name] = Kind(".json", content, load_model, _told_of_model)
    return found


@cache
def original(name):
    """What is told of what was written to a file of a kind."""
    kind = kinds()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"whole{kind.suffix}"
        path.write_bytes(kind.content)
        return kind.told(kind.read(path))


def damaged(rng, content):
    """Content with random damage."""
    n = len(content)
    place, length, other = (int(rng.integers(top)) for top in (n, 64, n))
    end = place + length + 1
    flipped = bytearray(content)
    flipped[place] ^= 1 << int(rng.integers(8))
    ways = (
        lambda: bytes(flipped),
        lambda: bytes(flipped),
        lambda: content[:place],
        lambda: content[:place] + content[end:],
        lambda: content[:place] + bytes(length) + content[place + length :],
        lambda: content[:place] + rng.bytes(length) + content[place:],
        lambda: content + rng.bytes(length + 1),
        lambda: content[:place] + content[other : other + length] + content[place + length :],
        lambda: content + content,
        lambda: b"",
    )
    return pick(rng, ways)()


def case_damage(trial):
    """A file that was damaged is refused, or says what it said."""
    name = pick(trial.rng, list(kinds()))
    kind = kinds()[name]
    path = trial.folder / f"damaged{kind.suffix}"
    for _ in range(6):
        path.write_bytes(damaged(trial.rng, kind.content))
        found = trial.call(kind.read, path)
        if found is not None:
            trial.check(kind.told(found) == original(name), f"a damaged {name} was believed")


def unpacked(content):
    """Header and arrays of a prior's file (docs/sharing.md)."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays.pop("sha256")
    return json.loads(arrays.pop("header").tobytes()), arrays


def packed(header, arrays):
    """A prior's file with a right checksum."""
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text)
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    members = {"header": np.frombuffer(text, np.uint8)} | arrays
    content = io.BytesIO()
    np.savez(content, sha256=np.frombuffer(digest.digest(), np.uint8), **members)
    return content.getvalue()


def sealed_model(fields):
    """A model's file with a right checksum."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return json.dumps(fields | {"sha256": hashlib.sha256(text.encode()).hexdigest()})


def odd_value(rng):
    """Something else in the place of a value of JSON."""
    deep = 1
    for _ in range(int(rng.integers(1, 30))):
        deep = [deep]
    others = (None, True, -1, 0, 1e308, 5, "", "x", "\x00", [], {}, [1, "a"], {"a": {}}, deep)
    return pick(rng, (*others, 2**70, -0.5, [0, 0], ["a", "a"], [1, 0], "NaN"))


def odd_array(rng, a):
    """Something else in the place of an array of numbers."""
    ways = (
        lambda: np.full(a.shape, np.nan),
        lambda: np.where(rng.random(a.shape) < 0.3, np.inf, a),
        lambda: -a,
        lambda: a * 10.0 ** rng.integers(-320, 308),
        lambda: a[..., :-1] if a.ndim else a[None],
        lambda: a[None],
        lambda: np.zeros(a.shape),
        lambda: rng.normal(size=a.shape),
        lambda: np.zeros((0, 3)),
        lambda: np.full(a.shape, 1e100),
    )
    with np.errstate(all="ignore"):
        return pick(rng, ways)()


def changed(rng, tree):
    """A tree of JSON with one thing in it changed, taken out or put in."""
    if isinstance(tree, dict) and tree and not seldom(rng, 8):
        name = pick(rng, list(tree))
        if seldom(rng, 5):
            return {key: value for key, value in tree.items() if key != name}
        return tree | ({f"{name}_": 1} if seldom(rng, 12) else {name: changed(rng, tree[name])})
    if isinstance(tree, list) and tree and not seldom(rng, 3):
        place = int(rng.integers(len(tree)))
        return [changed(rng, one) if place == k else one for k, one in enumerate(tree)]
    return odd_value(rng)


def case_hostile_prior(trial):
    """A prior of nonsense with a right checksum is refused, or a rule of it has finite answers."""
    rng, many = trial.rng, bool(seldom(trial.rng, 3))
    header, arrays = unpacked(kinds()["prior of many" if many else "prior"].content)
    for _ in range(int(rng.integers(1, 3))):
        if seldom(rng, 2):
            header = changed(rng, header)
        else:
            name = pick(rng, list(arrays))
            arrays = arrays | {name: odd_array(rng, arrays[name])}
    path = trial.folder / "hostile.npz"
    path.write_bytes(packed(header, arrays))
    prior = trial.call(TaskPrior.load, path)
    if prior is None or prior.n_features != D:
        return
    X, y = few(NAMES if many else (0, 1))
    X = X.set_axis(list(prior.feature_names or NAMES), axis=1)
    rule = trial.call(HierarchicalBlendClassifier(prior).fit, X, y)
    if rule is not None:
        chance = trial.call(rule.predict_proba, X)
        trial.check(chance is None or np.isfinite(chance).all(), "probabilities are no numbers")


def case_hostile_model(trial):
    """A model of nonsense with a right checksum is refused, or predicts numbers."""
    models = [name for name in kinds() if name.startswith("model")]
    fields = json.loads(kinds()[pick(trial.rng, models)].content)
    seal = fields.pop("sha256")
    trial.check(json.loads(sealed_model(fields))["sha256"] == seal, "the seal is another one")
    for _ in range(int(trial.rng.integers(1, 3))):
        fields = changed(trial.rng, fields)
    if not isinstance(fields, dict):
        return
    path = trial.folder / "hostile.json"
    path.write_text(sealed_model(fields))
    model = trial.call(load_model, path)
    if model is None:
        return
    chances = [
        trial.call(model.predict_proba, given)
        for X in (np.linspace(-2.0, 2.0, 5 * D).reshape(5, -1),)
        for given in (X, pd.DataFrame(X, columns=list(NAMES)))
    ]
    for chance in chances:
        inside = chance is None or ((chance >= 0.0) & (chance <= 1.0)).all()
        trial.check(inside, "probabilities out of range")
    trial.check("\x00" not in trial.must(model.card), "an odd card")
    header = trial.folder / "hostile.h"
    header.unlink(missing_ok=True)
    trial.call(export_model, model, header)
    if header.exists():
        text = header.read_text()
        trial.check(text.count("*/") == text.count("/*"), "a comment of the header was broken")
        trial.check(not re.search(r"\b(nan|inf)\b", text.split("*/")[1]), "no number in the header")


def case_hostile_table(trial):
    """A table of nonsense is refused, or its tasks are numbers."""
    rng, frame = trial.rng, people().to_frame()
    name = pick(rng, list(frame.columns))
    odd = (None, np.nan, np.inf, -1e308, 1e-320, "x", "", " ", "p0 ", True, 2**62, "1e5", "\u200b")
    column = frame[name].astype(object)
    column[rng.random(len(frame)) < pick(rng, (0.02, 0.5, 1.0))] = pick(rng, odd)
    frame[name] = column
    renamed = {name: pick(rng, ("", " a", "label", "Task", "a\n", "b"))}
    ways = (
        lambda: frame,
        lambda: frame.rename(columns=renamed),
        lambda: frame.drop(columns=name),
        lambda: frame.iloc[: int(rng.integers(5))],
        lambda: pd.concat([frame, frame]),
        lambda: frame.assign(when=pd.Timestamp("2024-01-01")),
    )
    path = trial.folder / "t.csv"
    pick(rng, ways)().to_csv(path, index=bool(rng.integers(2)))
    for task in trial.call(read_tasks, path) or ():
        trial.check(np.isfinite(task.X).all(), "a feature is no number")
        trial.check(len(task.y) == len(task.X), "labels and rows differ")


@cache
def recordings():
    """A small recording of every kind, by the end of its name."""
    data = 20.0 * np.random.default_rng(0).standard_normal((2, 300))
    names, about = ("Fz", "Cz"), {"physical_dimension": "uV"}
    edf = [
        edfio.EdfSignal(row, 100.0, label=n, **about) for row, n in zip(data, names, strict=True)
    ]
    bdf = [
        edfio.BdfSignal(row, 100.0, label=n, **about) for row, n in zip(data, names, strict=True)
    ]
    told = [edfio.EdfAnnotation(1.0, None, "rest")]
    matlab = {"data": data, "fs": 100.0, "ch_names": np.array(names, object)}
    return {
        ".edf": _written("r.edf", edfio.Edf(edf, annotations=told).write),
        ".bdf": _written("r.bdf", edfio.Bdf(bdf).write),
        ".mat": _written("r.mat", lambda path: savemat(path, matlab)),
    }


def case_recording(trial):
    """A damaged recording is refused in words, or its samples are numbers of the right shape."""
    suffix = pick(trial.rng, list(recordings()))
    path = trial.folder / f"r{suffix}"
    for _ in range(4):
        path.write_bytes(damaged(trial.rng, recordings()[suffix]))
        recording = trial.call(open_recording, path)
        if recording is None:
            continue
        names = list(recording.ch_names[:2])
        data = trial.call(recording.read, names)
        if data is not None:
            trial.check(data.ndim == 2 and len(data) == len(names), "another shape")


CASES = {
    "damage": (case_damage, 6),
    "hostile prior": (case_hostile_prior, 5),
    "hostile model": (case_hostile_model, 4),
    "hostile table": (case_hostile_table, 2),
    "recording": (case_recording, 4),
}
