"""``crossfade calibrate`` blends a prior with one person's windows; ``predict`` labels new ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade.cli._options import FILE, OUT
from crossfade.cli._output import narrow_table, plain_messages, terminal
from crossfade.cli._windows import counts_of, first_row_of, read_windows

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from crossfade.blend import ConvexBlendClassifier, PosteriorBlendClassifier, SavedRule

#: Numbers of windows of each class for which `calibrate` forecasts the accuracy.
_BUDGETS = (2, 4, 8, 16, 32, 64, 128)
#: Fewest windows of a class with which there is a forecast, and with which its interval may hold.
_LEAST, _ENOUGH = 2.0, 3.0


@click.command()
@click.argument("few", type=FILE)
@click.option(
    "--prior", type=FILE, required=True, help="Prior file, made by `crossfade prior build`."
)
@click.option("-o", "--out", type=OUT, required=True, help="Model file to write.")
@click.option(
    "--blend",
    type=click.Choice(["posterior", "convex"]),
    default="posterior",
    show_default=True,
    help="How to blend the person with the crowd; convex is the paper's way.",
)
@click.option(
    "--class-prior",
    type=float,
    nargs=2,
    metavar="P0 P1",
    help="How frequent the two classes are among new windows, in the order of their sorted labels, "
    "for example 0.9 0.1. Equally frequent by default.",
)
@click.option(
    "--scattered",
    is_flag=True,
    help="The windows of FEW are spread over the session. By default, those of each class are "
    "taken to follow each other in time.",
)
def calibrate(
    few: Path,
    prior: Path,
    out: Path,
    blend: str,
    class_prior: tuple[float, float] | None,
    scattered: bool,
) -> None:
    """Blend a prior with the few labelled windows of one person in FEW, and write the model.

    FEW has a column `label` and the prior's features. The command prints how much the person's own
    windows weigh, which accuracy to expect on new windows, and how much more labels would help.

    \b
    Examples:
      crossfade calibrate --prior prior.npz few.csv -o model.json
      crossfade calibrate --prior prior.npz few.csv -o model.json --blend convex
      crossfade calibrate --prior prior.npz few.csv -o model.json --class-prior 0.9 0.1 --scattered
    """
    import numpy as np
    import pandas as pd

    from crossfade.blend import ConvexBlendClassifier, PosteriorBlendClassifier, save_model
    from crossfade.prior import TaskPrior
    from crossfade.prior._compatibility import misfits, unit_misfits

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
        rule = kinds[blend](crowd, class_prior=class_prior, in_a_row=not scattered)
        rule.fit(X, person.y)
        fewest = float(np.unique(np.asarray(person.y), return_counts=True)[1].min())
        more = _more_labels(rule, fewest) if fewest >= _LEAST else None
        save_model(rule, out)
    hidden = crowd.release is not None and crowd.cancels
    agreement = "hidden by noise" if hidden else f"{crowd.trusted_length:.3f}"
    click.echo(f"Prior     {crowd.n_tasks} tasks, agreement R {agreement}")
    click.echo(f"Labelled  {counts_of(person)}")
    click.echo(f"alpha     {rule.alpha_:.3f}  (1: this person alone, 0: the crowd alone)")
    click.echo(f"Forecast  {_promise(rule, fewest)}")
    if class_prior is not None:
        click.echo(f"          of the {_kind(rule)}")
    if more is not None:
        terminal().print(more)
    click.echo(f"Written: {out}")


@click.command()
@click.argument("model", type=FILE)
@click.argument("new", type=FILE)
@click.option(
    "-o",
    "--out",
    type=OUT,
    help="Table to write, .csv or .parquet. CSV on standard output by default.",
)
def predict(model: Path, new: Path, out: Path | None) -> None:
    """Label the windows in NEW with the model in MODEL, and give the probability of each class.

    NEW has the model's features. If it also has a column `label`, the accuracy is printed; each
    class counts as much as in the forecast.

    \b
    Examples:
      crossfade predict model.json new.csv
      crossfade predict model.json new.parquet -o labels.csv
    """
    from crossfade.blend import load_model
    from crossfade.tasks._table import check_format, read_frame, write_frame

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


def _promise(
    rule: PosteriorBlendClassifier | ConvexBlendClassifier | SavedRule, fewest: float
) -> str:
    """Forecast with its interval, as far as this many windows of the rarer class can tell."""
    if fewest < _LEAST:
        return "withheld: not enough windows to tell; label at least two of each class"
    accuracy, error = rule.expected_accuracy_, rule.expected_accuracy_error_
    low, high = max(accuracy - error, 0.0), min(accuracy + error, 1.0)
    # One standard error, where the classes are normal and the person is one of the crowd.
    often = "68 % interval at best"
    if fewest < _ENOUGH:
        often = "too narrow with two windows of a class; label more"
    return f"{accuracy:.3f}  ({low:.2f} to {high:.2f}, {often})"


def _kind(rule: PosteriorBlendClassifier | ConvexBlendClassifier | SavedRule) -> str:
    """What the forecast is of."""
    if rule.class_prior_[0] == rule.class_prior_[1]:
        return "balanced accuracy"
    pairs = zip(rule.class_prior_.tolist(), rule.classes_.tolist(), strict=True)
    return f"accuracy ({', '.join(f'{100 * share:.3g} % of {name!r}' for share, name in pairs)})"


def _more_labels(rule: PosteriorBlendClassifier | ConvexBlendClassifier, fewest: float) -> Table:
    """Forecasts for more windows of each class than there are."""
    from crossfade.blend import forecast_labels

    budgets = [count for count in _BUDGETS if count > fewest]
    view = narrow_table("What more labels would bring")
    view.add_column("windows of each class", justify="right")
    view.add_column("forecast", justify="right")
    view.add_column("gain", justify="right")
    view.add_row(f"now, {fewest:g}", f"{rule.expected_accuracy_:.3f}", "")
    if budgets:
        found = forecast_labels(rule, budgets)
        for count, accuracy in zip(found.n_per_class, found.accuracy, strict=True):
            gain = accuracy - rule.expected_accuracy_
            view.add_row(f"{count:g}", f"{accuracy:.3f}", f"{gain:+.3f}")
    return view


def _predicted(rule: SavedRule, frame: pd.DataFrame, new: Path) -> pd.DataFrame:
    """Labels and probabilities beside what is no feature; blank where a feature is missing."""
    import numpy as np
    import pandas as pd

    from crossfade.prior._compatibility import name_misfits
    from crossfade.tasks._table import RESERVED, numbers_of

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
            f"Note: {new}: {(~whole).sum()} of {len(whole)} windows get no label, because features "
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
    """Accuracy on the windows whose labels are known, each class weighted as in the forecast."""
    import numpy as np

    known = table[table["label"].notna() & table["predicted"].notna()]
    if known.empty:
        return ""
    classes = rule.classes_.tolist()
    places = {label: _place_of(label, classes) for label in known["label"].unique()}
    strangers = [label for label, place in places.items() if place is None]
    if strangers:
        raise ValueError(
            f"{new} has label {strangers[0]!r}, but the model's classes are {classes}. Rename the "
            "labels, or leave the column out."
        )
    truth = known["label"].map(places).astype(int).to_numpy()
    right = np.array(classes, dtype=object)[truth] == known["predicted"].to_numpy()
    found = {place: float(right[truth == place].mean()) for place in np.unique(truth).tolist()}
    kind, promise = _kind(rule), _promise(rule, min(rule.n_labelled_))
    on = f"on {len(known)} labelled windows"
    if len(found) < 2:
        ((place, share),) = found.items()
        said = f"Share of {classes[place]!r} found {share:.3f} {on}"
        return f"{said}; forecast of the {kind} {promise}"
    accuracy = sum(found[place] * weight for place, weight in enumerate(rule.class_prior_))
    return f"{kind[0].upper()}{kind[1:]} {accuracy:.3f} {on}; forecast {promise}"


def _place_of(label: Any, classes: list[Any]) -> int | None:
    """Which class a label means; 1, 1.0 and "1" are one, since gaps in a column change its type."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        number = float("nan")
    for place, name in enumerate(classes):
        if str(label) == str(name) or (not isinstance(name, str) and number == name):
            return place
    return None
