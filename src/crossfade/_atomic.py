"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

#: What a name may belong to that no file takes the place of.
_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Where to; a file that is there is replaced, a folder, device, pipe or socket is not.
    content : bytes
        What to write.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {target.parent}, so that {target.name} cannot be written there."
        )
    if target.exists() and not target.is_file():
        kind = _OTHER_KINDS.get(stat.S_IFMT(target.stat().st_mode), "no regular file")
        raise FileExistsError(
            f"{target} is {kind}, and is not replaced by a file. Give another name to write to."
        )
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
