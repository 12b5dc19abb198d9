"""Version, requirements and settings say the same wherever a release states them."""

import re
import tomllib
from pathlib import Path

import crossfade

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


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


def test_no_setting_names_a_registry():
    # Whoever installs chooses where from.
    files = [ROOT / name for name in ("pyproject.toml", "constraints.txt", "Makefile", ".ci/run")]
    files.append(ROOT / "packaging" / "conda" / "recipe.yaml")
    assert [path.name for path in files if re.search(r"pypi|pythonhosted", path.read_text())] == []
