"""Every code block of README and documentation runs as pasted, and prints what the page shows."""

import ast
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import pages

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {str(page.relative_to(ROOT)): pages.blocks_of(page.read_text("utf-8")) for page in PAGES}
RUNNING = [
    name
    for name, blocks in BLOCKS.items()
    if any(block.runs and block.language in ("python", "console") for block in blocks)
]


def missing(blocks):
    """What a page needs and is not installed here."""
    for block in blocks:
        if block.runs and block.language == "python":
            for node in ast.walk(ast.parse(block.code)):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                yield from (name for name in names if find_spec(name.split(".")[0]) is None)
        elif block.runs and "$ gcc" in block.code and shutil.which("gcc") is None:
            yield "gcc"


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_states_its_language(name):
    assert {block.language for block in BLOCKS[name]} <= set(pages.LANGUAGES)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNING)
def test_every_block_runs_as_pasted_and_prints_what_the_page_shows(name):
    for need in missing(BLOCKS[name]):
        pytest.skip(f"{need} is not installed")
    words = [sys.executable, pages.__file__, ROOT / name]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
