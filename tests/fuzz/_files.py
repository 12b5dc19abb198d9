"""Cases of files: tables, priors, models and studies, damaged, or hostile under a right digest."""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from crossfade.prior._archive import pack, unpack

from crossfade import (
    CalibrationStudy,
    HierarchicalBlendClassifier,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    TaskSet,
    export_model,
    load_model,
    read_tasks,
    save_model,
)
from crossfade._files import digest_of
from crossfade.study import StudyResult
from crossfade.study._evaluate import Outcome
from crossfade.study._store import Store
from crossfade.tasks import sealed
from tests.fuzz._hostile import pick, seldom

D = 3


# -- what is damaged -------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of file: how it ends, what is in it, how it is read, and what of it must be as it was.

    `told` of what was read must equal `told` of the original, if the file is ours.
    """

    suffix: str
    content: bytes
    read: Callable
    told: Callable


def people(n_people=7, n_each=9, names=(0, 1), seed=0):
    """Tasks of people who are somewhat alike."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(len(names)), n_each)
    shift = np.outer(label, [1.0, 0.5, -0.5])
    return TaskSet(
        Task(
            rng.normal(size=(label.size, D)) + shift + rng.normal(size=D),
            np.array(names)[label],
            f"p{place}",
            feature_names=("a", "b", "c"),
        )
        for place in range(n_people)
    )


def few():
    """Windows of a newcomer."""
    task = people(1, 4, seed=1)[0]
    return pd.DataFrame(task.X, columns=list("abc")), task.y


def _told_of_tasks(tasks):
    return [(task.name, np.asarray(task.X).tobytes(), task.y.tolist()) for task in tasks]


def _told_of_model(model):
    X = np.linspace(-2.0, 2.0, 5 * D).reshape(5, D)
    frame = pd.DataFrame(X, columns=list("abc"))
    told = [model.predict_proba(frame).tobytes(), model.classes_.tolist(), model.alpha_]
    return [*told, model.expected_accuracy_, model.prior_, model.n_labelled_]


def _written(name, write):
    """Bytes that a writer of ours leaves under a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


@cache
def kinds():
    """All kinds of single files, made once."""
    tasks = people()
    prior = TaskPrior.from_tasks(tasks)
    rule = PosteriorBlendClassifier(prior).fit(*few())
    tasks_of_many = people(7, 6, ("a", "b", "c"))
    many = TaskPrior.from_tasks(tasks_of_many[1:])
    X, y = pd.DataFrame(tasks_of_many[0].X, columns=list("abc")), tasks_of_many[0].y
    rules = {
        "model": rule,
        "model of means": HierarchicalBlendClassifier(many).fit(X, y),
        "model of pairs": MulticlassBlend(PosteriorBlendClassifier(many)).fit(X, y),
        "model of rests": MulticlassBlend(PosteriorBlendClassifier(), "one-vs-rest").fit(X, y),
    }
    return {
        "csv": Kind(".csv", _written("t.csv", tasks.write), read_tasks, _told_of_tasks),
        "parquet": Kind(".parquet", _written("t.parquet", tasks.write), read_tasks, _told_of_tasks),
        **{
            type(one).__name__: Kind(".npz", _written("p", one.save), type(one).load, lambda x: x)
            for one in (prior, many)
        },
        **{
            name: Kind(".json", _written("m", partial(save_model, one)), load_model, _told_of_model)
            for name, one in rules.items()
        },
    }


def damaged(rng, content):
    """Content with random damage."""
    n = len(content)
    place, length = int(rng.integers(n)), int(rng.integers(1, 64))
    other = int(rng.integers(n))
    block = content[place : place + length]
    ways = (
        lambda: _flipped(content, place, rng),
        lambda: _flipped(content, place, rng),
        lambda: content[:place],
        lambda: content[:place] + content[place + length :],
        lambda: content[:place] + bytes(len(block)) + content[place + length :],
        lambda: content[:place] + rng.bytes(len(block)) + content[place + length :],
        lambda: content[:place] + rng.bytes(length) + content[place:],
        lambda: content + rng.bytes(length),
        lambda: rng.bytes(length) + content,
        lambda: content[:place] + content[other : other + len(block)] + content[place + length :],
        lambda: content + content,
        lambda: b"",
    )
    return pick(rng, ways)()


def _flipped(content, place, rng):
    part = bytearray(content)
    part[place] ^= 1 << int(rng.integers(8))
    return bytes(part)


def case_damage(trial):
    """A file that was damaged is refused, or says what it said."""
    name = pick(trial.rng, list(kinds()))
    kind = kinds()[name]
    path = trial.folder / f"damaged{kind.suffix}"
    for _ in range(6):
        content = damaged(trial.rng, kind.content)
        path.write_bytes(content)
        found = trial.call(kind.read, path)
        # CSV is everybody's, and has no digest.
        if found is not None and content != kind.content and name != "csv":
            same = kind.told(found) == kind.told(original(name))
            trial.check(same, f"a damaged {name} was believed")


@cache
def original(name):
    """What was written to a file of a kind."""
    kind = kinds()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"whole{kind.suffix}"
        path.write_bytes(kind.content)
        return kind.read(path)


# -- hostile content under a right digest ----------------------------------------------------------


def odd_value(rng, value):
    """Something else in the place of a value of JSON."""
    deep: object = 1
    for _ in range(int(rng.integers(1, 30))):
        deep = [deep]
    others = (None, True, -1, 0, 1e308, 5, "", "x", "\x00", [], {}, [1, "a"], {"a": {}}, deep)
    more = (2**70, [value], {"x": value}, [[value]], -0.5, [0, 0], ["a", "a"], [1, 0], "NaN")
    return pick(rng, (*others, *more))


def odd_array(rng, array):
    """Something else in the place of an array of numbers."""
    a = np.array(array, np.float64)
    ways = (
        lambda: np.full(a.shape, np.nan),
        lambda: np.where(rng.random(a.shape) < 0.3, np.inf, a),
        lambda: -a,
        lambda: a * 10.0 ** rng.integers(-320, 308),
        lambda: a[..., :0],
        lambda: a[..., :-1],
        lambda: a[None],
        lambda: a.ravel(),
        lambda: np.zeros(a.shape),
        lambda: rng.normal(size=a.shape),
        lambda: np.concatenate([a, a], -1) if a.ndim else a,
        lambda: np.zeros(0),
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
        if seldom(rng, 12):
            return tree | {f"{name}_": 1}
        return tree | {name: changed(rng, tree[name])}
    if isinstance(tree, list) and tree and not seldom(rng, 3):
        place = int(rng.integers(len(tree)))
        return [changed(rng, one) if place == k else one for k, one in enumerate(tree)]
    return odd_value(rng, tree)


def case_hostile_prior(trial):
    """A prior of nonsense with a right checksum is refused, or a rule of it has finite answers."""
    rng = trial.rng
    kind = pick(rng, [TaskPrior, MulticlassPrior])
    header, arrays = unpack("p", kinds()[kind.__name__].content, kind.__name__)
    for _ in range(int(rng.integers(1, 3))):
        if seldom(rng, 2):
            header = changed(rng, header)
        else:
            name = pick(rng, list(arrays))
            arrays = arrays | {name: odd_array(rng, arrays[name])}
            if seldom(rng, 5):
                del arrays[name]
    path = trial.folder / "hostile.npz"
    try:
        path.write_bytes(pack(header, arrays))
    except (ValueError, OverflowError, TypeError):
        return
    prior = trial.call(kind.load, path)
    if prior is None or kind is MulticlassPrior or prior.n_features != D:
        return
    X, y = few()
    prior_names = prior.feature_names or tuple("abc")
    rule = trial.call(PosteriorBlendClassifier(prior).fit, X.set_axis(list(prior_names), axis=1), y)
    if rule is not None:
        chance = trial.call(rule.predict_proba, X.set_axis(list(prior_names), axis=1))
        trial.check(chance is None or np.isfinite(chance).all(), "probabilities are no numbers")


def case_hostile_model(trial):
    """A model of nonsense with a right checksum is refused, or predicts numbers."""
    models = [name for name in kinds() if name.startswith("model")]
    fields = json.loads(kinds()[pick(trial.rng, models)].content)
    fields.pop("sha256")
    for _ in range(int(trial.rng.integers(1, 3))):
        fields = changed(trial.rng, fields)
    if not isinstance(fields, dict):
        return
    path = trial.folder / "hostile.json"
    path.write_text(json.dumps(fields | {"sha256": digest_of(fields)}))
    model = trial.call(load_model, path)
    if model is None:
        return
    names = getattr(model, "feature_names_in_", None)
    X = np.linspace(-2.0, 2.0, 5 * model.n_features_in_).reshape(5, -1)
    given = X if names is None else pd.DataFrame(X, columns=names)
    chance = trial.must(model.predict_proba, given)
    trial.check(np.isfinite(chance).all(), "probabilities are no numbers")
    trial.check((chance >= 0.0).all() and (chance <= 1.0).all(), "probabilities out of range")
    trial.check(set(trial.must(model.predict, given)) <= set(model.classes_), "another label")
    if model._forecast is not None:
        lower, upper = trial.must(model.expected_accuracy_interval)
        trial.check(0.0 <= lower <= upper <= 1.0, "an interval out of range")
    card = trial.must(model.card)
    trial.check("\x00" not in card and card.startswith("# Model of one person"), "an odd card")
    header = trial.folder / "hostile.h"
    header.unlink(missing_ok=True)
    trial.call(export_model, model, header)
    if header.exists():
        text = header.read_text()
        trial.check(text.count("*/") == text.count("/*"), "a comment of the header was broken")
        trial.check(not re.search(r"\b(nan|inf)\b", text.split("*/")[1]), "no number in the header")


def case_hostile_table(trial):
    """A table of nonsense under a right seal, or as CSV, is refused, or its tasks are numbers."""
    rng = trial.rng
    frame = people().to_frame()
    name = pick(rng, list(frame.columns))
    rows = rng.random(len(frame)) < pick(rng, (0.02, 0.5, 1.0))
    odd = pick(
        rng,
        (None, np.nan, np.inf, -1e308, 1e-320, "x", "", " ", "p0 ", True, 2**62, "1e5", "\u200b"),
    )
    column = frame[name].astype(object)
    column[rows] = odd
    frame[name] = column
    ways = (
        lambda: frame,
        lambda: frame.rename(columns={name: pick(rng, ("", " a", "label", "Task", "a\n", "b"))}),
        lambda: frame.drop(columns=name),
        lambda: frame.iloc[:0],
        lambda: frame.iloc[: int(rng.integers(1, 5))],
        lambda: pd.concat([frame, frame]),
        lambda: frame.sample(frac=1.0, random_state=0),
        lambda: frame.assign(when=pd.Timestamp("2024-01-01")),
        lambda: frame.assign(deep=[[1]] * len(frame)),
    )
    made = pick(rng, ways)()
    path = trial.folder / pick(rng, ("t.csv", "t.parquet"))
    if path.suffix == ".csv":
        made.to_csv(path, index=bool(rng.integers(2)))
    else:
        try:
            table = pa.Table.from_pandas(made, preserve_index=bool(rng.integers(2)))
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return
        path.write_bytes(sealed(table, "table"))
    tasks = trial.call(read_tasks, path)
    if tasks is not None:
        for task in tasks:
            trial.check(np.isfinite(task.X).all(), "a feature is no number")
            trial.check(len(task.y) == len(task.X), "labels and rows differ")


# -- studies ---------------------------------------------------------------------------------------


@cache
def study():
    """A finished study in a folder that stays, and its rows by task and method."""
    folder = Path(tempfile.mkdtemp(prefix="crossfade-fuzz-"))
    run = CalibrationStudy(
        people(5), methods=["target", "posterior"], budgets=[2], n_splits=2, random_state=0
    )
    rows = run.run(folder=folder).rows.drop(columns="seconds")
    return run, folder, rows


def case_study(trial):
    """Of a study whose files were damaged, replaced or made up, no false row is believed."""
    rng = trial.rng
    run, made, rows = study()
    folder = trial.folder / "study"
    shutil.copytree(made, folder)
    try:
        shards = sorted((folder / "shards").glob("*.parquet"))
        one, other = (shards[k] for k in rng.choice(len(shards), 2, replace=False))
        edited = False

        def edit():
            nonlocal edited
            edited = True
            _edited(rng, folder, rows)

        plan = folder / "study.json"
        ways = (
            lambda: one.write_bytes(damaged(rng, one.read_bytes())),
            lambda: one.write_bytes(damaged(rng, one.read_bytes())),
            lambda: one.write_bytes(other.read_bytes()),
            lambda: plan.write_bytes(damaged(rng, plan.read_bytes())),
            lambda: plan.write_text(json.dumps(changed(rng, json.loads(plan.read_text())))),
            edit,
        )
        pick(rng, ways)()
        loaded = trial.call(StudyResult.load, folder)
        resumed = trial.call(run.run, folder=folder) if seldom(rng, 3) else None
        for result in (loaded, resumed):
            if result is None:
                continue
            found = result.rows.drop(columns="seconds")
            scores = found[["balanced_accuracy", "accuracy"]].to_numpy()
            trial.check(
                not (np.isinf(scores).any() or (scores < 0.0).any() or (scores > 1.0).any()),
                "an accuracy out of range was believed",
            )
            if not edited:
                keys = ["task", "method", "budget", "split"]
                both = found.merge(rows, how="left", indicator=True)
                trial.check((both["_merge"] == "both").all(), f"rows were believed: {keys}")
    finally:
        shutil.rmtree(folder)


def _edited(rng, folder, rows):
    """Write a shard of nonsense under a right seal."""
    store = Store.read(folder)
    shard = pick(rng, store.record.shards())
    part = rows[(rows["task"] == shard.task) & (rows["method"] == shard.method)]
    columns = {name: part[name].to_numpy() for name in part} | {"seconds": np.zeros(len(part))}
    name = pick(rng, list(columns))
    ways = (
        lambda: columns | {name: odd_array(rng, np.zeros(len(part)))},
        lambda: {key: value for key, value in columns.items() if key != name},
        lambda: {key: value[:0] for key, value in columns.items()},
        lambda: columns | {name: np.array(["x"] * len(part))},
        lambda: columns | {"balanced_accuracy": np.full(len(part), 7.0)},
        lambda: {key: np.concatenate([value, value]) for key, value in columns.items()},
    )
    made = pick(rng, ways)()
    if len({len(value) for value in made.values()}) > 1 or any(v.ndim != 1 for v in made.values()):
        return
    store.write(shard, Outcome(pd.DataFrame(made), []))


# -- what unpacks to more than there is ------------------------------------------------------------


def case_bomb(trial):
    """Files that unpack to gigabytes, or nest without end, are refused at once."""
    rng = trial.rng
    path = trial.folder / "bomb"
    depth = int(rng.integers(1_000, 200_000))
    way = int(rng.integers(4))
    if way == 0:
        content = io.BytesIO()
        np.savez_compressed(content, header=np.zeros(int(rng.integers(1, 20)) << 20, np.uint8))
        path.write_bytes(content.getvalue())
        read = pick(rng, (TaskPrior.load, TaskPrior.load))
    elif way == 1:
        path.write_text(pick(rng, ("[", '{"a":')) * depth)
        read = load_model
    elif way == 2:
        nested = {"format": "crossfade-prior", "version": 3, "kind": "TaskPrior"}
        text = json.dumps(nested)[:-1] + ', "about": ' + "[" * depth + "]" * depth + "}"
        content = io.BytesIO()
        np.savez(
            content,
            header=np.frombuffer(text.encode(), np.uint8),
            sha256=np.zeros(32, np.uint8),
        )
        path.write_bytes(content.getvalue())
        read = TaskPrior.load
    else:
        folder = trial.folder / "nested"
        folder.mkdir(exist_ok=True)
        (folder / "study.json").write_text("[" * depth)
        path, read = folder, StudyResult.load
    found = trial.call(read, path)
    trial.check(found is None, "a bomb was believed")


CASES = {
    "damage": (case_damage, 6),
    "hostile prior": (case_hostile_prior, 5),
    "hostile model": (case_hostile_model, 4),
    "hostile table": (case_hostile_table, 2),
    "study": (case_study, 2),
    "bomb": (case_bomb, 0.3),
}
