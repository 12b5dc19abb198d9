"""Every code block of README and documentation runs as pasted, and prints what the page shows."""

import ast
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import pages

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts),
]
BLOCKS = {str(page.relative_to(ROOT)): pages.blocks_of(page.read_text("utf-8")) for page in PAGES}
RUNNING = [name for name, (blocks, _) in BLOCKS.items() if any(map(pages.runs, blocks))]


def follow(page, recordings=None):
    """Run a page in a process of its own: skada, for one, changes a setting of scikit-learn."""
    words = [sys.executable, pages.__file__, page]
    words += ["--recordings", recordings] if recordings else []
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


def missing(blocks):
    """What a page needs and is not installed here."""
    for block in blocks:
        if pages.runs(block) and block.language == "python":
            for node in ast.walk(ast.parse(block.code)):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                yield from (name for name in names if find_spec(name.split(".")[0]) is None)
        elif pages.runs(block) and "$ gcc" in block.code and shutil.which("gcc") is None:
            yield "gcc"


@pytest.mark.parametrize("name", BLOCKS)
def test_no_block_escapes(name):
    _, wrong = BLOCKS[name]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNING)
def test_every_block_runs_as_pasted_and_prints_what_the_page_shows(name):
    blocks, _ = BLOCKS[name]
    for need in missing(blocks):
        pytest.skip(f"{need} is not installed")
    beside = os.environ.get("CROSSFADE_DATA", ROOT.parent / "shared" / "data")
    code, said = follow(ROOT / name, beside)
    assert code == 0, said


# -- the rules themselves -------------------------------------------------------------------


WELL = {
    "no block": "Text.\n",
    "one process": "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n2\n```\n",
    "one folder": "```python\nopen('a', 'w').write('b')\n```\n\n```console\n$ cat a\nb\n```\n",
    "one shell a block": "```console\n$ mkdir a\n$ cd a\n$ touch b\n```\n\n```sh\nls a/b\n```\n",
    "anything": "```python\nprint('took', id(0), 's')\n```\n\n```text\ntook ... s\n```\n",
    "an error": "```python\n1 / 0\n```\n\n```text\nTraceback (most recent call last):\n  ...\n"
    "ZeroDivisionError: division by zero\n```\n",
    "a refusal": "```console\n$ echo Error: no; false\nError: no\n```\n",
    "not run": "<!-- not run: needs an amplifier -->\n```python\n1 / 0\n```\n\n```text\n7\n```\n",
    "no recordings": "<!-- needs nobody: recordings -->\n```python\n1 / 0\n```\n",
    "a file": "```c\n/* main.c */\n```\n\n```console\n$ cat main.c\n/* main.c */\n```\n",
    "nothing installed": "```console\n$ pip install no && python -m pip install no\n```\n",
    "long commands": "```console\n$ echo a \\\n    b\na b\n$ echo c\nc\n```\n",
}
ILL = {
    "raises": ("```python\nx = 1\n1 / 0\n```\n", 'page.md", line 3'),
    "prints something else": ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "-- found\n1"),
    "prints nothing": ("```python\nx = 1\n```\n\n```text\n2\n```\n", "-- found\n"),
    "does not raise": (
        "```python\n1\n```\n\n```text\nTraceback (most recent call last):\nKeyError: 1\n```\n",
        "there was none",
    ),
    "raises something else": (
        "```python\n1 / 0\n```\n\n```text\nTraceback (most recent call last):\nKeyError: 1\n```\n",
        "-- found\nZeroDivisionError",
    ),
    "fails": ("```console\n$ true\n$ false\n```\n", "$ false\nexit code 1"),
    "does not fail": ("```console\n$ echo Error: no\nError: no\n```\n", "exit code 0"),
    "says something else": ("```console\n$ echo a\nb\n```\n", "-- the page shows\nb\n-- found\na"),
    "ends the shell": ("```console\n$ exit 0\n$ true\n```\n", "the shell ended"),
    "has no language": ("```\n1 / 0\n```\n", "no language"),
    "is of a language that nobody runs": ("```ruby\n1\n```\n", "a block of ruby"),
    "is indented": ("Text.\n\n    1 / 0\n", "an indented block"),
    "is a directive": ("```{code-block} python\n1 / 0\n```\n", "hides code"),
    "has no reason": ("<!-- not run -->\n```python\n1 / 0\n```\n", "needs a reason"),
    "is far from its mark": ("<!-- not run: no -->\n\nText.\n", "not directly above a block"),
    "is the output of nothing": ("```text\n1\n```\n", "output of which block?"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WELL)
def test_a_page_that_is_well(case, tmp_path):
    (tmp_path / "page.md").write_text(WELL[case])
    assert follow(tmp_path / "page.md") == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.slow
@pytest.mark.parametrize("case", ILL)
def test_a_page_whose_block(case, tmp_path):
    text, message = ILL[case]
    (tmp_path / "page.md").write_text(text)
    code, said = follow(tmp_path / "page.md")
    assert code == 1
    assert message in said
