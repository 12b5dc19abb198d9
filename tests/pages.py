"""Run the code of a page as its reader would: ``python tests/pages.py docs/forecast.md``.

The blocks of a page run from top to bottom in an empty folder: those of ``python`` in one process,
those of ``console`` (or ``sh``) in a shell of their own for each block, where ``crossfade`` and
``python`` are those that run this. What a page shows must be what comes out:

- A ``text`` block is the output of the last block above it that ran. Lines of a ``console`` block
  below a ``$ command`` are the output of that command. ``...`` stands for anything, as in doctest:
  for times, paths, digests, and what is cut.
- A block may not raise and a command may not fail, unless the page shows that it does: by an output
  that begins with ``Traceback``, of which the last line is compared, or by a line that begins
  with ``Error:`` or ``Refused:``.
- A block that begins with the name of a file as a comment, such as ``/* main.c */``, is saved.
- ``pip``, ``make``, ``git``, ``conda`` and ``apt`` do nothing: a page does not change the machine.
- ``<!-- not run: why -->`` directly above a block leaves it out, and the output that follows.
  ``<!-- needs eegmat: why -->`` runs it where that folder of recordings is.
- Every block has a language; those of LANGUAGES are allowed.
"""

import argparse
import doctest
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

from markdown_it import MarkdownIt

SHELL = ("console", "sh", "bash")
#: What is only shown: output, files and excerpts of files.
SHOWN = ("text", "c", "json", "bibtex", "toml", "yaml")
LANGUAGES = ("python", *SHELL, *SHOWN)
#: MyST's directives in which code would not be found.
HIDING = ("{code", "{literalinclude", "{parsed-literal", "{doctest", "{testcode")
MARK = re.compile(r"<!-- (not run|needs (?P<folder>\w+)): \S.*-->\s*", re.DOTALL)
NAMED = re.compile(r"(?:/\*|//|#) ([\w-]+\.\w+)(?: \*/)?\n")
#: Terminal, threads and figures are the same wherever a page runs.
PLACE = {"COLUMNS": "100", "TERM": "dumb", "PYTHONUTF8": "1", "MPLBACKEND": "Agg"}
PLACE |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
#: Says in the output of a shell that a command has ended, and how.
END = "<crossfade: end of command %d>"


@dataclass(frozen=True)
class Block:
    """Code on a page; ``line`` is that of the fence, from 1 on."""

    language: str
    code: str
    line: int
    mark: str = ""
    folder: str | None = None

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Commands of a shell, and what the page shows below each."""
        if "$ " not in {line[:2] for line in self.code.splitlines()}:
            return [(self.code, "")]
        parts = re.split(r"^\$ ", self.code, flags=re.MULTILINE)[1:]
        return [re.match(r"((?:.*\\\n)*.*\n)((?s:.*))", part).groups() for part in parts]


def runs(block: Block) -> bool:
    """Whether a block is to be run, at least where there are recordings."""
    return block.language not in SHOWN and block.mark != "not run"


def blocks_of(text: str) -> tuple[list[Block], list[str]]:
    """Blocks of a page, and what is against the rules in how they are written."""
    blocks, wrong, mark = [], [], None
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        line = token.map[0] + 1 if token.map else 0
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        if token.type == "html_block" and re.match(r"<!--\s*(not run|needs)\b", token.content):
            mark = MARK.fullmatch(token.content)
            if mark is None:
                wrong.append(f"line {line}: the mark needs a reason: <!-- not run: why -->")
            continue
        if token.type == "code_block":
            wrong.append(f"line {line}: an indented block: fence it, and say its language")
        if token.type != "fence":
            if mark and token.type != "list_item_close":
                wrong.append(f"line {line}: the mark above it is not directly above a block")
            mark = None
            continue
        if language.startswith("{"):
            if language.startswith(HIDING) or "code-block::" in token.content:
                wrong.append(f"line {line}: {language} hides code: take a plain fence")
        elif language not in LANGUAGES:
            wrong.append(f"line {line}: a block of {language or 'no language'}: one of {LANGUAGES}")
        else:
            found = mark.groupdict() if mark else {}
            blocks.append(Block(language, token.content, line, mark[1] if mark else "", **found))
        mark = None
    ran = None
    for block in blocks:
        if block.language == "text" and not block.mark:
            if ran is None:
                wrong.append(f"line {block.line}: output of which block? If of none, mark it.")
            ran = None
        elif block.language not in SHOWN:
            ran = block
    return blocks, wrong


def same(shown: str, found: str) -> bool:
    """Whether an output is what the page shows; ``...`` stands for anything."""
    shown, found = (
        "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())
        for text in (shown, found)
    )
    return doctest.OutputChecker().check_output(shown, found, doctest.ELLIPSIS)


def difference(shown: str, found: str) -> str:
    """Say how an output differs from what the page shows."""
    return f"-- the page shows\n{shown.rstrip()}\n-- found\n{found.rstrip()}"


class Reader:
    """Somebody who follows a page in a folder, block by block."""

    def __init__(self, page: Path, folder: Path, recordings: Path | None) -> None:
        self.page, self.folder, self.recordings = page, folder, recordings
        self.main = ModuleType("__main__")
        self.output = self.errors = ""
        tools = folder / ".venv" / "bin"
        tools.mkdir(parents=True)
        own = f'exec "{sys.executable}"'
        start = "from crossfade.cli import main; main(prog_name='crossfade')"
        scripts = dict.fromkeys(("pip", "make", "git", "conda", "apt"), "exit 0")
        scripts["python"] = f'case "$1 $2" in "-m pip"|"-m venv") exit 0;; esac\n{own} "$@"'
        scripts["python3"] = scripts["python"]
        scripts["crossfade"] = f'{own} -c "{start}" "$@"'
        for name, script in scripts.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        (tools / "activate").touch()
        os.environ.update(PLACE, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")

    def python(self, block: Block, error: str) -> str | None:
        """Run Python; say what is wrong."""
        # Lines are counted as on the page, so that errors point to it.
        code, raised = "\n" * block.line + block.code, ""
        with Caught() as caught:
            try:
                exec(compile(code, str(self.page), "exec"), self.main.__dict__)
            except BaseException as stop:
                raised = traceback.format_exception_only(stop)[-1].strip()
                traceback.print_exc()
        self.output = caught.output
        if raised and not error:
            return caught.errors
        if error and not raised:
            return f"the page shows an error, and there was none:\n{error}"
        if error and not same(error.rstrip().splitlines()[-1], raised):
            return difference(error, raised)
        return None

    def shell(self, block: Block) -> tuple[str | None, list[str]]:
        """Run commands; say what stopped, and where the output is another."""
        script, wrong, self.output = [], [], ""
        for command, _ in block.commands:
            script += [command, f"printf '\\n{END}\\n' $? | tee /dev/stderr"]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        end = "\n" + END.replace("%d", r"(\d+)") + "\n"
        parts, errors = re.split(end, done.stdout), re.split(end, done.stderr)[::2]
        for place, (command, shown) in enumerate(block.commands):
            if 2 * place + 1 >= len(parts):
                return f"$ {command}the shell ended:\n{parts[-1]}{errors[-1]}", wrong
            found, code, error = parts[2 * place], int(parts[2 * place + 1]), errors[place]
            self.output += found
            fails = re.search("^(Error|Refused): ", shown, re.MULTILINE) is not None
            if fails != (code != 0):
                return f"$ {command}exit code {code}\n{found}{error}", wrong
            # A page may show what a command says beside its output, such as a note, or not.
            if shown.strip() and not same(shown, found) and not same(shown, found + error):
                wrong.append(f"$ {command}{difference(shown, found + error)}")
        return None, wrong

    def follow(self, blocks: list[Block]) -> Iterator[tuple[Block, str]]:
        """Run all blocks, as long as none fails; yield what is wrong."""
        sys.modules["__main__"] = self.main
        ran = False
        for block, below in zip_longest(blocks, blocks[1:]):
            out = block.mark == "not run"
            if block.folder is not None:
                given = self.recordings and self.recordings / block.folder
                link = self.folder / block.folder
                out = given is None or not given.is_dir()
                if not out and not link.exists():
                    link.symlink_to(given)
            if block.language not in SHOWN:
                ran = not out
            if out or (block.language == "text" and not ran):
                continue
            shown = below.code if below and below.language == "text" and not below.mark else ""
            error = shown if shown.startswith("Traceback (most recent call last):") else ""
            stop, wrong = None, []
            if block.language == "python":
                stop = self.python(block, error)
            elif block.language in SHELL:
                stop, wrong = self.shell(block)
            elif name := NAMED.match(block.code):
                (self.folder / name[1]).write_text(block.code)
            if shown and not error and not same(shown, self.output):
                wrong.append(difference(shown, self.output))
            yield from ((block, one) for one in wrong)
            if stop is not None:
                yield block, stop
                return


class Caught:
    """What is written to standard output and error meanwhile, by whichever process."""

    def __enter__(self) -> "Caught":
        # What was said before is no output of the block.
        sys.stdout.flush()
        self.files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.kept = os.dup(1), os.dup(2)
        for number, file in enumerate(self.files, 1):
            os.dup2(file.fileno(), number)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        texts = []
        for number, (file, kept) in enumerate(zip(self.files, self.kept, strict=True), 1):
            os.dup2(kept, number)
            os.close(kept)
            file.seek(0)
            texts.append(file.read().decode())
            file.close()
        self.output, self.errors = texts


def main() -> None:
    """Run a page in a folder that is made for it; fail if anything on it is not so."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--recordings", type=Path, help="folder with eegmat, for what needs it")
    arguments = parser.parse_args()
    page = arguments.page.resolve()
    recordings = arguments.recordings and arguments.recordings.resolve()
    blocks, wrong = blocks_of(page.read_text(encoding="utf-8"))
    for one in wrong:
        print(f"{page.name}, {one}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path[0] = ""
        reader = Reader(page, Path(folder), recordings)
        for block, one in reader.follow(blocks):
            wrong.append(one)
            print(f"{page.name}, {block.language} block of line {block.line}:\n{one}\n", flush=True)
        os.chdir("/")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
