"""Sphinx configuration; ``make docs`` builds the pages in ``docs/_build/html``."""

from importlib.metadata import version as version_of

project = "Crossfade"
author = "the Crossfade developers"
copyright = "2026, the Crossfade developers"
release = version = version_of("crossfade")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Crossfade {version}"

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

# Types stand in the docstrings; signatures show names and defaults only.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False


def skip_inherited_from_sklearn(app, what, name, obj, skip, options):
    """Leave out what every scikit-learn estimator has, such as ``get_params``."""
    return True if (getattr(obj, "__module__", None) or "").startswith("sklearn") else None


def setup(app):
    """Register the above with Sphinx."""
    app.connect("autodoc-skip-member", skip_inherited_from_sklearn)
