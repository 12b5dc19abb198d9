"""``crossfade features``: turn recordings into a table of tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade.cli._options import FILE, OUT, jobs_option, option, together
from crossfade.cli._output import is_stdout, progress, say, write_out

if TYPE_CHECKING:
    from crossfade.signals import Collected

_FILES = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
_FOLDER = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
_SECONDS = click.FloatRange(0.0, min_open=True)

_out = click.option(
    "-o",
    "--out",
    type=OUT,
    required=True,
    help="Table to write: .parquet, .csv, or - for CSV on standard output.",
)
# A file that is being read may take 100 MB.
_jobs = jobs_option("Number of files to read at the same time.")
_recipe = option(
    "--recipe",
    click.Choice(["printed", "authors"]),
    "printed",
    "Features by the paper's text, or as its authors computed them.",
)
_kind = option(
    "--features",
    click.Choice(["shares", "powers", "log-powers", "clr", "tangent"]),
    "shares",
    "Relative band powers, band powers, their logarithms, centred log-ratios of the bands, or "
    "tangent vectors of the covariance.",
)


_causal = click.option(
    "--causal",
    is_flag=True,
    help="Use the past of each window only, as a live session must: a filter with delay, and "
    "tangent vectors at the mean of the windows so far.",
)
_labelled = together(
    click.option(
        "--label-from",
        type=click.Choice(["filename", "annotations", "csv"]),
        required=True,
        help="Where to find the labels.",
    ),
    click.option(
        "--pattern",
        help="Regular expression for the name of a file, or for its path. It names (?P<task>...), "
        "for labels from the filename also (?P<label>...), and for several sessions of a person "
        "(?P<group>...).",
    ),
    click.option(
        "--labels",
        type=FILE,
        help="For labels from csv: a table with the columns file and label, and optionally task, "
        "group, start and stop (in seconds).",
    ),
    click.option(
        "--class",
        "classes",
        multiple=True,
        metavar="FOUND[=LABEL]",
        help="A label to keep, and its name in the table; repeat it for each class. All labels are "
        "kept by default.",
    ),
)


@click.group()
def features() -> None:
    """Turn EEG or ECG recordings into a table of tasks, with one row for each window.

    \b
    Examples:
      crossfade features eegmat eegmat/ -o tasks.parquet
      crossfade features eeg *.edf -o tasks.csv --label-from filename \\
          --pattern '(?P<task>Subject\\d+)_(?P<label>\\d)'
      crossfade features wesad WESAD/ -o tasks.parquet
      crossfade features ecg night/*.edf -o heart.csv --label-from annotations \\
          --class rest --class stress --window 60
    """


@features.command(short_help="EEG During Mental Arithmetic Tasks (PhysioNet).")
@_FOLDER
@_out
@_kind
@_causal
@_jobs
def eegmat(folder: Path, out: Path, features: str, causal: bool, jobs: int) -> None:
    """Read EEG During Mental Arithmetic Tasks (PhysioNet).

    FOLDER holds Subject00_1.edf and so on. Label 0 is rest, 1 is arithmetic. Windows have 2.5 s, as
    in the paper.

    Rest and arithmetic are separate recordings. Powers, log-powers and tangent vectors keep the
    amplitude, which may tell the two apart for reasons other than arithmetic; shares and clr do
    not.

    \b
    Examples:
      crossfade features eegmat eegmat/ -o tasks.parquet
      crossfade features eegmat eegmat/ -o tasks.parquet --features log-powers
      crossfade features eegmat eegmat/ -o live.parquet --features log-powers --causal
    """
    from crossfade.datasets import collect_eegmat

    _run(
        out,
        lambda bar: collect_eegmat(
            folder, features=features, causal=causal, n_jobs=jobs, on_progress=bar
        ),
    )


@features.command(short_help="Wearable Stress and Affect Detection: ECG of the chest.")
@_FOLDER
@_recipe
@_out
@_jobs
def wesad(folder: Path, recipe: str, out: Path, jobs: int) -> None:
    """Read Wearable Stress and Affect Detection (WESAD).

    FOLDER holds S2/S2.pkl and so on. Label 0 is baseline, 1 is stress. The table has three features
    of heart-rate variability in windows of 15 s: by the paper's text, or as its authors computed
    them. No code in the pickles is run.

    \b
    Examples:
      crossfade features wesad WESAD/ -o tasks.parquet
      crossfade features wesad WESAD/ --recipe authors -o as-run.parquet
    """
    from crossfade.datasets import collect_wesad

    _run(out, lambda bar: collect_wesad(folder, n_jobs=jobs, on_progress=bar, recipe=recipe))


@features.command(short_help="MATB-II: EEG under mental workload.")
@_FOLDER
@_recipe
@_out
@_jobs
def matb(folder: Path, recipe: str, out: Path, jobs: int) -> None:
    """Read MATB-II, EEG under mental workload.

    FOLDER holds sub01_preprocessed/segmented_session1/*.mat and so on. Label 1 is no or low
    workload, 0 is medium or high. The table has 24 relative band powers in windows of 10 s: by the
    paper's text, or as its authors computed them.

    \b
    Examples:
      crossfade features matb matb/ -o tasks.parquet
      crossfade features matb matb/ --recipe authors -o as-run.parquet
    """
    from crossfade.datasets import collect_matb

    _run(out, lambda bar: collect_matb(folder, n_jobs=jobs, on_progress=bar, recipe=recipe))


@features.command(short_help="EEG recordings of your own: EDF, BDF, XDF, MATLAB and others.")
@_FILES
@_out
@_labelled
@_kind
@click.option("--channels", help="Channels to use, such as Fz,Cz,Pz. All by default.")
@click.option("--bands", help="Frequency bands in Hz, such as theta=4-8,alpha=8-12,beta=12-20.")
@option("--window", _SECONDS, 2.5, "Length of a window, in seconds.")
@_causal
@_jobs
def eeg(
    files: tuple[Path, ...],
    out: Path,
    features: str,
    channels: str | None,
    bands: str | None,
    window: float,
    causal: bool,
    jobs: int,
    **labelled: Any,
) -> None:
    """Read EEG recordings: EDF, BDF, XDF, MATLAB, and every other format that MNE reads.

    FILES are recordings, or folders with recordings.

    \b
    Examples:
      crossfade features eeg eegmat/ -o tasks.parquet --label-from filename \\
          --pattern '(?P<task>Subject\\d+)_(?P<label>\\d)' --channels Fz,Cz,Pz
      crossfade features eeg p*.bdf -o tasks.csv --label-from annotations \\
          --class T1=left --class T2=right --window 4 --features tangent
      crossfade features eeg rec/ -o tasks.csv --label-from csv --labels labels.csv
    """
    from crossfade.signals import eeg_recipe

    recipe_for = partial(
        eeg_recipe,
        kind=features,
        channels=[name.strip() for name in channels.split(",")] if channels else None,
        bands=_checked(lambda: _bands(bands)),
        window=window,
        causal=causal,
    )
    _collect(files, out, recipe_for, labelled, jobs)


@features.command(short_help="ECG recordings of your own: heart-rate variability.")
@_FILES
@_out
@_labelled
@click.option(
    "--features",
    "chosen",
    default="pnn20,sdnn_ratio,lf_hf",
    show_default=True,
    help="Any of pnn20, pnn50, sdnn_ratio, rmssd, rate, lf, hf, lf_hf.",
)
@click.option("--channel", help="Name of the ECG channel. By default, the channel named ECG.")
@option("--window", _SECONDS, 15.0, "Length of a window, in seconds.")
@_jobs
def ecg(
    files: tuple[Path, ...],
    out: Path,
    chosen: str,
    channel: str | None,
    window: float,
    jobs: int,
    **labelled: Any,
) -> None:
    """Read ECG recordings: heart-rate variability of the beats in each window.

    FILES are recordings, or folders with recordings.

    \b
    Examples:
      crossfade features ecg eegmat/ -o heart.csv --label-from filename \\
          --pattern '(?P<task>Subject\\d+)_(?P<label>\\d)'
      crossfade features ecg lab/ -o live.parquet --label-from annotations \\
          --class rest --class stress
    """
    from crossfade.signals import ecg_recipe

    names = [name.strip() for name in chosen.split(",")]
    recipe_for = partial(ecg_recipe, features=names, channel=channel, window=window)
    _collect(files, out, recipe_for, labelled, jobs)


def _collect(
    files: tuple[Path, ...], out: Path, recipe_for: Any, labelled: dict[str, Any], jobs: int
) -> None:
    from crossfade.signals import collect

    label = _checked(lambda: _label(**labelled))
    merge = labelled["label_from"] == "csv"
    _run(
        out,
        lambda bar: collect(files, recipe_for, label, merge=merge, n_jobs=jobs, on_progress=bar),
    )


def _label(
    label_from: str, pattern: str | None, labels: Path | None, classes: tuple[str, ...]
) -> Any:
    from crossfade.signals import label_by_annotations, label_by_filename, label_by_table

    pairs = [text.partition("=") for text in classes]
    counted = {found: name or found for found, _, name in pairs} or None
    if label_from == "annotations":
        return label_by_annotations(counted, pattern)
    if label_from == "filename":
        if pattern is None:
            raise ValueError(
                r"--label-from filename needs --pattern '(?P<task>Subject\d+)_(?P<label>\d)'."
            )
        return label_by_filename(pattern, counted)
    if labels is None:
        raise ValueError("--label-from csv needs --labels FILE.")
    return label_by_table(labels, counted)


def _bands(text: str | None) -> dict[str, tuple[float, float]] | None:
    if text is None:
        return None
    bands = {}
    for part in text.split(","):
        name, _, ends = part.partition("=")
        low, _, high = ends.partition("-")
        if name.strip() in bands:
            raise ValueError(f"--bands has {name.strip()!r} twice.")
        try:
            bands[name.strip()] = (float(low), float(high))
        except ValueError:
            raise ValueError(
                f"--bands must look like theta=4-8,alpha=8-12; got {part!r}."
            ) from None
    return bands


def _checked(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (ValueError, OSError, ImportError, re.error) as reason:
        raise click.UsageError(str(reason)) from reason


def _run(out: Path, work: Callable[[Callable[[int, int], None]], Collected]) -> None:
    """Show progress, write the table, say what was found, and exit with 1 if a file failed."""
    from rich.console import Console

    from crossfade.tasks import write_frame

    if not is_stdout(out):
        _check_out(out)
    try:
        with progress("Files") as bar:
            found = work(bar)
        if len(found.frame) and is_stdout(out):
            write_out(out, found.frame.to_csv(index=False).encode())
        elif len(found.frame):
            write_frame(out, found.frame)
    except (ValueError, OSError, ImportError) as reason:
        raise click.ClickException(str(reason)) from reason
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    for line in _grouped(found.notes):
        errors.print(f"{line}.")
    if len(found.frame):
        say(out, _summary(found, out))
    else:
        errors.print("Nothing was written: no file could be used.")
    if found.failures:
        errors.print(f"Could not be used ({len(found.failures)}):")
        for line in _grouped(found.failures.items()):
            errors.print(f"  {line}")
    if found.failures or not len(found.frame):
        raise click.exceptions.Exit(1)


def _check_out(out: Path) -> None:
    """Refuse a table that could not be written, before hours of work."""
    from crossfade._files import check_writable
    from crossfade.tasks import check_format

    _checked(lambda: check_format(out))
    if not out.parent.is_dir():
        raise click.UsageError(f"There is no folder {out.parent} to write {out.name} to.")
    try:
        check_writable(out)
    except OSError as reason:
        said = f"{out} cannot be written: {reason.strerror}." if reason.strerror else str(reason)
        raise click.UsageError(said) from reason


def _grouped(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each sentence once, with the first places that it is about."""
    places: dict[str, list[str]] = {}
    for where, what in said:
        places.setdefault(what, []).append(where)
    for what, those in places.items():
        more = f" and {len(those) - 2} more" if len(those) > 3 else ""
        yield f"{', '.join(those[: 2 if more else 3])}{more}: {what}"


def _summary(found: Collected, out: Path) -> str:
    from crossfade.tasks import RESERVED, names_of

    frame, called = found.frame, names_of(found.frame)
    names = [name for name in frame.columns if name not in RESERVED]
    counts = ", ".join(
        f"{n} of {called.get(label, label)}"
        for label, n in frame["label"].value_counts().sort_index().items()
    )
    absent = frame[names].isna()
    text = (
        f"Written: {out}, {frame['task'].nunique()} tasks, {len(frame)} windows ({counts}), "
        f"{len(names)} features: {', '.join(names[:6])}{' ...' if len(names) > 6 else '.'}"
    )
    if absent.to_numpy().any():
        by_name = ", ".join(f"{name} {n}" for name, n in absent.sum().items() if n)
        text += (
            f"\n{absent.any(axis=1).sum()} windows lack a feature ({by_name}); readers of the "
            "table drop them unless told otherwise."
        )
    return text
