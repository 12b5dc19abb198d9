"""``crossfade calibrate``, ``crossfade predict``: a few labels in, a model out; windows, labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
from rich.table import Table

from crossfade._prior_fit import misfits, name_misfits, unit_misfits
from crossfade._task_table import RESERVED, check_format, numbers_of, read_frame, write_frame
from crossfade.cli._output import narrow_table, terminal
from crossfade.cli._windows import FILE, OUT, counts_of, first_row_of, plain_messages, read_windows

if TYPE_CHECKING:
    from crossfade.blend import ConvexBlendClassifier, PosteriorBlendClassifier
    from crossfade.model_file import SavedRule

BLENDS = ("posterior", "convex")
#: Windows of each class that may be thought of.
_BUDGETS = 2 ** np.arange(1, 8)


@click.command()
@click.argument("few", type=FILE)
@click.option(
    "--prior", type=FILE, required=True, help="Prior file, as `crossfade prior` makes it."
)
@click.option("-o", "--out", type=OUT, required=True, help="Model file to write.")
@click.option(
    "--blend",
    type=click.Choice(BLENDS),
    default="posterior",
    show_default=True,
    help="How person and crowd are blended; convex is the paper's.",
)
def calibrate(few: Path, prior: Path, out: Path, blend: str) -> None:
    """Blend a prior with the few labelled windows of one person in FEW, and write the model.

    FEW has a column `label` and the prior's features. Says how much the person's own windows
    weigh, which accuracy to expect on new windows, and what more labels would bring.

    \b
    Examples:
      crossfade calibrate --prior prior.npz few.csv -o model.json
      crossfade calibrate --prior prior.npz few.csv -o model.json --blend convex
    """
    from crossfade.blend import ConvexBlendClassifier, PosteriorBlendClassifier
    from crossfade.model_file import save_model
    from crossfade.prior import TaskPrior

    kinds = {"posterior": PosteriorBlendClassifier, "convex": ConvexBlendClassifier}
    with plain_messages():
        crowd = TaskPrior.load(prior)
        windows = read_windows(few)
        if len(windows) > 1:
            raise ValueError(
                f"{few} has windows of {len(windows)} tasks; a model is for one person. Give the "
                "windows of one."
            )
        wrong = misfits(crowd, windows)
        if wrong:
            raise ValueError(f"{few} does not fit {prior}. {' '.join(wrong)}")
        for reason in unit_misfits(crowd, windows):
            click.echo(f"Note: {reason}", err=True)
        person = windows[0]
        X = pd.DataFrame(np.asarray(person.X), columns=list(person.feature_names or ()))
        rule = kinds[blend](crowd).fit(X, person.y)
        save_model(rule, out)
        more = _more_labels(rule)
    click.echo(f"Prior     {crowd.n_tasks} tasks, agreement R {crowd.resultant_length:.3f}")
    click.echo(f"Labelled  {counts_of(person)}")
    click.echo(f"alpha     {rule.alpha_:.3f}  (1: this person alone, 0: the crowd alone)")
    click.echo(f"Forecast  {_promise(rule)}")
    terminal().print(more)
    click.echo(f"Written: {out}")


@click.command()
@click.argument("model", type=FILE)
@click.argument("new", type=FILE)
@click.option("-o", "--out", type=OUT, help="Table to write; otherwise CSV on standard output.")
def predict(model: Path, new: Path, out: Path | None) -> None:
    """Label the windows in NEW by the model in MODEL, with the probability of each class.

    NEW has the model's features. Where it has a column `label` too, the accuracy is printed.

    \b
    Examples:
      crossfade predict model.json new.csv
      crossfade predict model.json new.parquet -o labels.csv
    """
    from crossfade.model_file import load_model

    with plain_messages():
        if out is not None:
            check_format(out)
        rule = load_model(model)
        frame = read_frame(new)
        table = _predicted(rule, frame, new)
        said = _hits(rule, table, new) if "label" in frame else None
        if out is not None:
            write_frame(out, table)
    if out is None:
        click.echo(table.to_csv(index=False), nl=False)
    if said:
        click.echo(said, err=out is None)
    if out is not None:
        click.echo(f"Written: {out}")


def _promise(rule: PosteriorBlendClassifier | ConvexBlendClassifier | SavedRule) -> str:
    return _with_interval(rule.expected_accuracy_, rule.expected_accuracy_error_)


def _with_interval(accuracy: float, error: float) -> str:
    low, high = max(accuracy - error, 0.0), min(accuracy + error, 1.0)
    return f"{accuracy:.3f}  ({low:.2f} to {high:.2f}, two times in three)"


def _more_labels(rule: PosteriorBlendClassifier | ConvexBlendClassifier) -> Table:
    """Forecasts for more windows of each class than there are."""
    from crossfade.labels import forecast_labels

    fewest = float(np.unique(rule._seen[1], return_counts=True)[1].min())
    budgets = _BUDGETS[fewest < _BUDGETS]
    view = narrow_table("What more labels would bring")
    view.add_column("windows of each class", justify="right")
    view.add_column("forecast", justify="right")
    view.add_column("gain", justify="right")
    view.add_row(f"now, {fewest:g}", f"{rule.expected_accuracy_:.3f}", "")
    if budgets.size:
        found = forecast_labels(rule, budgets)
        for count, accuracy in zip(found.n_per_class, found.accuracy, strict=True):
            gain = accuracy - rule.expected_accuracy_
            view.add_row(f"{count:g}", f"{accuracy:.3f}", f"{gain:+.3f}")
    return view


def _predicted(rule: SavedRule, frame: pd.DataFrame, new: Path) -> pd.DataFrame:
    """Labels and probabilities beside what is no feature; blank where a feature is missing."""
    features = [name for name in frame.columns if name not in RESERVED]
    names = getattr(rule, "feature_names_in_", None)
    wanted = None if names is None else names.tolist()
    wrong = name_misfits(wanted, rule.n_features_in_, features, "the model")
    if wrong:
        raise ValueError(f"{new} does not fit the model. {' '.join(wrong)}")
    if not len(frame):
        raise ValueError(f"{new} has no rows.")
    first = first_row_of(new)
    values = np.column_stack([numbers_of(frame, name, str(new), first) for name in features])
    whole = ~np.isnan(values).any(1)
    if not whole.all():
        click.echo(
            f"Note: {new}: {(~whole).sum()} of {len(whole)} windows get no label, since features "
            "are missing.",
            err=True,
        )
    table = frame[[name for name in frame.columns if name in RESERVED]].copy()
    X: Any = values[whole] if wanted is None else pd.DataFrame(values[whole], columns=wanted)
    labels = pd.Series(None, index=table.index, dtype=object)
    chances = np.full((len(frame), 2), np.nan)
    if whole.any():
        labels[whole] = rule.predict(X).tolist()
        chances[whole] = rule.predict_proba(X)
    table["predicted"] = labels
    for place, name in enumerate(rule.classes_.tolist()):
        table[f"probability_{name}"] = chances[:, place]
    return table


def _hits(rule: SavedRule, table: pd.DataFrame, new: Path) -> str:
    """How often the labels that are known were found, each class counting the same."""
    # Labels of a table are read as text where some are missing.
    known = table[table["label"].notna() & table["predicted"].notna()].astype(str)
    classes = [str(name) for name in rule.classes_.tolist()]
    strangers = [name for name in known["label"] if name not in classes]
    if strangers:
        raise ValueError(
            f"{new} has label {strangers[0]!r}, but the model's classes are {classes}. Rename the "
            "labels, or leave the column out."
        )
    if known.empty:
        return ""
    hits = (known["label"] == known["predicted"]).groupby(known["label"]).mean()
    kind = "Balanced accuracy" if len(hits) == 2 else f"Share of {hits.index[0]!r} found"
    return f"{kind} {hits.mean():.3f} on {len(known)} labelled windows; forecast {_promise(rule)}"
