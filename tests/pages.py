"""Run the code of a page as its reader would: ``python tests/pages.py docs/forecast.md``.

The blocks of a page run from top to bottom in an empty folder: those of ``python`` in one process,
each ``$ command`` of a ``console`` block in a shell. What the page shows must be what comes out: a
``text`` block is the output of the block above it, and the lines below a command are the output of
that command. ``...`` stands for anything, as in doctest. A command fails exactly if the page shows
a line that begins with ``Error:`` or ``Refused:``.

A ``c`` block that begins with a file name, such as ``/* main.c */``, is saved. ``pip``, ``make``
and ``git`` do nothing. ``<!-- not run: why -->`` directly above a block leaves it out.
"""

import doctest
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import NamedTuple

LANGUAGES = ("python", "console", "text", "c", "json")
FENCE = re.compile(
    r"(?P<mark><!-- not run: [^\n]+ -->\n)?"
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
#: Terminal, threads and figures are the same wherever a page runs.
PLACE = {"COLUMNS": "100", "TERM": "dumb", "PYTHONUTF8": "1", "MPLBACKEND": "Agg"}
PLACE |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Block(NamedTuple):
    """Code on a page; ``line`` is that of the fence, from 1 on."""

    language: str
    code: str
    line: int
    runs: bool


def blocks_of(text: str) -> list[Block]:
    """Blocks of a page, without directives of MyST."""
    return [
        Block(
            found["language"],
            dedent(found["code"]),
            text.count("\n", 0, found.start("indent")) + 1,
            found["mark"] is None,
        )
        for found in FENCE.finditer(text)
        if not found["language"].startswith("{")
    ]


def difference(shown: str, found: str) -> str | None:
    """What is wrong if an output is not what the page shows."""
    shown, found = (
        "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())
        for text in (shown, found)
    )
    if doctest.OutputChecker().check_output(shown, found, doctest.ELLIPSIS):
        return None
    return f"-- the page shows\n{shown}-- found\n{found}"


def tools(folder: Path) -> None:
    """Commands of a page: our own Python and ``crossfade``, and some that do nothing."""
    folder.mkdir(parents=True)
    own = f'exec "{sys.executable}"'
    scripts = dict.fromkeys(("pip", "make", "git"), "exit 0")
    scripts["python"] = f'[ "$1 $2" = "-m venv" ] || {own} "$@"'
    scripts["crossfade"] = f"{own} -c 'from crossfade.cli import main; main()' \"$@\""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    (folder / "activate").touch()
    os.environ.update(PLACE, PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")


def follow(blocks: list[Block], page: Path) -> Iterator[tuple[int, str | None]]:
    """Run all blocks; yield lines of the page, and what is wrong there."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    output: str | None = None
    for block in blocks:
        if block.language == "text" and output is not None:
            yield block.line, difference(block.code, output)
        if block.language in ("python", "console"):
            output = "" if block.runs else None
        if not block.runs:
            continue
        if block.language == "python":
            with redirect_stdout(StringIO()) as said:
                # Lines are counted as on the page, so that errors point to it.
                code = compile("\n" * block.line + block.code, page, "exec")
                exec(code, main.__dict__)
            output = said.getvalue()
        elif block.language == "console":
            for command, shown in COMMAND.findall(block.code):
                done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
                output = done.stdout
                refused = re.search("^(Error|Refused): ", shown, re.MULTILINE)
                said = output + done.stderr
                if bool(refused) != bool(done.returncode):
                    yield block.line, f"$ {command}exit code {done.returncode}\n{said}"
                elif shown and difference(shown, output):
                    # A page may show what a command says beside its output.
                    yield block.line, difference(shown, said)
        elif named := re.match(r"/\* ([\w-]+\.\w+) \*/\n", block.code):
            Path(named[1]).write_text(block.code)


def main() -> None:
    """Run a page in a folder of its own; fail if anything on it is wrong."""
    page = Path(sys.argv[1]).resolve()
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path[0] = ""
        tools(Path(folder, ".venv", "bin"))
        for line, wrong in follow(blocks, page):
            if wrong:
                n_wrong += 1
                print(f"{page.name}, block of line {line}:\n{wrong}\n", flush=True)
        os.chdir("/")
    sys.exit(bool(n_wrong))


if __name__ == "__main__":
    main()
