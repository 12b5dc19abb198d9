"""``crossfade calibrate`` blends a prior with one person's windows; ``predict`` labels new ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from crossfade._files import refuse_same_file
from crossfade.cli._options import FILE, OUT, TABLE, TABLE_OUT
from crossfade.cli._output import narrow_table, plain_messages, terminal

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from crossfade.blend import Rule
    from crossfade.crowd import TaskPrior
    from crossfade.tasks import Task

    Windows = tuple[pd.DataFrame, pd.Series[Any] | None, pd.DataFrame]

#: Labelled windows of each class for which `calibrate` forecasts the accuracy.
_COUNTS = (1, 2, 4, 8, 16, 32)
_LEVEL = 0.9
_LABEL = click.option(
    "--label", default="label", show_default=True, help="Column with the class of each window."
)


@click.command()
@click.argument("few", type=TABLE, required=False)
@click.option("--prior", type=FILE, required=True, help="Prior, made by `crossfade prior build`.")
@click.option("-o", "--out", type=OUT, required=True, help="Model file to write.")
@_LABEL
@click.option(
    "--class-prior",
    type=float,
    nargs=2,
    metavar="P0 P1",
    help="How frequent the two classes are among new windows, in the order of their sorted labels, "
    "for example 0.9 0.1. Equally frequent by default.",
)
@click.option(
    "--earlier",
    type=TABLE,
    help="Labelled windows of earlier sessions of the same person; a column `task` names the "
    "session.",
)
@click.option(
    "--scattered",
    is_flag=True,
    help="The windows in FEW are spread over the session. By default, the windows of each class "
    "are taken to follow each other in time.",
)
def calibrate(
    few: Path | None,
    prior: Path,
    out: Path,
    label: str,
    class_prior: tuple[float, float] | None,
    earlier: Path | None,
    scattered: bool,
) -> None:
    """Blend a prior with the few labelled windows of one person in FEW, and write the model.

    FEW has a column `label` and the prior's features; other columns are ignored. A window with an
    empty label is treated as unlabelled; it helps to locate the classes. One class is enough to
    begin with. Without FEW the model is that of the crowd. The command prints how much
    the person's own windows weigh, which accuracy to expect on new windows, and how much more
    labels would help.

    \b
    Examples:
      crossfade calibrate --prior prior.npz -o model.json
      crossfade calibrate --prior prior.npz few.csv -o model.json
      crossfade calibrate --prior prior.npz few.csv -o model.json --class-prior 0.9 0.1 --scattered
      crossfade calibrate --prior prior.npz today.csv -o model.json --earlier yesterday.csv
    """
    from crossfade.classifiers import (
        HierarchicalBlendClassifier,
        PosteriorBlendClassifier,
        rule_of,
        save_model,
    )
    from crossfade.crowd import TaskPrior

    with plain_messages():
        refuse_same_file(out, prior, few, earlier)
        crowd = TaskPrior.load(prior)
        kind: Any = HierarchicalBlendClassifier
        if crowd.class_means is None:
            kind = PosteriorBlendClassifier
            click.echo(
                f"Note: {prior} holds no class means, so the posterior blend is used. It needs "
                "labels of both classes.",
                err=True,
            )
        sessions = [] if earlier is None else _read_sessions(earlier, label, crowd)
        crowd = crowd.for_person(sessions) if earlier is not None else crowd
        blend = kind(crowd, class_prior=class_prior, consecutive=not scattered)
        n_unlabelled = _learn(blend, crowd, few, label, sessions)
        rule = rule_of(blend)
        more = _more_labels(blend, rule)
        save_model(blend, out)
    counts = zip(rule.n_labelled, _class_names(rule), strict=True)
    labelled = ", ".join(f"{count:g} of {name}" for count, name in counts)
    click.echo(f"Prior     {crowd.n_tasks} tasks")
    click.echo(f"Labelled  {labelled}" + f"; {n_unlabelled} unlabelled" * bool(n_unlabelled))
    click.echo(f"alpha     {rule.alpha:.3f}  (1: this person alone, 0: the crowd alone)")
    click.echo(f"Forecast  {_forecast(rule)}")
    terminal().print(more)
    click.echo(f"Written: {out}")


def _learn(
    blend: Any, crowd: TaskPrior, few: Path | None, label: str, sessions: Sequence[Task]
) -> int:
    """Fit a blend to a table; returns how many of its windows are unlabelled."""
    import numpy as np

    if few is None:
        blend.start()
        return 0
    X, y, others = _read(few, label, crowd)
    if "task" in others and others["task"].nunique() > 1:
        raise ValueError(f"{few} has windows of several tasks. A model is for one person.")
    known_rows = {tuple(row) for task in sessions for row in np.asarray(task.X).tolist()}
    n_twice = sum(tuple(row) in known_rows for row in X.to_numpy().tolist())
    # A few equal windows may be chance.
    if n_twice > 0.1 * len(X):
        raise ValueError(
            f"{n_twice} windows of {few} are also in --earlier and would count twice. Leave them "
            "out of one of the tables."
        )
    if y is None:
        note = f"Note: {few} has no column {label!r}: all windows are unlabelled."
        click.echo(note, err=True)
    known = X.iloc[:, 0].isna() if y is None else y.notna()
    if y is not None and known.any():
        blend.fit(X[known], y[known].tolist())
    if not known.all() and crowd.class_means is not None:
        blend.partial_fit(X[~known], None)
    return int((~known).sum())


def _read_sessions(path: Path, label: str, crowd: TaskPrior) -> list[Task]:
    """Labelled windows of earlier sessions of one person; a column `task` tells them apart."""
    from crossfade.tasks import Task

    X, labels, others = _read(path, label, crowd)
    if labels is None:
        raise ValueError(f"{path} has no column {label!r}, and earlier windows need labels.")
    X, labels = X[labels.notna()], labels[labels.notna()]
    session = X.assign(session=others.get("task", path.stem))["session"]
    return [
        Task(X[session == name], labels[session == name].tolist(), str(name))
        for name in session.unique()
    ]


def _read(path: Path, label: str, crowd: TaskPrior) -> Windows:
    """Windows with all features of a prior; refuses labels of other classes."""
    about = (crowd.feature_names, crowd.classes, crowd.class_names, crowd.recipe)
    X, labels, others = _read_windows(path, label, *about)
    strange = set() if labels is None else {*labels.dropna()} - {*(crowd.classes or labels)}
    if strange:
        raise ValueError(
            f"{path} has the label {strange.pop()!r}; the prior has {list(crowd.classes or ())}."
        )
    whole = X.notna().all(axis=1)
    if not whole.all():
        click.echo(
            f"Note: {path}: {(~whole).sum()} windows lack a feature and are left out.", err=True
        )
    return X[whole], None if labels is None else labels[whole], others[whole]


def _read_windows(path: Path, label: str, *about: Any) -> Windows:
    """Windows of a table; refuses a label column that was named and is missing."""
    from crossfade.tasks import read_windows

    found = read_windows(path, label, *about)
    source = click.get_current_context().get_parameter_source("label")
    if found.labels is None and source is not ParameterSource.DEFAULT:
        raise ValueError(f"{path} has no column {label!r}. Leave --label out, or name a column.")
    return found


def _class_names(rule: Rule) -> list[str]:
    """Classes of a rule as people call them."""
    return [str(name) for name in rule.about.class_names or rule.classes]


def _forecast(rule: Rule) -> str:
    """Forecast of a rule with its interval, and with the proportions of the classes if unequal."""
    if rule.outlook is None:
        return "unknown"
    low, high = rule.interval(_LEVEL)
    text = f"{rule.expected_accuracy:.3f}  (90 % interval {low:.2f} to {high:.2f})"
    shares = rule.class_prior.tolist()
    if len(set(shares)) == 1:
        return text
    pairs = zip(shares, _class_names(rule), strict=True)
    return f"{text}, with {', '.join(f'{100.0 * share:.3g} % {name}' for share, name in pairs)}"


def _more_labels(blend: Any, rule: Rule) -> Table | str:
    """Forecasts for more labelled windows than there are, or why there are none."""
    from crossfade.classifiers import forecast_labels

    now = tuple(int(count) for count in rule.n_labelled)
    # The windows of the other class stay: after 24+2 come 24+4 and 24+8.
    more = [tuple(max(have, count) for have in now) for count in _COUNTS if count > min(now)]
    if not more:
        return ""
    try:
        found = forecast_labels(blend, more, level=_LEVEL)
    except ValueError as reason:
        return str(reason)
    view = narrow_table("What more labels would bring")
    for head in ("windows of each class", "forecast", "90 % interval", "gain"):
        view.add_column(head, justify="right")
    low, high = rule.interval(_LEVEL)
    accuracy = float(rule.expected_accuracy)
    view.add_row(f"now, {_count(now)}", f"{accuracy:.3f}", f"{low:.2f} to {high:.2f}", "")
    lines = zip(more, found.accuracy, found.lower, found.upper, strict=True)
    for count, forecast, low, high in lines:
        # Adding zero removes the sign of minus zero.
        gain = round(forecast - accuracy, 3) + 0.0
        interval = f"{low:.2f} to {high:.2f}"
        view.add_row(_count(count), f"{forecast:.3f}", interval, f"{gain:+.3f}")
    if found.accuracy.min() < accuracy - 0.005:
        view.caption = (
            "The forecast falls by chance because the prior has few people. More labels do not "
            "reduce accuracy."
        )
    return view


def _count(counts: tuple[int, ...]) -> str:
    """Windows of each class: one number where they are equal."""
    return "+".join(map(str, counts if len(set(counts)) > 1 else counts[:1]))


@click.command()
@click.argument("model", type=FILE)
@click.argument("new", type=TABLE)
@_LABEL
@click.option(
    "-o",
    "--out",
    type=TABLE_OUT,
    help="Table to write, .csv or .parquet. CSV on standard output by default.",
)
def predict(model: Path, new: Path, label: str, out: Path | None) -> None:
    """Label the windows in NEW with the model in MODEL, and give the probability of each class.

    NEW has the model's features. If it also has a column `label`, the accuracy is printed. The
    windows that the model has learnt from do not belong in NEW: they make the accuracy too high.

    \b
    Examples:
      crossfade predict model.json new.csv
      crossfade predict model.json new.parquet -o labels.csv
    """
    from crossfade.blend import load_model
    from crossfade.tasks import write_frame

    with plain_messages():
        if out is not None:
            refuse_same_file(out, model, new)
        rule = load_model(model)
        about, classes = rule.about, rule.classes.tolist()
        names = about.feature_names, classes, about.class_names
        X, labels, others = _read_windows(new, label, *names, about.recipe)
        table = _predicted(rule, X, others)
        if out is not None:
            write_frame(out, table)
    if out is None:
        click.echo(table.to_csv(index=False), nl=False)
    said = "" if labels is None else _accuracy(rule, labels, table["predicted"])
    if said:
        click.echo(said, err=out is None)
    if out is not None:
        click.echo(f"Written: {out}")


def _predicted(rule: Rule, X: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Labels and probabilities beside the other columns; blank where a feature is missing."""
    import pandas as pd

    whole = X.notna().all(axis=1)
    if not whole.all():
        click.echo(f"Note: {(~whole).sum()} windows lack a feature and get no label.", err=True)
    table = others.copy()
    table["predicted"] = None
    columns = [f"probability_{name}" for name in rule.classes.tolist()]
    table[columns] = float("nan")
    if whole.any():
        rows = X[whole].to_numpy()
        table.loc[whole, "predicted"] = pd.Series(rule.predict(rows).tolist(), X.index[whole])
        table.loc[whole, columns] = rule.predict_proba(rows)
    return table


def _accuracy(rule: Rule, labels: pd.Series[Any], predicted: pd.Series[Any]) -> str:
    """Accuracy on labelled windows of all classes, each weighted as in the forecast."""
    classes = rule.classes.tolist()
    known = labels.isin(classes) & predicted.notna()
    recall = (labels == predicted)[known].groupby(labels[known]).mean()
    if len(recall) < len(classes):
        return ""
    shares = rule.class_prior.tolist()
    accuracy = sum(share * recall[one] for share, one in zip(shares, classes, strict=True))
    kind = "Balanced accuracy" if len(set(shares)) == 1 else "Accuracy"
    return (
        f"{kind} {accuracy:.3f} on {known.sum()} labelled windows, if the model did not learn from "
        f"them; forecast {_forecast(rule)}"
    )
