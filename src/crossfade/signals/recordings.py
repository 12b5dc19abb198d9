"""Channels and annotations of a recording: XDF, MATLAB, and every format of MNE (EDF, BDF, ...)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfade.signals._check import check_rate
from crossfade.signals._mat import load_mat

__all__ = ["SUFFIXES", "Annotation", "Recording", "open_recording", "plain_name"]

Array = NDArray[np.float64]

#: Endings of files that are taken from a folder. A file that is named may have any of MNE's.
SUFFIXES = (".edf", ".bdf", ".gdf", ".fif", ".vhdr", ".set", ".cnt", ".xdf", ".mat")

_SCALP = re.compile(
    r"(?:N?Fp|AFp?|AFF|F|FF[CT]|F[CT]|FCC|FTT|[CT]|CCP|TTP|[CT]P|[CT]PP|PP?O?|POO|OI?|I)(?:z|\d{1,2}h?)",
    re.I,
)
_RATES = ("sfreq", "fs", "srate", "sampling_rate", "Fs")
_NAMES = ("ch_names", "channels", "labels", "chanlabels")


class Annotation(NamedTuple):
    """A segment of a recording that has a name.

    Attributes
    ----------
    start : float
        When it begins, in seconds from the beginning of the recording.
    duration : float
        How long it lasts, in seconds; 0 is a marker.
    text : str
        Its name.
    """

    start: float
    duration: float
    text: str


@dataclass(frozen=True, eq=False)
class Recording:
    """An open recording, of which channels are read when asked for.

    Attributes
    ----------
    path : Path
        Where it is.
    sfreq : float
        Samples per second.
    ch_names : tuple of str
        Names of its channels, as :func:`plain_name` has them.
    n_samples : int
        Length in samples.
    annotations : tuple of Annotation
        Its annotations, in order of time.
    load : callable
        Takes the places of channels and returns them as an array of shape
        (n_channels, n_samples), in microvolts where the file knows its unit.
    kinds : tuple of str
        What the file says that each channel is: "eeg", "ecg" and so on.
    """

    path: Path
    sfreq: float
    ch_names: tuple[str, ...]
    n_samples: int
    annotations: tuple[Annotation, ...]
    load: Callable[[list[int]], Array] = field(repr=False)
    kinds: tuple[str, ...] = field(repr=False)

    def read(self, channels: Sequence[str]) -> Array:
        """Read channels by name.

        Parameters
        ----------
        channels : sequence of str
            Which ones; ``Fz`` finds ``EEG Fz-Ref`` too.

        Returns
        -------
        ndarray of shape (n_channels, n_samples)
            The channels, in microvolts where the file knows its unit.
        """
        return self.load(self.find(channels))

    def find(self, channels: Sequence[str]) -> list[int]:
        """Places of channels; refuses those that are not there.

        Parameters
        ----------
        channels : sequence of str
            Which ones.

        Returns
        -------
        list of int
            Where they are.
        """
        there = {name.lower(): place for place, name in enumerate(self.ch_names)}
        wanted = [name.lower() for name in channels]
        plain = [name if name in there else plain_name(name) for name in wanted]
        missing = [name for name, short in zip(channels, plain, strict=True) if short not in there]
        if missing:
            raise ValueError(
                f"There is no channel {', '.join(missing)}; there are {', '.join(self.ch_names)}."
            )
        places = [there[name] for name in plain]
        if len(set(places)) < len(places):
            raise ValueError(f"A channel is asked for twice: {', '.join(channels)}.")
        return places

    def scalp(self) -> tuple[str, ...]:
        """Names of the EEG channels: those of the 10-05 system, if most are called so, or all.

        Electrodes at the ears (A1, M1) are references and not among the former.
        """
        eeg = [name for name, kind in zip(self.ch_names, self.kinds, strict=True) if kind == "eeg"]
        known = [name for name in eeg if _SCALP.fullmatch(name)]
        return tuple(known if 2 * len(known) > len(eeg) else eeg)

    def ecg_channel(self) -> str:
        """Name of the one ECG channel: by its kind, or the only channel there is."""
        by_kind = [n for n, k in zip(self.ch_names, self.kinds, strict=True) if k == "ecg"]
        found = by_kind or list(self.ch_names)
        if len(found) > 1:
            raise ValueError(
                f"Which channel is the ECG? There are {', '.join(self.ch_names)}. Name it."
            )
        return found[0]


def plain_name(name: str) -> str:
    """Name of a channel without its kind, its reference and padding.

    Parameters
    ----------
    name : str
        As it stands in a file.

    Returns
    -------
    str
        The name that people use.

    Examples
    --------
    >>> from crossfade.signals.recordings import plain_name
    >>> [plain_name(name) for name in ("EEG Fz-Ref", "ECG ECG", "Cz..", "EEG A2-A1")]
    ['Fz', 'ECG', 'Cz', 'A2-A1']
    """
    short = re.sub(r"^(?:EEG|ECG|EKG|EOG|EMG)[ :_-]+(?=\S)", "", name.strip(), flags=re.I)
    short = re.sub(r"-(?:REF|LE|AVG|AVE|AR)$", "", short.rstrip(". "), flags=re.I)
    return short or name


def _plain_names(names: Sequence[str]) -> tuple[str, ...]:
    """Plain names, but for those that would be the same."""
    plain = [plain_name(name) for name in names]
    count = Counter(name.lower() for name in plain)
    return tuple(
        short if count[short.lower()] == 1 else name.strip()
        for name, short in zip(names, plain, strict=True)
    )


def _kind(name: str, stated: str) -> str:
    """What a channel is: many files call everything EEG, and say more in the name."""
    match = re.match(r"(ECG|EKG|EOG|EMG|RESP|EDA|GSR|PPG|TEMP)", name.strip(), re.I)
    if stated != "eeg" or match is None:
        return stated
    return {"ekg": "ecg"}.get(match[1].lower(), match[1].lower())


def open_recording(path: str | os.PathLike[str], *, sfreq: float | None = None) -> Recording:
    """Open a recording; its samples are read later, by channel.

    Parameters
    ----------
    path : str or path-like
        An XDF or MATLAB file, or one that MNE reads (EDF, BDF, GDF, FIF, BrainVision, ...).
    sfreq : float or None, default=None
        Samples per second of a MATLAB file that does not hold them.

    Returns
    -------
    Recording
        What the file holds.
    """
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"There is no file {where}.")
    suffix = where.suffix.lower()
    with _in_words(where):
        if suffix == ".mat":
            recording = _open_matlab(where, sfreq)
        else:
            recording = (_open_xdf if suffix == ".xdf" else _open_mne)(where)
    if not recording.ch_names or recording.n_samples == 0:
        raise ValueError("The file holds no samples.")
    check_rate(recording.sfreq)
    return recording


class _UnreadableError(ValueError):
    """A recording that cannot be read, in words of ours."""


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn whatever a library raises of a damaged file into one sentence."""
    try:
        yield
    except (_UnreadableError, ImportError):
        raise
    except Exception as reason:
        kind = {".mat": "MATLAB", ".xdf": "XDF"}.get(path.suffix.lower(), path.suffix[1:].upper())
        why = str(reason).strip().rstrip(".") or type(reason).__name__
        raise _UnreadableError(f"This is no {kind} file, or it is damaged: {why}.") from reason


def _open_mne(path: Path) -> Recording:
    try:
        import mne
    except ImportError as reason:
        raise ImportError(f"{path.suffix} needs MNE. Install crossfade[eeg].") from reason
    if path.suffix.lower() in (".edf", ".bdf"):
        _check_edf(path)
    raw = mne.io.read_raw(path, preload=False, verbose="error")
    kinds = tuple(map(_kind, raw.ch_names, raw.get_channel_types()))
    volts = np.array([kind not in ("misc", "stim", "resp", "temperature") for kind in kinds])

    def load(places: list[int]) -> Array:
        with _in_words(path):
            data: Array = raw.get_data(picks=places, verbose="error")
        data *= np.where(volts[places], 1e6, 1.0)[:, None]
        return data

    return Recording(
        path,
        float(raw.info["sfreq"]),
        _plain_names(raw.ch_names),
        int(raw.n_times),
        tuple(
            Annotation(float(start), float(duration), str(text))
            for start, duration, text in zip(
                raw.annotations.onset - raw.first_time * (raw.annotations.orig_time is not None),
                raw.annotations.duration,
                raw.annotations.description,
                strict=True,
            )
        ),
        load,
        kinds,
    )


def _check_edf(path: Path) -> None:
    """Refuse an EDF or BDF file that is shorter than its header says: MNE reads what is there."""
    width = 2 if path.suffix.lower() == ".edf" else 3
    with open(path, "rb") as stream:
        fixed = stream.read(256)
        try:
            n_header, n_records, n_signals = (
                int(fixed[a:b]) for a, b in ((184, 192), (236, 244), (252, 256))
            )
            stream.seek(256 + 216 * n_signals)
            sizes = [int(stream.read(8)) for _ in range(n_signals)]
            seconds = float(fixed[244:252])
        except ValueError:
            raise _UnreadableError(
                "This is no EDF or BDF file, or its header is damaged."
            ) from None
    one = width * sum(sizes)
    held = (path.stat().st_size - n_header) // one if one else 0
    # A recorder that was cut off leaves -1: then what is there is all there is.
    if held < n_records or held < 1:
        raise _UnreadableError(
            f"The file is cut short: its header says {n_records * seconds:g} s, it holds "
            f"{max(held, 0) * seconds:g} s. Copy it again."
        )


def _open_matlab(path: Path, sfreq: float | None) -> Recording:
    try:
        content = load_mat(path, squeeze_me=False, chars_as_strings=True)
    except NotImplementedError:
        raise _UnreadableError(
            "This is a MATLAB 7.3 file. Save it with save(..., '-v7')."
        ) from None
    tables = {
        name: value
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiu"
    }
    signals = {name: value for name, value in tables.items() if max(value.shape) > 100}
    if len(signals) != 1:
        raise _UnreadableError(
            f"A MATLAB file must hold one matrix of samples; this one has {sorted(signals)} among "
            f"{sorted(name for name in content if not name.startswith('__'))}."
        )
    samples = next(iter(signals.values()))
    # A recording is longer than it has channels.
    data = np.asarray(samples if samples.shape[0] <= samples.shape[1] else samples.T, np.float64)
    rate = next((float(tables[n].flat[0]) for n in _RATES if n in tables), sfreq)
    if rate is None:
        raise _UnreadableError(
            f"The file does not hold its sampling rate (looked for {', '.join(_RATES)}). State it."
        )
    stated = next((content[name] for name in _NAMES if name in content), None)
    names = [_text(one) for one in np.ravel(stated)] if stated is not None else []
    if len(names) != len(data):
        names = [f"ch{place + 1}" for place in range(len(data))]
    return _of_array(path, data, rate, names)


def _text(cell: Any) -> str:
    return str(np.ravel(cell)[0]).strip() if np.size(cell) else ""


def _open_xdf(path: Path) -> Recording:
    try:
        import pyxdf
    except ImportError as reason:
        raise ImportError("XDF needs pyxdf. Install crossfade[eeg].") from reason
    with open(path, "rb") as stream:
        if stream.read(4) != b"XDF:":
            raise _UnreadableError("This is no XDF file, or it is damaged.")
    streams, _ = pyxdf.load_xdf(str(path))
    sampled = [
        s for s in streams if float(s["info"]["nominal_srate"][0]) > 0 and len(s["time_stamps"])
    ]
    signals = [
        s for s in sampled if s["info"]["type"][0].lower() in ("eeg", "ecg", "exg")
    ] or sampled
    if len(signals) != 1:
        found = ", ".join(stream["info"]["name"][0] for stream in signals) or "none"
        raise _UnreadableError(f"An XDF file must hold one stream of EEG or ECG; found {found}.")
    signal = signals[0]
    times = signal["time_stamps"]
    data = np.asarray(signal["time_series"], np.float64).T
    markers = sorted(
        Annotation(float(time - times[0]), 0.0, str(np.ravel(text)[0]))
        for other in streams
        if float(other["info"]["nominal_srate"][0]) == 0
        for time, text in zip(other["time_stamps"], other["time_series"], strict=True)
    )
    described = (signal["info"].get("desc") or [None])[0] or {}
    channels = ((described.get("channels") or [None])[0] or {}).get("channel", [])
    names = [_text(channel.get("label", [])) for channel in channels]
    if len(names) != len(data):
        names = [f"ch{place + 1}" for place in range(len(data))]
    return _of_array(
        path,
        data,
        float(signal["info"]["nominal_srate"][0]),
        names,
        tuple(markers),
        signal["info"]["type"][0].lower(),
    )


def _of_array(
    path: Path,
    data: Array,
    sfreq: float,
    names: Sequence[str],
    annotations: tuple[Annotation, ...] = (),
    kind: str = "eeg",
) -> Recording:
    return Recording(
        path,
        sfreq,
        _plain_names(names),
        data.shape[1],
        annotations,
        lambda places: data[places],
        tuple(_kind(name, "ecg" if kind == "ecg" else "eeg") for name in names),
    )
