"""Version, requirements and settings say the same wherever a release states them."""

import re
import tomllib
from pathlib import Path

import crossfade

ROOT = Path(__file__).parents[1]
INSTALL = (ROOT / "docs" / "install.md").read_text()
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]
EXTRAS = PROJECT["optional-dependencies"]


def test_one_version_everywhere():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r'^  version: "(.*)"$', recipe, re.MULTILINE) == [crossfade.__version__]
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [crossfade.__version__]
    sections = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    assert crossfade.__version__ in sections[:2]
    assert set(sections[: sections.index(crossfade.__version__)]) <= {"Unreleased"}


def test_the_recipe_requires_what_the_package_requires():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("\ntests:")[0]
    stated = {one.replace(" ", "") for one in re.findall(r"^    - (.*)$", run, re.MULTILINE)}
    [python] = {one for one in stated if one.startswith("python>=")}
    assert stated - {python} == set(PROJECT["dependencies"])
    least = re.search(r'python_min: "(.*)"', recipe)
    assert least is not None
    assert PROJECT["requires-python"] == f">={least[1]}"


def test_all_is_every_extra():
    [everything] = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything)[1:]) == set(EXTRAS) - {"all"}


def test_make_installs_extras_and_groups_that_exist():
    calls = re.findall(r"^\$\(VENV\)/\.ready-(\w+): WITH = (.*)$", MAKEFILE, re.MULTILINE)
    needed = set(re.findall(r"\$\(VENV\)/\.ready-(\w+) ##", MAKEFILE))
    assert needed <= {target for target, _ in calls}
    for target, words in calls:
        extras = re.findall(r"\.\[(.*)\]", words)
        assert {name for one in extras for name in one.split(",")} <= set(EXTRAS), target
        assert set(re.findall(r"--group (\w+)", words)) <= set(GROUPS), target


def table_below(heading):
    """Cells of the first table below a heading of the page on installation, without its head."""
    part = INSTALL.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", part, re.MULTILINE)
    return [line.split(" | ") for line in lines[1:]]


def test_the_table_of_extras_has_all_of_them():
    assert {name.strip("`") for name, *_ in table_below("Extras")[1:]} == set(EXTRAS)


def test_pages_name_extras_that_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/my_*.py")]
    pages += (ROOT / "src").rglob("*.py")
    named = set()
    for page in pages:
        text = page.read_text()
        # It is in no package index yet, so that this would fail.
        assert "pip install crossfade" not in text.replace('"', ""), page.name
        lists = re.findall(r'(?:crossfade|"\.)\[([a-z,]+)\]', text)
        lists += re.findall(r"\bextras?(?:\]\(install\.md#extras\))? `([a-z]+)`", text)
        lists += re.findall(r"\bextras\S* `[a-z]+` and `([a-z]+)`", text)
        named |= {name for one in lists for name in one.split(",")}
    assert {"plots", "tables", "dask"} <= named <= set(EXTRAS)


def test_what_is_claimed_of_python_was_tested():
    tested = {python for python, _, result in table_below("Tested with") if "not run" not in result}
    begin = "Programming Language :: Python :: "
    claimed = {one.removeprefix(begin) for one in PROJECT["classifiers"] if one.startswith(begin)}
    assert tested == claimed - {"3"}
