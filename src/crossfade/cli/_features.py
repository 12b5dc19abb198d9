"""``crossfade features``: turn recordings into a table of tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfade._files import check_writable, refuse_same_file
from crossfade.cli._options import FILE, TABLE_OUT, jobs_option, listed, option, together
from crossfade.cli._output import plain_messages, progress

if TYPE_CHECKING:
    from crossfade._typing import Progress

_FILES = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
_FOLDER = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
_SECONDS = click.FloatRange(0.0, min_open=True)

_out = click.option(
    "-o", "--out", type=TABLE_OUT, required=True, help="Table to write, .parquet or .csv."
)
# A file that is being read may take 100 MB.
_jobs = jobs_option("Number of files to read at the same time.")
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
    _collect_study("eegmat", folder, out, jobs, features=features, causal=causal)


@features.command(short_help="Wearable Stress and Affect Detection: ECG of the chest.")
@_FOLDER
@_out
@_jobs
def wesad(folder: Path, out: Path, jobs: int) -> None:
    """Read Wearable Stress and Affect Detection (WESAD).

    FOLDER holds S2/S2.pkl and so on. Label 0 is baseline, 1 is stress. The table has three features
    of heart-rate variability in windows of 15 s. No code in the pickles is run.

    \b
    Example:
      crossfade features wesad WESAD/ -o tasks.parquet
    """
    _collect_study("wesad", folder, out, jobs)


@features.command(short_help="MATB-II: EEG under mental workload.")
@_FOLDER
@_out
@_jobs
def matb(folder: Path, out: Path, jobs: int) -> None:
    """Read MATB-II, EEG under mental workload.

    FOLDER holds sub01_preprocessed/segmented_session1/*.mat and so on. Label 1 is no or low
    workload, 0 is medium or high. The table has 24 relative band powers in windows of 10 s.

    \b
    Example:
      crossfade features matb matb/ -o tasks.parquet
    """
    _collect_study("matb", folder, out, jobs)


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
        channels=listed(channels) if channels else None,
        bands=_bands(bands),
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

    recipe_for = partial(ecg_recipe, features=listed(chosen), channel=channel, window=window)
    _collect(files, out, recipe_for, labelled, jobs)


def _collect_study(name: str, folder: Path, out: Path, jobs: int, **options: Any) -> None:
    """Read the recordings of one of the paper's studies, and write their table."""
    from crossfade.datasets import COLLECTORS

    collect: Any = COLLECTORS[name]
    _run(out, lambda bar: collect(folder, n_jobs=jobs, on_progress=bar, **options))


def _collect(
    files: tuple[Path, ...], out: Path, recipe_for: Any, labelled: dict[str, Any], jobs: int
) -> None:
    """Read recordings of a user's own, and write their table."""
    from crossfade.signals import collect, label_from

    source, pattern, table = (labelled[name] for name in ("label_from", "pattern", "labels"))
    pairs = [text.partition("=") for text in labelled["classes"]]
    classes = {found: name or found for found, _, name in pairs} or None
    with plain_messages():
        refuse_same_file(out, table, *files)
        label = label_from(source, pattern=pattern, table=table, classes=classes)
    merge = source == "csv"
    _run(
        out,
        lambda bar: collect(files, recipe_for, label, merge=merge, n_jobs=jobs, on_progress=bar),
    )


def _bands(text: str | None) -> dict[str, tuple[float, float]] | None:
    """Frequency bands as they are typed: theta=4-8,alpha=8-12."""
    if text is None:
        return None
    found = [re.fullmatch(r"(\w+)=([\d.]+)-([\d.]+)", part) for part in listed(text)]
    bands = {one[1]: (float(one[2]), float(one[3])) for one in found if one}
    if len(bands) < len(found):
        raise click.UsageError(f"--bands must look like theta=4-8,alpha=8-12; got {text}.")
    return bands


def _run(out: Path, work: Callable[[Progress], Any]) -> None:
    """Show progress, write the table, say what was found, and exit with 1 if a file failed."""
    from crossfade.tasks import write_frame

    with plain_messages():
        # Reading may take hours: a table that cannot be written is refused before.
        check_writable(out)
        with progress("Files") as bar:
            found = work(bar)
        if len(found.frame):
            write_frame(out, found.frame)
    for line in _grouped(found.notes):
        click.echo(f"{line}.", err=True)
    if len(found.frame):
        click.echo(_summary(found, out))
    else:
        click.echo("Nothing was written: no file could be used.", err=True)
    if found.failures:
        click.echo(f"Could not be used ({len(found.failures)}):", err=True)
        for line in _grouped(found.failures.items()):
            click.echo(f"  {line}", err=True)
    if found.failures or not len(found.frame):
        raise click.exceptions.Exit(1)


def _grouped(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each sentence once, with the first places that it is about."""
    places: dict[str, list[str]] = {}
    for where, what in said:
        places.setdefault(what, []).append(where)
    for what, those in places.items():
        more = f" and {len(those) - 2} more" if len(those) > 3 else ""
        yield f"{', '.join(those[: 2 if more else 3])}{more}: {what}"


def _summary(found: Any, out: Path) -> str:
    """Text about the table that was written."""
    frame, called = found.frame, dict(found.frame.attrs.get("class_names", ()))
    names = [name for name in frame.columns if name not in ("task", "label", "group", "start")]
    counts = ", ".join(
        f"{n} of {called.get(label, label)}"
        for label, n in frame["label"].value_counts().sort_index().items()
    )
    lacking = int(frame[names].isna().any(axis=1).sum())
    return (
        f"Written: {out}, {frame['task'].nunique()} tasks, {len(frame)} windows ({counts}), "
        f"{len(names)} features: {', '.join(names[:6])}{' ...' if len(names) > 6 else '.'}"
        + f"\n{lacking} windows lack a feature; what reads the table leaves them out."
        * bool(lacking)
    )
