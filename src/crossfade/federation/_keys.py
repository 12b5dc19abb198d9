"""Keys of a site: made once, used once.

A site has two pairs of keys, for the masks (X25519) and for its signature (Ed25519). Its
fingerprint is SHA-256 of both public keys and its name, cut to 160 bits. `spend` erases the secret
keys before anything that was made with them is written, so that no key can make two masked files:
their difference would be that of the sums, without any mask. A register in the user's own folder
keeps the fingerprints of used keys, so that a copy of a key is refused, too.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from crossfade._files import read_whole
from crossfade.federation._files import LARGEST, code_of, content_of, read_fields

SECRET, PUBLIC = "crossfade-secret-key", "crossfade-public-key"
_KEYS = ("x25519", "ed25519")
_LONGEST_NAME = 80
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_ONCE = (
    "A key serves one round: two files masked alike would give away their difference. Make a new "
    "key, and agree on a new round with its .pub file."
)


def primitives() -> ModuleType:
    """Cryptography, loaded when it is needed."""
    try:
        from crossfade.federation import _primitives
    except ModuleNotFoundError as reason:
        raise ImportError(
            'A secure sum needs cryptography: pip install "crossfade[federation]".'
        ) from reason
    return _primitives


@dataclass(frozen=True)
class Site:
    """A site as all others know it.

    Attributes
    ----------
    name : str
        What people call it.
    exchange : bytes
        Its public key for the masks (X25519).
    signing : bytes
        Its public key for signatures (Ed25519).
    """

    name: str
    exchange: bytes
    signing: bytes

    def __post_init__(self) -> None:
        name: object = self.name  # files may hold anything
        if not isinstance(name, str) or name != name.strip() or not (name and name.isprintable()):
            raise ValueError(
                f"The name of a site must be printable text without spaces around it; got {name!r}."
            )
        if len(name) > _LONGEST_NAME:
            raise ValueError(
                f"The name of a site has {_LONGEST_NAME} characters at most; got {len(name)}."
            )

    @cached_property
    def fingerprint(self) -> bytes:
        """Twenty bytes that stand for name and keys."""
        keys = self.exchange + self.signing  # 64 bytes, so that the name begins where they end
        return sha256(b"crossfade site 1\n" + keys + self.name.encode()).digest()[:20]

    @property
    def code(self) -> str:
        """The fingerprint, to be compared by phone."""
        return code_of(self.fingerprint)


def site_fields(site: Site) -> dict[str, str]:
    """What files hold of a site."""
    return {
        "name": site.name,
        "fingerprint": site.code,
        "x25519": site.exchange.hex(),
        "ed25519": site.signing.hex(),
    }


def site_of(fields: Any, where: object) -> Site:
    """Site from what a file holds; refuses what was altered."""
    try:
        name, keys = fields["name"], [bytes.fromhex(fields[key]) for key in _KEYS]
    except (KeyError, TypeError, ValueError) as reason:
        raise ValueError(f"{where} has no keys of a site. Ask for it again.") from reason
    site = Site(name, *keys)
    if site_fields(site) != fields or {len(key) for key in keys} != {32}:
        raise ValueError(
            f"{where} was altered: the fingerprint of {site.name!r} is not that of its keys. Ask "
            "for it again."
        )
    return site


@dataclass(frozen=True)
class Secret:
    """Secret keys of a site, and the file that holds them."""

    site: Site
    exchange: bytes
    signing: bytes
    path: Path
    content: bytes


def make_key(path: str | os.PathLike[str], name: str | None = None) -> Site:
    """Make the keys of a site for one round: ``path.key`` and ``path.pub``.

    Parameters
    ----------
    path : str or path-like
        Where to, without the suffix. Files that are there are not replaced. Only their owner can
        read ``path.key``, which never leaves the site.
    name : str or None, default=None
        What the others call the site; None is the last part of `path`.

    Returns
    -------
    Site
        What ``path.pub`` says, for all others.
    """
    stem = Path(path)
    if stem.suffix in (".key", ".pub"):
        stem = stem.with_suffix("")
    exchange, signing = primitives().new_secrets()
    named = stem.name if name is None else name
    site = Site(named, *primitives().publics_of(exchange, signing))
    secret = {"name": site.name, "x25519": exchange.hex(), "ed25519": signing.hex()}
    if not stem.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {stem.parent} to write the keys to.")
    files = [stem.with_name(stem.name + suffix) for suffix in (".key", ".pub")]
    for file in files:
        if file.exists():
            raise FileExistsError(
                f"{file} is there already, and is not replaced. Give another name with -o, or "
                "remove it if its round is over."
            )
    _write_new(files[0], content_of(SECRET, secret), 0o600)
    try:
        _write_new(files[1], content_of(PUBLIC, site_fields(site)), 0o644)
    except BaseException:
        files[0].unlink()
        raise
    return site


def read_site(path: str | os.PathLike[str]) -> Site:
    """Site of a ``.pub`` file."""
    return site_of(read_fields(path, PUBLIC), path)


def read_secret(path: str | os.PathLike[str]) -> Secret:
    """Secret keys of a ``.key`` file; refuses those that were used."""
    place = Path(os.path.realpath(path))
    content = read_whole(place, LARGEST)
    fields = read_fields(path, SECRET)
    if "used_for" in fields:
        raise ValueError(
            f"{path} was used already, for the agreement {fields['used_for']}; its secret is "
            f"erased. {_ONCE}"
        )
    if place.stat().st_nlink > 1:
        raise ValueError(
            f"{path} has a second name on this disk (a hard link), under which it could be used "
            "again. Remove the other name."
        )
    try:
        exchange, signing = (bytes.fromhex(fields[key]) for key in _KEYS)
        site = Site(fields["name"], *primitives().publics_of(exchange, signing))
    except (KeyError, TypeError, ValueError) as reason:
        raise ValueError(f"{path} holds no secret key, or was altered. Make a new one.") from reason
    if _entry_of(site).exists():
        raise _used_as_copy(path)
    return Secret(site, exchange, signing, place, content)


def spend(secret: Secret, agreement: bytes) -> None:
    """Erase the secret keys from their file, and say there for which agreement they were used.

    Done before the masked file is written. Whatever happens in between, a crash too, the key cannot
    be used again: that costs the round, and nobody's privacy. The name of the new file is the same
    for all commands, so that of two that run at once one finds it taken. The old content is
    overwritten where it is, since a program may have the file open, or a link point to it.
    """
    fields = {
        "name": secret.site.name,
        "fingerprint": secret.site.code,
        "used_for": code_of(agreement),
    }
    path = secret.path
    new = path.with_name(f".{path.name}.used")
    try:
        stream = open(os.open(new, _NEW, 0o600), "wb")  # noqa: SIM115 - closed before the renaming
    except FileExistsError as reason:
        raise ValueError(
            f"Another command is using {path}, or was killed while it did: {new.name} is there. "
            "If none is running, remove that file and repeat."
        ) from reason
    try:
        with stream:
            if path.read_bytes() != secret.content:
                raise ValueError(f"{path} was used by another command just now. Make a new key.")
            _register(secret)
            stream.write(content_of(SECRET, fields))
            stream.flush()
            os.fsync(stream.fileno())
        with open(path, "r+b") as old:
            old.write(bytes(len(secret.content)))
            old.flush()
            os.fsync(old.fileno())
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    # The new name must be on the disk before the masked file is.
    _sync(path.parent)


def _entry_of(site: Site) -> Path:
    """File in the register of used keys, of this user on this machine."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "crossfade" / "used-keys" / site.fingerprint.hex()


def _register(secret: Secret) -> None:
    """Write down that a key is used; refuses one that is there, as a copy would be."""
    entry = _entry_of(secret.site)
    try:
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(entry, b"", 0o600)
        _sync(entry.parent)
    except FileExistsError as reason:
        raise _used_as_copy(secret.path) from reason
    except OSError as reason:
        raise ValueError(
            f"The register of used keys cannot be written to: {reason}. Set XDG_STATE_HOME "
            "(LOCALAPPDATA on Windows) to a folder of your own; the key was not used."
        ) from reason


def _used_as_copy(path: str | os.PathLike[str]) -> ValueError:
    return ValueError(f"A copy of {path} was used already on this account. {_ONCE}")


def _sync(folder: Path) -> None:
    """Have the names in a folder written to the disk."""
    if sys.platform != "win32":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that was not there before, for those whom the mode admits."""
    with open(os.open(path, _NEW, mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
