"""Signatures, help texts and refusals that are frozen, all by public names."""

import inspect
import json
import warnings
from contextlib import chdir
from pathlib import Path

import click
import numpy as np
import pandas as pd
from click.testing import CliRunner
from sklearn.exceptions import NotFittedError

import crossfade
from crossfade import (
    CalibrationStudy,
    ConvexBlendClassifier,
    FisherDiscriminant,
    MixturePrior,
    MulticlassBlend,
    MulticlassPrior,
    PosteriorBlendClassifier,
    Release,
    SavedRule,
    Task,
    TaskPrior,
    TaskSet,
    blend_directions,
    choose_alpha,
    conditional_risk,
    expected_risk,
    forecast_labels,
    load_model,
    read_tasks,
    risk_curve,
    save_model,
    simulate,
)
from crossfade.cli import main
from crossfade.study import StudyResult

# -- signatures -----------------------------------------------------------------------------------

#: Methods without a page of their own, which say something in types that are not public.
_INTERNAL = {
    *("psi_parts", "within_spectrum", "neighbour_correlation", "scatter_root"),
    *("mean_square", "isotropic_scatter", "components", "of"),
}
_OPERATORS = ("__add__", "__getitem__", "__len__", "__iter__")


def signatures():
    """Parameters and their defaults, by name; annotations, which name types, are left out."""
    things = {name: getattr(crossfade, name) for name in crossfade.__all__}
    things |= {f"simulate.{name}": getattr(simulate, name) for name in simulate.__all__}
    things["study.StudyResult"] = StudyResult
    found = {}
    for name, thing in things.items():
        if not callable(thing):
            continue
        found[name] = _signature(thing)
        if inspect.isclass(thing):
            found |= {f"{name}.{key}": text for key, text in _members(thing)}
    return found


def _members(thing):
    for name in sorted(dir(thing)):
        member = inspect.getattr_static(thing, name)
        if (name.startswith("_") and name not in _OPERATORS) or name in _INTERNAL:
            continue
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and function.__module__.startswith("crossfade"):
            kind = {classmethod: "classmethod ", staticmethod: "staticmethod "}.get(
                type(member), ""
            )
            yield name, kind + _signature(function)
        elif isinstance(member, property) or hasattr(member, "attrname"):
            yield name, "property"
    for name in getattr(thing, "_fields", getattr(thing, "__dataclass_fields__", ())):
        yield name, "field"


def _signature(thing):
    signature = inspect.signature(thing)
    bare = [
        one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return text.replace("\n", " ")


# -- help texts -----------------------------------------------------------------------------------


def commands(command=main, path=()):
    """Paths of all commands, groups included."""
    yield " ".join(("crossfade", *path))
    if isinstance(command, click.Group):
        # Commands may be imported only when they are asked for.
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            yield from commands(command.get_command(context, name), (*path, name))


def run_command(*words):
    """Run a command in a terminal of fixed width."""
    options = {"prog_name": "crossfade", "terminal_width": 80, "max_content_width": 80}
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, list(words), **options)


def help_of(path):
    """Help text of a command."""
    result = run_command(*path.split()[1:], "--help")
    assert result.exit_code == 0, result.output
    return result.output


# -- what refusals are made from ------------------------------------------------------------------

X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.2], [3.0, 4.0], [4.0, 3.0], [3.5, 3.9]])
Y = np.array([0, 0, 0, 1, 1, 1])
THREE = np.array([0, 0, 1, 1, 2, 2])
W = np.array([[0.6, 0.8], [0.8, 0.6], [1.0, 0.0]])
EYE = np.eye(2)


def _tasks(n=3, labels=(0, 1), **options):
    rng = np.random.default_rng(n)
    y = np.repeat(labels, 6)
    return [
        Task(
            rng.standard_normal((len(y), 2)) + 2.0 * np.repeat(np.arange(len(labels)), 6)[:, None],
            y,
            f"p{place}",
            **options,
        )
        for place in range(n)
    ]


def _prior(**options):
    return TaskPrior.from_projections(W, **options)


def _released():
    release = Release(epsilon=1.0, delta=1e-5, noise=1.0, scale_covered=True)
    return TaskPrior(3, W.sum(0), W.T @ W, np.ones(2), release=release)


def _many(**options):
    return MulticlassPrior.from_tasks(_tasks(labels=("a", "b", "c")), **options)


def _of_three(prior=None, strategy="pairwise", **options):
    blend = PosteriorBlendClassifier(prior, **options)
    return MulticlassBlend(blend, strategy).fit(X, np.array(list("abc"))[THREE])


def _convex(prior=None, X=X, y=Y, **options):
    return ConvexBlendClassifier(prior, **options).fit(X, y)


def _posterior(prior=None, X=X, y=Y, **options):
    return PosteriorBlendClassifier(prior, **options).fit(X, y)


def _fisher(X=X, y=Y, **options):
    return FisherDiscriminant(**options).fit(X, y)


def _choose(prior=None, **options):
    given = {"half_gap": [0.5, 0.1], "covariance": EYE, "n_samples": 8} | options
    return choose_alpha(_prior() if prior is None else prior, **given)


def _study(tasks=None, **options):
    given = {"methods": ["posterior"], "budgets": [2], "n_splits": 1, "random_state": 0} | options
    return CalibrationStudy(_tasks() if tasks is None else tasks, **given)


def _rule(y=Y):
    return PosteriorBlendClassifier().fit(X, y)


def _write(name, content):
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def _saved(prior, name="prior.npz"):
    prior.save(name)
    return name


def _altered(name, change, load):
    with np.load(name) as archive:
        arrays = {key: archive[key] for key in archive.files}
    change(arrays)
    np.savez(name, **arrays)
    return load(name)


def _header(**changes):
    def change(arrays):
        header = json.loads(arrays["header"].tobytes()) | changes
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

    return change


def _model(**changes):
    save_model(_rule(), "model.json")
    fields = json.loads(Path("model.json").read_text()) | changes
    return load_model(_write("model.json", json.dumps(fields)))


def _table(text):
    return read_tasks(_write("tasks.csv", text))


def _frame(**columns):
    whole = {"task": ["p", "p"], "label": [0, 1], "x": [0.1, 0.2]} | columns
    return pd.DataFrame({key: value for key, value in whole.items() if value is not None})


def _named(names):
    return pd.DataFrame(X, columns=names)


def _partial(*chunks, **options):
    blend = PosteriorBlendClassifier(**options)
    for rows, labels in chunks:
        blend.partial_fit(rows, labels)
    return blend


def _domains(domain, y=Y, **options):
    return PosteriorBlendClassifier().fit(X, y, sample_domain=domain, **options)


def _renamed():
    """One task of the same name as before, and others."""
    first, *others = _tasks()
    return [first, *(Task(task.X, task.y, f"new {task.name}") for task in others)]


def _result(**changes):
    return _study(**changes).run()


# -- refusals -------------------------------------------------------------------------------------

NAN = np.where(np.eye(6, 2), np.nan, X)
LAW = {"nu": [0.5, 0.1], "sigma": EYE}
BLEND = {"target": ([1.0, 0.0], EYE), "source": ([0.0, 1.0], EYE)}
ASKEW = [[1.0, 0.5], [0.0, 1.0]]
NEGATIVE = [[1.0, 2.0], [2.0, 1.0]]

REFUSALS = {
    "fit": {
        "one class": lambda: _posterior(y=np.zeros(6)),
        "one class, fisher": lambda: _fisher(y=["rest"] * 6),
        "one class and a prior": lambda: _convex(_prior(classes=(0, 1)), y=np.zeros(6)),
        "three classes": lambda: _convex(y=THREE),
        "nan": lambda: _posterior(X=NAN),
        "one axis": lambda: _posterior(X=X[:, 0]),
        "lengths": lambda: _posterior(y=Y[:4]),
        "continuous labels": lambda: _posterior(y=Y + 0.5 * np.arange(6) / 7),
        "huge features": lambda: _posterior(X=1e150 * X),
        "tiny features": lambda: _fisher(X=1e-150 * X),
        "no difference": lambda: _posterior(X=np.ones((6, 2))),
        "features of the prior": lambda: _posterior(TaskPrior.from_projections(np.eye(3))),
        "names of the prior": lambda: _posterior(
            _prior(feature_names=["a", "b"]), _named(["b", "a"])
        ),
        "classes of the prior": lambda: _posterior(_prior(classes=("rest", "task"))),
        "classes": lambda: _posterior(_prior(), classes=(0, 0)),
        "classes, three": lambda: _posterior(classes=(0, 1, 2)),
        "prior of another type": lambda: _posterior("prior.npz"),
        "prior of many": lambda: _posterior(_many()),
        "alpha negative": lambda: _convex(_prior(), alpha=-0.1),
        "alpha text": lambda: _convex(_prior(), alpha="auto"),
        "alphas": lambda: _convex(_prior(), alphas=[0.0, 1.5]),
        "alphas empty": lambda: _convex(_prior(), alphas=[]),
        "alphas two axes": lambda: _convex(_prior(), alphas=[[0.0, 1.0]]),
        "psi": lambda: _convex(_prior(), psi="paper"),
        "noise": lambda: _convex(_prior(), noise="none"),
        "method": lambda: _convex(_prior(), method="exact"),
        "n_draws": lambda: _convex(_prior(), method="monte_carlo", n_draws=1),
        "weights": lambda: _convex(_prior(), weights="own"),
        "per-task without directions": lambda: _convex(_prior(), weights="per-task"),
        "per-task of the paper": lambda: _convex(
            _prior(keep_directions=True), weights="per-task", psi="authors"
        ),
        "per-task mixture": lambda: _convex(
            MixturePrior.from_projections(W, 1), weights="per-task"
        ),
        "shrinkage": lambda: _posterior(shrinkage="auto"),
        "shrinkage above one": lambda: _fisher(shrinkage=1.5),
        "strength": lambda: _posterior(_prior(), strength="best"),
        "strength negative": lambda: _posterior(_prior(), strength=-1.0),
        "on_missing_class": lambda: _posterior(on_missing_class="drop"),
        "missing without half gap": lambda: _posterior(
            _prior(classes=(0, 1)), y=np.zeros(6), on_missing_class="prior"
        ),
        "missing without names": lambda: PosteriorBlendClassifier(
            TaskPrior.from_tasks(_tasks(labels=("a", "b"))).reversed(), on_missing_class="prior"
        ).fit(X, np.zeros(6)),
        "in_a_row": lambda: _posterior(in_a_row="yes"),
        "class_prior": lambda: _posterior(class_prior=(0.7, 0.7)),
        "class_prior word": lambda: _convex(class_prior="auto"),
        "class_prior of three": lambda: _convex(class_prior=(0.2, 0.3, 0.5)),
        "priors": lambda: _fisher(priors=(0.0, 1.0)),
        "feature_scale word": lambda: _fisher(feature_scale="unit"),
        "feature_scale zero": lambda: _fisher(feature_scale=[0.0, 1.0]),
        "feature_scale length": lambda: _fisher(feature_scale=[1.0]),
        "weights zero": lambda: PosteriorBlendClassifier().fit(X, Y, sample_weight=np.zeros(6)),
        "weights below two": lambda: FisherDiscriminant().fit(X, Y, sample_weight=np.full(6, 0.1)),
        "weights negative": lambda: FisherDiscriminant().fit(X, Y, sample_weight=-np.ones(6)),
        "weights of one class": lambda: FisherDiscriminant().fit(X, Y, sample_weight=Y),
        "cancelling": lambda: _convex(TaskPrior.from_projections([[1.0, 0.0], [-1.0, 0.0]])),
        "cancelling by noise": lambda: _convex(
            TaskPrior(3, W.sum(0), None, np.ones(2), release=Release(1.0, 1e-5, 50.0, True))
        ),
        "paper sign": lambda: ConvexBlendClassifier.paper(sign="unit"),
        "paper step": lambda: ConvexBlendClassifier.paper(step=0.3),
        "paper step zero": lambda: ConvexBlendClassifier.paper(step=0.0),
        "not fitted": lambda: PosteriorBlendClassifier().predict(X),
        "not fitted fisher": lambda: FisherDiscriminant().covariance_,
        "other columns": lambda: _rule().predict(X[:, :1]),
        "domains zero": lambda: _domains([1, 1, 1, 0, 0, 0]),
        "domains of text": lambda: _domains(list("aabbcc")),
        "domains without target": lambda: _domains([1, 2, 1, 2, 1, 2]),
        "domains weighted": lambda: _domains([1, 1, -1, 1, 1, -1], sample_weight=Y + 1.0),
        "domains unlabelled": lambda: PosteriorBlendClassifier(classes=(0, 1)).fit(
            X, 0 * Y - 1, sample_domain=[-2] * 6
        ),
        "domains of two targets": lambda: _domains([1, 1, -1, 1, 1, -2]),
        "two conventions": lambda: _domains([1, 1, -1, 1, 1, -1], groups=list("aabaab")),
        "groups short": lambda: PosteriorBlendClassifier().fit(X, Y, groups=[1, 2]),
        "target without subjects": lambda: PosteriorBlendClassifier().fit(
            X, Y, X_target_labeled=X, y_target_labeled=Y
        ),
        "target untransformed": lambda: PosteriorBlendClassifier().fit(
            X, Y, subjects=[1] * 6, X_target_unlabeled=np.zeros((4, 2, 9))
        ),
        "partial text": lambda: _partial((X, Y), (X, np.array(list("aaabbb")))),
        "partial one class": lambda: _partial((X[:3], Y[:3])),
        "partial waits": lambda: _partial((X[:3], Y[:3]), classes=(0, 1)).predict(X),
        "partial three": lambda: PosteriorBlendClassifier().partial_fit(X, Y, classes=[0, 1, 2]),
        "partial stranger": lambda: _partial((X, Y), (X, Y + 1), classes=(0, 1)),
        "unlabelled alone": lambda: PosteriorBlendClassifier(_prior()).partial_fit(X, None),
        "start alone": lambda: PosteriorBlendClassifier().start(),
        "start without means": lambda: PosteriorBlendClassifier(_prior()).start(),
    },
    "many": {
        "estimator": lambda: MulticlassBlend(FisherDiscriminant()).fit(X, THREE),
        "strategy": lambda: _of_three(strategy="all"),
        "task prior": lambda: _of_three(_prior()),
        "classes": lambda: _of_three(classes=("a", "b")),
        "class_prior": lambda: _of_three(class_prior=(0.5, 0.5)),
        "other strategy": lambda: _of_three(_many(strategy="one-vs-rest")),
        "stranger": lambda: MulticlassBlend(PosteriorBlendClassifier(_many())).fit(X, THREE),
        "missing": lambda: MulticlassBlend(
            PosteriorBlendClassifier(_many(), on_missing_class="error")
        ).fit(X, np.array(list("abb"))[THREE]),
        "missing from the rest": lambda: MulticlassBlend(
            PosteriorBlendClassifier(_many(strategy="one-vs-rest"), on_missing_class="prior"),
            "one-vs-rest",
        ).fit(X, np.array(list("abb"))[THREE]),
        "forecast of the rest": lambda: _of_three(strategy="one-vs-rest").expected_accuracy_,
        "not fitted": lambda: MulticlassBlend(PosteriorBlendClassifier()).predict(X),
        "no tasks": lambda: MulticlassPrior.from_tasks([]),
        "one class": lambda: MulticlassPrior.from_tasks([Task(X, np.zeros(6), "p")]),
        "lacking": lambda: MulticlassPrior.from_tasks(
            [*_tasks(labels=("a", "b", "c")), Task(X, list("aaabbb"), "short")],
            strategy="one-vs-rest",
        ),
        "mixed labels": lambda: MulticlassPrior.from_tasks(
            [*_tasks(2, (0, 1)), *_tasks(2, ("a", "b"))]
        ),
        "pair": lambda: _many()["a", "z"],
        "merged strategies": lambda: _many() + _many(strategy="one-vs-rest"),
        "no pair": lambda: MulticlassPrior("pairwise", ("a", "b"), {}),
        "strange pair": lambda: MulticlassPrior("pairwise", ("a", "b"), {("a", "z"): _prior()}),
        "prior of a pair": lambda: MulticlassPrior("pairwise", ("a", "b"), {("a", "b"): W}),
        "classes of a pair": lambda: MulticlassPrior(
            "pairwise", ("a", "b"), {("a", "b"): _prior(classes=(0, 1))}
        ),
    },
    "prior": {
        "lengths": lambda: TaskPrior.from_projections(2.0 * W),
        "zero": lambda: TaskPrior.from_projections([[0.0, 0.0]], normalize=True),
        "empty": lambda: TaskPrior.from_projections(np.empty((0, 2))),
        "one axis": lambda: TaskPrior.from_projections([1.0, 0.0]),
        "nan": lambda: TaskPrior.from_projections([[np.nan, 1.0]]),
        "complex": lambda: TaskPrior.from_projections([[1.0j, 0.0]]),
        "ragged": lambda: TaskPrior.from_projections([[1.0], [0.0, 1.0]]),
        "scale": lambda: _prior(feature_scale=[-1.0, 1.0]),
        "scale length": lambda: _prior(feature_scale=[1.0, 1.0, 1.0]),
        "names": lambda: _prior(feature_names=["a"]),
        "classes": lambda: _prior(classes=(1, 0)),
        "no tasks": lambda: TaskPrior.from_tasks([]),
        "task of one class": lambda: TaskPrior.from_tasks([Task(X, np.zeros(6), "p")]),
        "task of three": lambda: TaskPrior.from_tasks([Task(X, THREE, "p")]),
        "tasks of other classes": lambda: TaskPrior.from_tasks(
            [Task(X, Y, "p"), Task(X, Y + 1, "q")]
        ),
        "tasks alike": lambda: TaskPrior.from_tasks([Task(np.ones((6, 2)), Y, "p")]),
        "tasks of arrays": lambda: TaskPrior.from_tasks([X]),
        "scale word": lambda: TaskPrior.from_tasks(_tasks(), feature_scale="raw"),
        "summary form": lambda: TaskPrior.from_summary([1.0, 0.0], 0.1 * EYE, 5, form="paper"),
        "summary length": lambda: TaskPrior.from_summary([2.0, 0.0], 0.1 * EYE, 5),
        "summary psi": lambda: TaskPrior.from_summary([1.0, 0.0], ASKEW, 5),
        "summary n_tasks": lambda: TaskPrior.from_summary([1.0, 0.0], 0.1 * EYE, 0),
        "merged features": lambda: _prior() + TaskPrior.from_projections(np.eye(3)),
        "merged scales": lambda: _prior() + _prior(feature_scale=[1.0, 2.0]),
        "merged classes": lambda: _prior(classes=(0, 1)) + _prior(classes=(0, 2)),
        "merged names": lambda: _prior(feature_names=["a", "b"]) + _prior(feature_names=["a", "c"]),
        "merged with text": lambda: _prior() + "prior",
        "merged released": lambda: _released() + _prior(),
        "updated released": lambda: _released().update(W),
        "updated features": lambda: _prior().update(np.eye(3)),
        "standard_error": lambda: _prior().standard_error("unit"),
        "no mean": lambda: TaskPrior.from_projections([[1.0, 0.0], [-1.0, 0.0]]).mean_direction,
        "n_tasks": lambda: TaskPrior(0, W.sum(0), None, np.ones(2)),
        "sum too long": lambda: TaskPrior(1, [3.0, 0.0], None, np.ones(2)),
        "trace": lambda: TaskPrior(3, W.sum(0), EYE, np.ones(2)),
        "outer_sum shape": lambda: TaskPrior(3, W.sum(0), np.eye(3), np.ones(2)),
        "foreign directions": lambda: TaskPrior(3, W.sum(0), None, np.ones(2), directions=-W),
        "about": lambda: _prior().annotated(made_by=7),
        "direction_noise": lambda: TaskPrior(3, W.sum(0), None, np.ones(2), direction_noise=-1.0),
        "summarised": lambda: TaskPrior(3, W.sum(0), None, np.ones(2), summarised="no"),
        "release": lambda: TaskPrior(3, W.sum(0), None, np.ones(2), release=1.0),
        "release of a learnt scale": lambda: TaskPrior(
            3, W.sum(0), None, np.ones(2), release=Release(1.0, 1e-5, 1.0, True), scale_learnt=True
        ),
        "epsilon zero": lambda: Release(0.0, 1e-5, 1.0, True),
        "epsilon huge": lambda: Release(1e9, 1e-5, 1.0, True),
        "delta": lambda: Release(1.0, 1.0, 1.0, True),
        "release noise": lambda: Release(1.0, 1e-5, 0.0, True),
        "scale_covered": lambda: Release(1.0, 1e-5, 1.0, "yes"),
        "released epsilon": lambda: _prior().released(-1.0, 1e-5),
        "released delta": lambda: _prior().released(1.0, 0.0),
        "released twice": lambda: _released().released(1.0, 1e-5),
        "released summary": lambda: TaskPrior.from_summary([1.0, 0.0], 0.1 * EYE, 5).released(
            1.0, 1e-5
        ),
        "mixture components": lambda: MixturePrior.from_projections(W, 4),
        "mixture of none": lambda: MixturePrior.from_projections(W, 0),
        "mixture of sums": lambda: MixturePrior.from_prior(_prior()),
        "mixture added": lambda: MixturePrior.from_projections(W, 1) + _prior(),
        "mixture counts": lambda: MixturePrior(_prior(), [1.0, 1.0], W[:2], np.stack([EYE, EYE])),
        "mixture outer": lambda: MixturePrior(_prior(), [3.0], W.sum(0)[None], None),
        "mixture pooled": lambda: MixturePrior(W, [3.0], W.sum(0)[None], None),
        "mixture released": lambda: MixturePrior(_released(), [3.0], W.sum(0)[None], None),
    },
    "function": {
        "choose prior": lambda: _choose(W),
        "choose half_gap": lambda: _choose(half_gap=[0.5, 0.1, 0.2]),
        "choose covariance": lambda: _choose(covariance=ASKEW),
        "choose covariance negative": lambda: _choose(covariance=NEGATIVE),
        "choose covariance shape": lambda: _choose(covariance=np.ones((3, 2))),
        "choose n_samples": lambda: _choose(n_samples=1),
        "choose n_samples pair": lambda: _choose(n_samples=(0, 4)),
        "choose psi": lambda: _choose(psi="paper"),
        "choose shrinkage": lambda: _choose(shrinkage=2.0),
        "choose alphas": lambda: _choose(alphas=[-0.5]),
        "choose method": lambda: _choose(method="exact"),
        "choose class_prior": lambda: _choose(class_prior=(1.0, 0.0)),
        "choose n_draws": lambda: _choose(method="monte_carlo", n_draws=0),
        "conditional nu": lambda: conditional_risk([1.0, 0.0], nu=[1.0], sigma=EYE),
        "conditional sigma": lambda: conditional_risk([1.0, -1.0], nu=[1.0, 0.0], sigma=NEGATIVE),
        "conditional nan": lambda: conditional_risk([np.nan, 0.0], **LAW),
        "expected covariance": lambda: expected_risk([1.0, 0.0], NEGATIVE, **LAW),
        "expected method": lambda: expected_risk([1.0, 0.0], EYE, **LAW, method="exact"),
        "expected scalar": lambda: expected_risk(1.0, EYE, **LAW),
        "curve alphas": lambda: risk_curve([2.0], **BLEND, **LAW),
        "curve source": lambda: risk_curve(
            [0.5], target=BLEND["target"], source=([1.0], EYE), **LAW
        ),
        "blend alpha": lambda: blend_directions([1.0, 0.0], [0.0, 1.0], 1.5),
        "blend zero": lambda: blend_directions([0.0, 0.0], [0.0, 1.0], 0.5),
        "blend opposite": lambda: blend_directions([1.0, 0.0], [-1.0, 0.0], 0.5),
        "labels few": lambda: forecast_labels(_posterior(_prior()), [1]),
        "labels of what": lambda: forecast_labels(_fisher(), [4]),
        "labels not fitted": lambda: forecast_labels(PosteriorBlendClassifier(), [4]),
        "labels alone": lambda: forecast_labels(_posterior(), [4]),
        "labels mixture": lambda: forecast_labels(
            _posterior(MixturePrior.from_projections(np.concatenate([W, -W]), 2)), [4]
        ),
        "labels of one class": lambda: forecast_labels(
            PosteriorBlendClassifier(TaskPrior.from_tasks(_tasks()), on_missing_class="prior").fit(
                X[:3], Y[:3]
            ),
            [4],
        ),
        "simulate n_tasks": lambda: simulate.simulate_tasks(0),
        "simulate n_samples": lambda: simulate.simulate_tasks(2, 1),
        "simulate concentration": lambda: simulate.draw_directions(2, 2, -1.0),
        "simulate mean": lambda: simulate.draw_directions(2, 2, 1.0, mean_direction=[2.0, 0.0]),
        "simulate covariance": lambda: simulate.simulate_tasks(2, n_features=2, covariance=ASKEW),
        "figure2 step": lambda: simulate.figure2(step=0.3, n_repeats=1),
        "figure3 panels": lambda: simulate.figure3(panels="J"),
        "figure3 values": lambda: simulate.figure3(values=[4]),
        "misspecified scenario": lambda: simulate.misspecified(scenarios=["unknown"]),
        "misspecified parameter": lambda: simulate.misspecified(dimension=3),
        "n_repeats": lambda: simulate.figure2(n_repeats=0),
        "make_matb_like": lambda: crossfade.make_matb_like(n_participants=0),
    },
    "task": {
        "shape": lambda: Task(X[:, 0], Y),
        "labels": lambda: Task(X, Y[:3], "p"),
        "nan": lambda: Task(NAN, Y, "p"),
        "names": lambda: Task(X, Y, feature_names=["a"]),
        "start": lambda: Task(X, Y, start=[0.0, 1.0]),
        "set of arrays": lambda: TaskSet([X]),
        "set of features": lambda: TaskSet([Task(X, Y), Task(X[:, :1], Y)]),
        "set of names": lambda: TaskSet(
            [Task(X, Y, feature_names=["a", "b"]), Task(X, Y, feature_names=["a", "c"])]
        ),
        "frame without label": lambda: TaskSet.from_frame(_frame(label=None)),
        "frame without task": lambda: TaskSet.from_frame(_frame(task=None)),
        "frame without features": lambda: TaskSet.from_frame(_frame(x=None)),
        "frame of text": lambda: TaskSet.from_frame(_frame(x=["a", "b"])),
        "frame missing": lambda: TaskSet.from_frame(_frame(x=[0.1, np.nan]), missing="error"),
        "frame missing everywhere": lambda: TaskSet.from_frame(_frame(x=[np.nan, np.nan])),
        "frame dropped": lambda: TaskSet.from_frame(_frame(x=[0.1, np.nan])),
        "frame missing word": lambda: TaskSet.from_frame(_frame(), missing="fill"),
        "frame empty": lambda: TaskSet.from_frame(_frame().iloc[:0]),
        "frame label empty": lambda: TaskSet.from_frame(_frame(label=["a", None])),
        "frame groups": lambda: TaskSet.from_frame(_frame(group=["a", "b"])),
        "no frame": lambda: TaskSet([]).to_frame(),
        "frame of twins": lambda: TaskSet([Task(X, Y, "p"), Task(X, Y, "p")]).to_frame(),
        "frame of label": lambda: TaskSet(
            [Task(X, Y, "p", feature_names=["a", "label"])]
        ).to_frame(),
        "suffix": lambda: read_tasks("tasks.txt"),
        "write suffix": lambda: TaskSet(_tasks()).write("tasks.xls"),
        "columns twice": lambda: _table("task,label,x,x\np,0,1,2\n"),
        "no table": lambda: _table(""),
        "text in a table": lambda: _table("task,label,x\np,0,1\np,1,high\n"),
        "no file": lambda: read_tasks("none.csv"),
    },
    "file": {
        "no prior": lambda: TaskPrior.load("none.npz"),
        "text": lambda: TaskPrior.load(_write("p.npz", "hello")),
        "truncated": lambda: TaskPrior.load(
            _write("p.npz", Path(_saved(_prior())).read_bytes()[:500])
        ),
        "altered": lambda: _altered(
            _saved(_prior()), lambda arrays: arrays["direction_sum"].__imul__(-1), TaskPrior.load
        ),
        "version": lambda: _altered(_saved(_prior()), _header(version=99), TaskPrior.load),
        "version of text": lambda: _altered(
            _saved(_prior()), _header(version="two"), TaskPrior.load
        ),
        "format": lambda: _altered(_saved(_prior()), _header(format="other"), TaskPrior.load),
        "no header": lambda: _altered(
            _saved(_prior()), lambda arrays: arrays.pop("header"), TaskPrior.load
        ),
        "mixture as prior": lambda: TaskPrior.load(_saved(MixturePrior.from_projections(W, 1))),
        "many as prior": lambda: TaskPrior.load(_saved(_many())),
        "prior as mixture": lambda: MixturePrior.load(_saved(_prior())),
        "prior as many": lambda: MulticlassPrior.load(_saved(_prior())),
        "classes of bytes": lambda: _prior(classes=(b"a", b"b")).save("p.npz"),
        "no folder": lambda: _prior().save("no/folder.npz"),
        "model of a prior": lambda: save_model(_prior(), "model.json"),
        "model not fitted": lambda: save_model(PosteriorBlendClassifier(), "model.json"),
        "no model": lambda: load_model("none.json"),
        "model text": lambda: load_model(_write("model.json", "hello")),
        "model list": lambda: load_model(_write("model.json", "[]")),
        "model altered": lambda: _model(alpha=0.5),
        "model version": lambda: _model(version=99),
        "model version of text": lambda: _model(version="1"),
        "model format": lambda: _model(format="crossfade-prior"),
        "model learns": lambda: SavedRule().fit(X, Y),
        "model empty": lambda: SavedRule().predict(X),
    },
    "study": {
        "one task": lambda: _study(_tasks(1)),
        "one group": lambda: _study(_tasks(group="g")),
        "one class": lambda: _study([Task(X, np.zeros(6), "p"), Task(X, np.zeros(6), "q")]),
        "left out": lambda: _study([*_tasks(), Task(X, np.zeros(6), "single")]),
        "alike": lambda: _study([*_tasks(), Task(np.ones((6, 2)), Y, "flat")]),
        "too small": lambda: _study([*_tasks(), Task(X[2:4], Y[2:4], "small")]),
        "other classes": lambda: _study([*_tasks(), Task(X, Y + 1, "other")]),
        "twins": lambda: _study([*_tasks(), *_tasks()]),
        "unknown method": lambda: _study(methods=["best"]),
        "method twice": lambda: _study(methods=["target", "target"]),
        "methods of text": lambda: _study(methods="target"),
        "no methods": lambda: _study(methods=[]),
        "method for two": lambda: _study(_tasks(labels=(0, 1, 2)), methods=["convex"]),
        "pair": lambda: _study(methods=[("own",)]),
        "pair of a known name": lambda: _study(methods=[("convex", FisherDiscriminant())]),
        "pair without estimator": lambda: _study(methods=[("own", None)]),
        "budget": lambda: _study(budgets=[1.5]),
        "budget zero": lambda: _study(budgets=[0], methods=["target"]),
        "budget flag": lambda: _study(budgets=[True]),
        "budgets twice": lambda: _study(budgets=[2, 2]),
        "no budgets": lambda: _study(budgets=[]),
        "budget too large": lambda: _study(budgets=[50]),
        "n_splits": lambda: _study(n_splits=0),
        "splits": lambda: _study(splits="shuffled"),
        "random_state": lambda: _study(random_state=-1),
        "n_jobs": lambda: _study().run(n_jobs=0),
        "failing method": lambda: _study(methods=[("own", MulticlassBlend(None))]).run(),
        "no folder": lambda: StudyResult.load("nowhere"),
        "other splits": lambda: _result() + _result(tasks=_renamed(), random_state=1),
    },
}

#: Refusals whose sentence lists a set, so that its order differs from run to run.
UNORDERED = ("mixed labels",)

#: Commands that are refused: what they say, and with which exit code.
COMMANDS = {
    "calibrate without file": "calibrate",
    "calibrate no prior": "calibrate --prior none.npz few.csv",
    "prior build no file": "prior build none.csv -o prior.npz",
    "prior show text": "prior show text.npz",
    "prior check text": "prior check text.npz",
    "predict no model": "predict none.json few.csv",
    "predict text": "predict text.npz few.csv",
    "study no table": "study none.csv",
    "study method": "study few.csv --methods best",
    "study text": "study text.npz",
    "simulate step": "simulate figure2 --step 0.3",
    "simulate repeats": "simulate figure2 --repeats 0",
    "tasks show text": "tasks show text.npz",
    "tasks show none": "tasks show none.csv",
    "reproduce unknown": "reproduce nothing",
}


def refusal_of(area, label, folder):
    """Type and message of what a call raises; a warning counts as raised.

    The message is None where it is another package's, which may change it.
    """
    with chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            REFUSALS[area][label]()
        except Exception as refusal:
            found = _described(refusal, folder)
            return found | {"message": None} if label in UNORDERED else found
    raise AssertionError(f"{area}, {label}: nothing was refused")


def _described(refusal, folder):
    trace = refusal.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    ours = Path(crossfade.__file__).parent in Path(trace.tb_frame.f_code.co_filename).parents
    text = refusal.args[0] if isinstance(refusal, KeyError) else str(refusal)
    if isinstance(refusal, NotFittedError):
        # scikit-learn raises it, with our words or its own.
        ours = "instance is not fitted" not in text
    return {
        "type": type(refusal),
        "message": _anywhere(text, folder) if ours else None,
    }


def _anywhere(text, folder):
    for path in (Path(folder).resolve(), folder):
        text = text.replace(str(path), "FOLDER")
    return text


def refused_command(label, folder):
    """Exit code and words of a command that is refused."""
    with chdir(folder):
        _write("text.npz", "hello")
        _write("few.csv", "task,label,x\np,0,0.1\np,0,0.2\np,1,1.3\np,1,1.1\n")
        result = run_command(*COMMANDS[label].split())
    # Which of the two click names here depends on its version.
    words = _anywhere(result.output, folder).replace(" -h' for help", " --help' for help")
    return {"exit code": result.exit_code, "output": words}
