"""Channels and annotations of a recording: XDF, MATLAB, and every format of MNE (EDF, BDF, ...).

MATLAB files are checked before SciPy loads them: a damaged one would crash Python.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossfade._typing import Array
from crossfade._validate import check_extra
from crossfade.signals.windows import check_rate

__all__ = ["open_recording"]


#: Endings of files that are taken from a folder. A file that is named may have any of MNE's.
SUFFIXES = (".edf", ".bdf", ".gdf", ".fif", ".vhdr", ".set", ".cnt", ".xdf", ".mat")

_SCALP = re.compile(
    r"(?:N?Fp|AFp?|AFF|F|FF[CT]|F[CT]|FCC|FTT|[CT]|CCP|TTP|[CT]P|[CT]PP|PP?O?|POO|OI?|I)(?:z|\d{1,2}h?)",
    re.I,
)
_RATES = ("sfreq", "fs", "srate", "sampling_rate", "Fs")
_NAMES = ("ch_names", "channels", "labels", "chanlabels")
#: Elements of MATLAB files that hold numbers or text, and the two that hold elements.
_PLAIN = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18))
_MATRIX, _COMPRESSED = 14, 15
#: Bytes of an unpacked MATLAB file.
_LARGEST = 4 << 30


class Annotation(NamedTuple):
    """A named segment of a recording; a marker has the duration 0. Times are in seconds."""

    start: float
    duration: float
    text: str


@dataclass(frozen=True, eq=False)
class Recording:
    """An open recording; channels are read when asked for."""

    path: Path
    sfreq: float
    ch_names: tuple[str, ...]
    n_samples: int
    annotations: tuple[Annotation, ...]  # in order of time
    load: Callable[[list[int]], Array] = field(repr=False)  # channels by their places
    kinds: tuple[str, ...] = field(repr=False)  # "eeg", "ecg" and so on, for each channel

    def read(self, channels: Sequence[str]) -> Array:
        """Channels (n_channels, n_samples) by name; ``Fz`` finds ``EEG Fz-Ref`` too."""
        return self.load(self.find(channels))

    def find(self, channels: Sequence[str]) -> list[int]:
        """Places of channels by name."""
        there = {name.lower(): place for place, name in enumerate(self.ch_names)}
        wanted = [name.lower() for name in channels]
        plain = [name if name in there else plain_name(name) for name in wanted]
        missing = [name for name, short in zip(channels, plain, strict=True) if short not in there]
        if missing:
            raise ValueError(
                f"There is no channel {', '.join(missing)}; there are {', '.join(self.ch_names)}."
            )
        return [there[name] for name in plain]

    def scalp(self) -> tuple[str, ...]:
        """Names of the EEG channels: those of the 10-05 system if most have such names, or all."""
        eeg = [name for name, kind in zip(self.ch_names, self.kinds, strict=True) if kind == "eeg"]
        known = [name for name in eeg if _SCALP.fullmatch(name)]
        return tuple(known if 2 * len(known) > len(eeg) else eeg)

    def ecg_channel(self) -> str:
        """Name of the ECG channel, or of the only channel."""
        by_kind = [n for n, k in zip(self.ch_names, self.kinds, strict=True) if k == "ecg"]
        found = by_kind or list(self.ch_names)
        if len(found) > 1:
            raise ValueError(
                f"Which channel is the ECG? There are {', '.join(self.ch_names)}. Name it."
            )
        return found[0]


def plain_name(name: str) -> str:
    """Name of a channel without its kind, reference and padding: ``Fz`` for ``EEG Fz-Ref``."""
    short = re.sub(r"^(?:EEG|ECG|EKG|EOG|EMG)[ :_-]+(?=\S)", "", name.strip(), flags=re.I)
    short = re.sub(r"-(?:REF|LE|AVG|AVE|AR)$", "", short.rstrip(". "), flags=re.I)
    return short or name


def _plain_names(names: Sequence[str]) -> tuple[str, ...]:
    """Plain names, or full names where plain ones would be equal."""
    plain = [plain_name(name) for name in names]
    count = Counter(name.lower() for name in plain)
    return tuple(
        short if count[short.lower()] == 1 else name.strip()
        for name, short in zip(names, plain, strict=True)
    )


def _kind(name: str, stated: str) -> str:
    """Kind of a channel; many files call every channel EEG, and then its name tells."""
    match = re.match(r"(ECG|EKG|EOG|EMG|RESP|EDA|GSR|PPG|TEMP)", name.strip(), re.I)
    if stated != "eeg" or match is None:
        return stated
    return {"ekg": "ecg"}.get(match[1].lower(), match[1].lower())


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Open a recording; its samples are read later, by channel.

    Parameters
    ----------
    path : str or path-like
        An XDF or MATLAB file, or one that MNE reads (EDF, BDF, GDF, FIF, BrainVision, ...).

    Returns
    -------
    Recording
        An object with `path`, `sfreq`, `ch_names` (``Fz`` for ``EEG Fz-Ref``), `n_samples`,
        `annotations` (each with `start` and `duration` in seconds, and `text`; a marker has the
        duration 0), and ``read(channels)``, which returns an array of shape (n_channels,
        n_samples), in microvolts where the file states its unit.
    """
    where = Path(path)
    read = {".mat": _open_matlab, ".xdf": _open_xdf}.get(where.suffix.lower(), _open_mne)
    with _in_words(where):
        recording = read(where)
        check_rate(recording.sfreq)
    return recording


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn whatever a library raises for a damaged file into one sentence."""
    try:
        yield
    except (ImportError, FileNotFoundError):
        raise
    except Exception as reason:
        why = str(reason).strip().rstrip(".") or type(reason).__name__
        kind = path.suffix[1:].upper()
        raise ValueError(f"This {kind} file cannot be read: {why}.") from reason


def _open_mne(path: Path) -> Recording:
    """Whatever MNE reads, in microvolts."""
    check_extra("mne", "eeg", f"A {path.suffix} file")
    import mne

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
    """Refuse an EDF or BDF file that is shorter than its header says; MNE would read the rest."""
    width = 2 if path.suffix.lower() == ".edf" else 3
    with open(path, "rb") as stream:
        fixed = stream.read(256)
        try:
            n_header, n_records, n_signals = (
                int(fixed[a:b]) for a, b in ((184, 192), (236, 244), (252, 256))
            )
            stream.seek(256 + 216 * n_signals)
            one = width * sum(int(stream.read(8)) for _ in range(n_signals))
        except ValueError:
            n_header, n_records, one = 0, 1, 0
    held = (path.stat().st_size - n_header) // one if one else 0
    # A recorder that was interrupted leaves -1 in the header.
    if held < max(n_records, 1):
        raise ValueError(f"it holds {max(held, 0)} of its {n_records} records. Copy it again")


def _open_matlab(path: Path) -> Recording:
    """One matrix of samples, and its rate and channels under their usual names."""
    content = load_mat(path, squeeze_me=False, chars_as_strings=True)
    tables = {
        name: value
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiu"
    }
    signals = {name: value for name, value in tables.items() if max(value.shape) > 100}
    if len(signals) != 1:
        raise ValueError(f"it must hold one matrix of samples, and has {sorted(signals)}")
    samples = next(iter(signals.values()))
    # A recording is longer than it has channels.
    data = np.asarray(samples if samples.shape[0] <= samples.shape[1] else samples.T, np.float64)
    rate = next((float(tables[name].flat[0]) for name in _RATES if name in tables), None)
    if rate is None:
        raise ValueError("it has no sampling rate. Add a variable sfreq")
    stated = next((content[name] for name in _NAMES if name in content), None)
    names = [_text(one) for one in np.ravel(stated)] if stated is not None else []
    return _of_array(path, data, rate, names)


def _text(cell: Any) -> str:
    """Text in nested lists or arrays."""
    return str(np.ravel(cell)[0]).strip() if np.size(cell) else ""


def _open_xdf(path: Path) -> Recording:
    """The one stream of EEG or ECG, with the streams of markers as annotations."""
    check_extra("pyxdf", "eeg", "An XDF file")
    import pyxdf

    with open(path, "rb") as stream:
        if stream.read(4) != b"XDF:":
            raise ValueError("it does not begin with XDF:")
    streams, _ = pyxdf.load_xdf(str(path))
    sampled = [
        s for s in streams if float(s["info"]["nominal_srate"][0]) > 0 and len(s["time_stamps"])
    ]
    signals = [
        s for s in sampled if s["info"]["type"][0].lower() in ("eeg", "ecg", "exg")
    ] or sampled
    if len(signals) != 1:
        found = ", ".join(stream["info"]["name"][0] for stream in signals) or "none"
        raise ValueError(f"it must hold one stream of EEG or ECG; found {found}")
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
    """Recording of samples (n_channels, n_samples)."""
    if len(names) != len(data):
        names = [f"ch{place + 1}" for place in range(len(data))]
    return Recording(
        path,
        sfreq,
        _plain_names(names),
        data.shape[1],
        annotations,
        lambda places: data[places],
        tuple(_kind(name, "ecg" if kind == "ecg" else "eeg") for name in names),
    )


def load_mat(path: Path, **options: Any) -> dict[str, Any]:
    """Load variables as :func:`scipy.io.loadmat` does; refuses a damaged file."""
    from scipy.io import loadmat
    from scipy.io.matlab import matfile_version

    if matfile_version(path)[0] == 1:
        _check_file(memoryview(path.read_bytes()))
    try:
        return loadmat(path, **options)
    except NotImplementedError:
        raise ValueError("it is of version 7.3. Save it with save(..., '-v7')") from None


def _check_file(content: memoryview) -> None:
    """Refuse a file with an element that SciPy would not check."""
    order = ">" if bytes(content[126:128]) == b"MI" else "<"
    place, room = 128, _LARGEST
    while place < len(content):
        kind, size = _tag(content, place, order)
        body = content[place + 8 : place + 8 + size]
        place += 8 + size
        if kind == _COMPRESSED:
            # SciPy reads as much of it as the matrix in it states.
            body = memoryview(zlib.decompressobj().decompress(body, room))
            room -= len(body)
            kind, size = _tag(body, 0, order)
            body = body[8 : 8 + size]
        if kind != _MATRIX or len(body) < size or room <= 0:
            raise ValueError(f"an element has the type {kind} or is cut short")
        _check_matrix(body, order)


def _check_matrix(body: memoryview, order: str) -> None:
    """Refuse a matrix with an element that SciPy would not check."""
    place = 0
    while place < len(body):
        kind, size = _tag(body, place, order)
        place += 8
        # A small element has its size, its type and up to four bytes in those eight.
        small = kind >> 16
        most = 4 if small else len(body) - place
        kind, size = (kind & 0xFFFF, small) if small else (kind, size)
        if (kind not in _PLAIN and (small or kind != _MATRIX)) or size > most:
            raise ValueError(f"an element has the type {kind} or is cut short")
        if kind == _MATRIX:
            _check_matrix(body[place : place + size], order)
            place += size
        elif not small:
            place += size + -size % 8


def _tag(content: memoryview, place: int, order: str) -> tuple[int, int]:
    """Type and size of the element at a place."""
    if len(content) < place + 8:
        raise ValueError("it ends in the middle of an element")
    kind, size = struct.unpack_from(f"{order}II", content, place)
    return kind, size
