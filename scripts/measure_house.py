"""Measure how large the project is: ``python scripts/measure_house.py [--no-limits]``.

Prints each number beside its limit, and exits with 1 if one is above, or has grown where it is
known to be above. With ``--no-limits`` it only prints. Lines of code are those that are neither
blank, comment nor docstring.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

import click
import numpy as np

from crossfade import HierarchicalBlendClassifier, Task, TaskPrior
from crossfade.cli import main as crossfade_command

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "crossfade"
#: Page scripts, style sheets and templates.
ASSETS = {".css", ".html", ".j2", ".js", ".mplstyle", ".rst"}
#: Numbers that are above their limits and may not grow: a rehearsal fits every kind of blend, and
#: thus passes through all of blend and risk; without one 11 files are entered.
KNOWN = {"TaskPrior.from_tasks: files": 24}
#: Tokens that a line may have without being a line of code.
LAYOUT = {tokenize.COMMENT, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}


# -- lines ----------------------------------------------------------------------------------------


def python_in(*folders: str) -> list[Path]:
    """Python files in folders of the project."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def n_lines(paths: Iterable[Path]) -> int:
    """Lines of files together."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


@cache
def tree_of(path: Path) -> ast.Module:
    """Syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(kind: type) -> Iterator[tuple[Path, ast.AST]]:
    """Every node of a kind in the package, with its file."""
    for path in python_in("src"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, kind):
                yield path, node


def n_code_lines(path: Path) -> int:
    """Lines of a file that are neither blank, comment nor docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.string.strip() and token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def assets() -> list[Path]:
    """Page scripts, style sheets and templates, wherever they are."""
    folders = [ROOT / name for name in ("src", "reproduction", "docs/_static", "docs/_templates")]
    found = (path for folder in folders for path in folder.rglob("*"))
    return [path for path in found if path.suffix in ASSETS]


def largest_class() -> int:
    """Lines of the largest class."""
    return max(node.end_lineno - node.lineno + 1 for _, node in nodes(ast.ClassDef))


def n_words(*paths: Path) -> int:
    """Words of pages, without code blocks and formulas."""
    total = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for pattern in (r"^(`{3,}).*?^\1\s*?$", r"\$\$.*?\$\$", r"\$[^$]*\$"):
            text = re.sub(pattern, "", text, flags=re.MULTILINE | re.DOTALL)
        total += len(text.split())
    return total


# -- names and rooms ------------------------------------------------------------------------------


def listed_names() -> dict[str, set[str]]:
    """What each module of the package lists in its `__all__`."""
    found = {}
    for path in python_in("src"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in tree_of(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[module] = set(ast.literal_eval(node.value))
    return found


def imports_between_rooms() -> Iterator[tuple[str, list[str]]]:
    """Module and names of each import from a room that is not the importing file's own."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    for path, node in nodes(ast.ImportFrom):
        own = path.relative_to(PACKAGE).parts[0]
        room = (node.module or "").removeprefix("crossfade.").partition(".")[0]
        if room in rooms - {own}:
            yield node.module, [alias.name for alias in node.names]


def n_handed_names() -> int:
    """Names that rooms take from the `__init__` of others, and that are not in its `__all__`."""
    listed, handed = listed_names(), set()
    for module, names in imports_between_rooms():
        _, room, *within = module.split(".")
        modules = {path.stem for path in (PACKAGE / room).glob("*.py")}
        if not within:
            handed |= {(room, name) for name in set(names) - listed.get(module, set()) - modules}
    return len(handed)


def n_private_imports() -> int:
    """Imports from private modules of other rooms, or of private names."""
    return sum(
        any("._" in f"{module}.{name}" for name in names)
        for module, names in imports_between_rooms()
    )


# -- commands -------------------------------------------------------------------------------------


def leaf_commands(command: click.Command = crossfade_command) -> list[click.Command]:
    """Commands that have none below them."""
    if not isinstance(command, click.Group):
        return [command]
    context = click.Context(command)
    below = (command.get_command(context, name) for name in command.list_commands(context))
    return [leaf for one in below if one is not None for leaf in leaf_commands(one)]


def n_options() -> int:
    """Options of all commands, without ``--help``."""
    parameters = (parameter for command in leaf_commands() for parameter in command.params)
    return sum(isinstance(parameter, click.Option) for parameter in parameters)


def n_extras() -> int:
    """Extras that a user can install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return len(project["optional-dependencies"])


# -- calls ----------------------------------------------------------------------------------------


def files_entered(function: Callable[..., object], *arguments: object) -> list[str]:
    """File of each call into the package, in order, after a call to warm up."""
    files: list[str] = []

    def note(frame: object, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(PACKAGE)):
            files.append(name)

    function(*arguments)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return files


def draw_tasks(n_tasks: int) -> list[Task]:
    """Tasks of two classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    means = 1.5 * np.array([1.0, 0.5, 0.0, 0.0])
    return [
        Task(rng.standard_normal((y.size, 4)) + np.outer(y, means), y, f"person {place}")
        for place in range(n_tasks)
    ]


# -- the table ------------------------------------------------------------------------------------


def rows() -> Iterator[tuple[str, int, int]]:
    """What is measured, its number, and the largest that is allowed."""
    source, pages = python_in("src"), sorted((ROOT / "docs").glob("*.md"))
    prose = [ROOT / "README.md", *(page for page in pages if page.name != "api.md")]
    yield "lines in src/", n_lines(source), 27_000
    yield "lines of code in src/", sum(map(n_code_lines, source)), 17_500
    yield "lines in reproduction/", n_lines(python_in("reproduction")), 3_000
    yield "lines in tests/", n_lines(python_in("tests")), 24_000
    # The limit is what v0.2.0 has.
    support = n_lines([*python_in("scripts", "benchmarks", "examples"), *assets()])
    yield "lines in scripts, benchmarks, examples, page scripts, styles, templates", support, 5_164
    yield "words in README and docs/", n_words(*prose), 25_000
    yield "words in docs/mathematics.md", n_words(ROOT / "docs" / "mathematics.md"), 8_000
    listed = listed_names()
    yield "names in crossfade.__all__", len(listed["crossfade"]), 22
    yield "names in all __all__", sum(map(len, listed.values())), 80
    yield "further names between rooms", n_handed_names(), 120
    yield "leaf commands", len(leaf_commands()), 18
    yield "options", n_options(), 110
    yield "extras", n_extras(), 9
    yield "lines of the largest module", max(n_lines([path]) for path in source), 500
    yield "lines of the largest class", largest_class(), 400
    sources, [person] = draw_tasks(8), draw_tasks(1)
    blend = HierarchicalBlendClassifier(TaskPrior.from_tasks(sources))
    files = files_entered(blend.fit, person.X, person.y)
    yield "HierarchicalBlendClassifier.fit: files", len(set(files)), 8
    yield "HierarchicalBlendClassifier.fit: changes of file", len(list(groupby(files))), 22
    files = files_entered(TaskPrior.from_tasks, sources)
    yield "TaskPrior.from_tasks: files", len(set(files)), 20
    yield "imports of another room's private modules", n_private_imports(), 0
    yield "raise statements", sum(1 for _ in nodes(ast.Raise)), 350


def main() -> int:
    """Print a table of Markdown; 1 if a number is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--no-limits", action="store_true", help="only print")
    only_print = parser.parse_args().no_limits
    measured = list(rows())
    print("| what | measured | limit | |\n|---|---:|---:|---|")
    for what, number, limit in measured:
        print(f"| {what} | {number:,} | {limit:,} | {'OVER' if number > limit else 'ok'} |")
    grown = any(number > KNOWN.get(what, limit) for what, number, limit in measured)
    return int(not only_print and grown)


if __name__ == "__main__":
    sys.exit(main())
