"""``crossfade calibrate`` blends a prior with one person's windows; ``predict`` labels new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade.cli._options import FILE, OUT, TABLE, table_options
from crossfade.cli._output import (
    is_stdout,
    narrow_table,
    plain_messages,
    say,
    terminal,
    write_out,
)
from crossfade.cli._windows import counts_of, read_person, read_windows

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from crossfade.blend import BlendClassifier, SavedRule
    from crossfade.prior import TaskPrior
    from crossfade.study import Budget
    from crossfade.tasks import Table as Windows

#: Numbers of windows of each class for which `calibrate` forecasts the accuracy.
_BUDGETS = (1, 2, 4, 8, 16, 32)
#: Probability of the intervals, and fewest windows of a class from which theory alone can forecast.
_LEVEL, _LEAST = 0.9, 2.0
#: Forecasts that are lower by less are as good as equal.
_SCATTER = 0.005


@click.command()
@click.argument("few", type=TABLE, required=False)
@table_options
@click.option(
    "--prior", type=FILE, required=True, help="Prior file, made by `crossfade prior build`."
)
@click.option(
    "-o", "--out", type=OUT, required=True, help="Model file to write; - is standard output."
)
@click.option(
    "--blend",
    type=click.Choice(["hierarchical", "posterior", "convex"]),
    show_default="hierarchical where the prior holds class means, else posterior",
    help="How to blend the person with the crowd; convex is the paper's way.",
)
@click.option(
    "--budgets",
    show_default="those of 1,2,4,8,16,32 that are more than there are",
    help="Labelled windows for which to forecast the accuracy: of each class (8), or of the first "
    "and of the second (24+2).",
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
    "--earlier",
    type=TABLE,
    help="Labelled windows of earlier sessions of the same person, as a table like FEW; with a "
    "column `task` each task is a session. For the hierarchical blend.",
)
@click.option(
    "--scattered",
    is_flag=True,
    help="The windows of FEW are spread over the session. By default, those of each class are "
    "taken to follow each other in time.",
)
def calibrate(
    few: Path | None,
    prior: Path,
    out: Path,
    blend: str | None,
    budgets: str | None,
    class_prior: tuple[float, float] | None,
    earlier: Path | None,
    scattered: bool,
    mapping: Mapping[str, Any],
) -> None:
    """Blend a prior with the few labelled windows of one person in FEW, and write the model.

    FEW has a column `label` and the prior's features. Where a label is empty, the window counts as
    unlabelled, which tells where the classes lie. One class is enough to begin with; without FEW
    the crowd answers alone. The command prints how much the person's own windows weigh, which
    accuracy to expect on new windows, and how much more labels would help.

    \b
    Examples:
      crossfade calibrate --prior prior.npz -o model.json
      crossfade calibrate --prior prior.npz few.csv -o model.json
      crossfade calibrate --prior prior.npz few.csv -o model.json --budgets 8,16,24+2
      crossfade calibrate --prior prior.npz few.csv -o model.json --class-prior 0.9 0.1 --scattered
      crossfade calibrate --prior prior.npz today.csv -o model.json --earlier yesterday.csv
    """
    from crossfade.blend import (
        ConvexBlendClassifier,
        HierarchicalBlendClassifier,
        PosteriorBlendClassifier,
        content_of_model,
    )
    from crossfade.cli._study import budget_from
    from crossfade.prior import TaskPrior

    kinds: dict[str, type[BlendClassifier]] = {
        "hierarchical": HierarchicalBlendClassifier,
        "posterior": PosteriorBlendClassifier,
        "convex": ConvexBlendClassifier,
    }
    with plain_messages():
        crowd = TaskPrior.load(prior)
        if blend is None:
            blend = "hierarchical" if crowd.class_means is not None else "posterior"
            if blend == "posterior":
                click.echo(f"Note: {prior} holds no class means, so {_LOST}", err=True)
        if earlier is not None:
            crowd = _for_person(crowd, earlier, prior, blend, mapping)
        wanted = None if budgets is None else [budget_from(text) for text in budgets.split(",")]
        options: dict[str, Any] = {"class_prior": class_prior}
        if blend != "convex":
            options["in_a_row"] = not scattered
        elif scattered:
            raise click.UsageError("--scattered does not work with --blend convex.")
        rule = kinds[blend](crowd, **options)
        labelled = _learn(rule, crowd, few, prior, mapping)
        now = tuple(float(count) for count in rule._moments.counts)
        more, silence = _more_labels(rule, now, wanted)
        promise = _promise(rule)
        write_out(out, content_of_model(rule))
    hidden = crowd.release is not None and crowd.cancels
    agreement = "hidden by noise" if hidden else f"{crowd.trusted_length:.3f}"
    say(out, f"Prior     {crowd.n_tasks} tasks, agreement R {agreement}")
    if earlier is not None:
        say(out, f"Earlier   {earlier}")
    say(out, f"Labelled  {labelled}")
    say(out, f"Blend     {blend}")
    say(out, f"alpha     {rule.alpha_:.3f}  (1: this person alone, 0: the crowd alone)")
    say(out, f"Forecast  {promise}")
    if class_prior is not None:
        say(out, f"          of the {_kind(rule)}")
    if more is not None:
        terminal(out).print(more)
    if silence:
        say(out, silence)
    say(out, f"Written: {out}")


def _for_person(
    crowd: TaskPrior, earlier: Path, prior: Path, blend: str, mapping: Mapping[str, Any]
) -> TaskPrior:
    """The prior for the person of a table of earlier sessions."""
    from crossfade.prior import misfits

    if blend != "hierarchical":
        raise ValueError(
            f"--earlier is for the hierarchical blend, since the {blend} blend knows directions "
            "only. Leave it out, or take --blend hierarchical with a prior that holds class means."
        )
    sessions = [
        replace(one, y=_as_classes(one.y, crowd.classes)) for one in read_windows(earlier, mapping)
    ]
    wrong = misfits(crowd, sessions)
    if wrong:
        raise ValueError(f"{earlier} does not fit {prior}. {' '.join(wrong)}")
    return crowd.for_person(sessions)


#: What a prior without class means costs.
_LOST = (
    "the posterior blend of directions is used: it needs labels of both classes, and with few of "
    "them it is less accurate. Build the prior with class means, as `crossfade prior build` does."
)


def _learn(
    rule: BlendClassifier,
    crowd: TaskPrior,
    few: Path | None,
    prior: Path,
    mapping: Mapping[str, Any],
) -> str:
    """Fit the rule to the windows of a file, if there is one; return how many there are."""
    import numpy as np
    import pandas as pd

    from crossfade.prior import misfits, name_misfits
    from crossfade.tasks import recipe_misfits, recipe_of

    if few is None:
        rule.start()
        return "nothing yet"
    person, unlabelled = read_person(few, mapping)
    if person is None:
        if unlabelled is not None:
            click.echo(
                f"Note: {few} has no labels, so that all {len(unlabelled)} windows count as "
                "unlabelled. If a column has the labels, name it with --label.",
                err=True,
            )
        features = [] if unlabelled is None else [str(name) for name in unlabelled.columns]
        wrong = name_misfits(crowd.feature_names, crowd.n_features, features, "the prior")
        if unlabelled is not None:
            wrong += recipe_misfits(recipe_of(unlabelled, str(few)), crowd.recipe)
    else:
        person = replace(person, y=_as_classes(person.y, crowd.classes))
        wrong = misfits(crowd, [person])
    # A class that is still to come is no misfit: the crowd knows it.
    wrong = [reason for reason in wrong if not reason.startswith("There is no window of class")]
    if wrong:
        raise ValueError(f"{few} does not fit {prior}. {' '.join(wrong)}")
    if unlabelled is not None and person is not None and crowd.class_means is None:
        click.echo(
            f"Note: {len(unlabelled)} windows without a label are left out: only a prior with "
            "class means can use them.",
            err=True,
        )
        unlabelled = None
    if person is not None:
        names = list(person.feature_names or ())
        X = pd.DataFrame(np.asarray(person.X), columns=names)
        if unlabelled is None:
            rule.fit(X, person.y)
        else:
            rule.partial_fit(X, person.y, classes=crowd.classes)
    counts = (
        "nothing yet"
        if person is None
        else counts_of(person, _named(crowd.classes, crowd.class_names))
    )
    if unlabelled is None:
        return counts
    rule.partial_fit(unlabelled, None)
    return f"{counts}; {len(unlabelled)} unlabelled"


@click.command()
@click.argument("model", type=FILE)
@click.argument("new", type=TABLE)
@table_options
@click.option(
    "-o",
    "--out",
    type=OUT,
    help="Table to write, .csv or .parquet. CSV on standard output by default.",
)
def predict(model: Path, new: Path, out: Path | None, mapping: Mapping[str, Any]) -> None:
    """Label the windows in NEW with the model in MODEL, and give the probability of each class.

    NEW has the model's features. If it also has a column `label`, the accuracy is printed; each
    class counts as much as in the forecast.

    \b
    Examples:
      crossfade predict model.json new.csv
      crossfade predict model.json new.parquet -o labels.csv
    """
    from crossfade.blend import load_model
    from crossfade.tasks import Columns, check_format, open_table, write_frame

    if is_stdout(out):
        out = None
    with plain_messages():
        if out is not None:
            check_format(out)
        rule = load_model(model)
        columns = Columns(**mapping)
        windows = columns.of(open_table(new, columns), needed=())
        table = _predicted(rule, windows)
        said = _hits(rule, table, windows.where) if "label" in table else None
        if out is not None:
            write_frame(out, table)
    if out is None:
        click.echo(table.to_csv(index=False), nl=False)
    if said:
        click.echo(said, err=out is None)
    if out is not None:
        click.echo(f"Written: {out}")


def _as_classes(labels: Any, classes: Sequence[Any] | None) -> Any:
    """Labels as the classes of the prior that they mean; empty ones make others text in a file."""
    import numpy as np

    if classes is None:
        return labels
    known = list(classes)
    places = {
        label: _place_of(label, known) for label in dict.fromkeys(np.asarray(labels).tolist())
    }
    if None in places.values():
        return labels
    return np.array([known[places[label] or 0] for label in np.asarray(labels).tolist()])


def _named(classes: Sequence[Any] | None, names: Sequence[str] | None) -> dict[Any, str]:
    """What people call the classes, if they have names."""
    return {} if classes is None or names is None else dict(zip(classes, names, strict=True))


def _called(rule: BlendClassifier | SavedRule) -> list[Any]:
    """Classes of a rule as people call them."""
    names = getattr(rule, "class_names_", getattr(rule.prior_, "class_names", None))
    return list(names or rule.classes_.tolist())


def _promise(rule: BlendClassifier | SavedRule) -> str:
    """Forecast with its interval."""
    accuracy = rule.expected_accuracy_
    if accuracy is None:
        return "not known"
    low, high = rule.expected_accuracy_interval(_LEVEL)
    return f"{accuracy:.3f}  (90 % interval {low:.2f} to {high:.2f})"


def _kind(rule: BlendClassifier | SavedRule) -> str:
    """What the forecast is of."""
    if len(set(rule.class_prior_.tolist())) == 1:
        return "balanced accuracy"
    pairs = zip(rule.class_prior_.tolist(), _called(rule), strict=True)
    return f"accuracy ({', '.join(f'{100 * share:.3g} % of {name!r}' for share, name in pairs)})"


def _more_labels(
    rule: BlendClassifier, now: tuple[float, ...], wanted: Sequence[Budget] | None
) -> tuple[Table | None, str]:
    """Forecasts for more windows than there are, or why there are none."""
    from crossfade.blend import forecast_labels

    fewest = min(now)
    if wanted is None:
        # What is there already stays: after 24+2 come 24+4 and 24+8.
        counts = [tuple(max(int(have), one) for have in now) for one in _BUDGETS if one > fewest]
        budgets: list[Any] = [one[0] if len(set(one)) == 1 else one for one in counts]
    else:
        budgets = list(wanted)
        if any(isinstance(one, float) for one in budgets):
            raise ValueError("--budgets takes numbers of windows, such as 8 or 24+2, not shares.")
        unlike = next((one for one in budgets if isinstance(one, tuple) and len(one) != 2), None)
        if unlike is not None:
            raise ValueError(
                f"--budgets {'+'.join(map(str, unlike))} has numbers for {len(unlike)} classes, "
                "and there are 2. Give one for each, such as 24+2."
            )
    try:
        found = forecast_labels(rule, budgets, level=_LEVEL) if budgets else None
    except ValueError:
        if fewest < _LEAST and wanted is None:
            return None, (
                "What more labels would bring cannot be told yet: label two windows of each class, "
                "or build the prior from tasks, so that it knows what became of others."
            )
        known = None if rule.prior_ is None else rule.prior_.replay
        if known is not None or wanted is not None:
            raise
        return None, (
            "What more labels would bring is not known: this prior holds no replay of what became "
            "of others. `crossfade prior build` makes one that does."
        )
    view = narrow_table("What more labels would bring")
    for head in ("windows of each class", "forecast", "90 % interval", "gain"):
        view.add_column(head, justify="right")
    low, high = rule.expected_accuracy_interval(_LEVEL)
    have = f"{now[0]:g}" if len(set(now)) == 1 else "+".join(f"{count:g}" for count in now)
    view.add_row(f"now, {have}", f"{rule.expected_accuracy_:.3f}", f"{low:.2f} to {high:.2f}", "")
    if found is not None:
        lines = zip(budgets, found.accuracy, found.lower, found.upper, strict=True)
        for budget, accuracy, low, high in lines:
            text = "+".join(map(str, budget)) if isinstance(budget, tuple) else f"{budget:g}"
            # Zero without a sign.
            gain = round(accuracy - rule.expected_accuracy_, 3) + 0.0
            view.add_row(text, f"{accuracy:.3f}", f"{low:.2f} to {high:.2f}", f"{gain:+.3f}")
        if rule.prior_ is not None and found.accuracy.min() < rule.expected_accuracy_ - _SCATTER:
            return view, (
                "More labels do not harm. That a forecast falls is chance: it rests on what became "
                f"of {rule.prior_.n_tasks} tasks."
            )
    return view, ""


def _predicted(rule: SavedRule, windows: Windows) -> pd.DataFrame:
    """Labels and probabilities beside what is no feature; blank where a feature is missing."""
    import numpy as np
    import pandas as pd

    from crossfade.prior import name_misfits
    from crossfade.tasks import numbers_of, recipe_misfits, recipe_of

    frame, features = windows.frame, list(windows.features)
    names = getattr(rule, "feature_names_in_", None)
    wanted = None if names is None else names.tolist()
    wrong = name_misfits(wanted, rule.n_features_in_, features, "the model")
    recipe = recipe_of(frame, windows.where)
    wrong += recipe_misfits(recipe, rule.recipe_, "the model")
    if wrong:
        raise ValueError(f"{windows.where} does not fit the model. {' '.join(wrong)}")
    if recipe is None and rule.recipe_ is not None:
        click.echo(
            f"Note: {windows.where} does not say how its features were made; the model's are "
            f"{rule.recipe_}.",
            err=True,
        )
    values = np.column_stack([numbers_of(windows, name) for name in features])
    whole = ~np.isnan(values).any(1)
    if not whole.all():
        click.echo(
            f"Note: {windows.where}: {(~whole).sum()} of {len(whole)} windows get no label, since "
            "features are missing.",
            err=True,
        )
    table = frame[[name for name in frame.columns if name not in features]].copy()
    X: Any = values[whole] if wanted is None else pd.DataFrame(values[whole], columns=wanted)
    labels = pd.Series(None, index=table.index, dtype=object)
    chances = np.full((len(frame), len(rule.classes_)), np.nan)
    if whole.any():
        labels[whole] = rule.predict(X).tolist()
        chances[whole] = rule.predict_proba(X)
    table["predicted"] = labels
    for place, name in enumerate(rule.classes_.tolist()):
        table[f"probability_{name}"] = chances[:, place]
    return table


def _hits(rule: SavedRule, table: pd.DataFrame, new: str) -> str:
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
    kind, promise = _kind(rule), _promise(rule)
    on = f"on {len(known)} labelled windows"
    if len(found) < 2:
        ((place, share),) = found.items()
        said = f"Share of {_called(rule)[place]!r} found {share:.3f} {on}"
        return f"{said}; forecast of the {kind} {promise}"
    # Of many classes some may not occur.
    weights = {place: float(rule.class_prior_[place]) for place in found}
    accuracy = sum(found[place] * weight for place, weight in weights.items())
    accuracy /= sum(weights.values())
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
