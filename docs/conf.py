"""Sphinx configuration; ``make docs`` builds the pages in ``docs/_build/html``."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Crossfade"
author = "the Crossfade developers"
copyright = "2026, the Crossfade developers"
release = version = version_of("crossfade")

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "tutorials"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"Crossfade {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
# docs/_ext/mathml.py shows mathematics; there is no script to prepare it for.
myst_update_mathjax = False

# Types stand in the docstrings; signatures show names and defaults only.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# crossfade.moabb subclasses what this has; the pages are built without it.
autodoc_mock_imports = ["moabb"]

# The tutorials: scripts that run when the pages are built, with the pictures they draw.
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": r"/my_",
    "within_subsection_order": "gallery.journey",
    "image_scrapers": ("gallery.figures",),
    "image_srcset": ["2x"],
    "capture_repr": ("_repr_html_",),
    "doc_module": ("crossfade",),
    "download_all_examples": False,
    # How long a script takes is a matter of the machine.
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}


def skip_what_all_have(app, what, name, obj, skip, options):
    """Leave out what every scikit-learn estimator, named tuple or exception has."""
    home = getattr(obj, "__module__", None) or ""
    field = (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    builtin = getattr(obj, "__objclass__", None) in (tuple, BaseException)
    return True if home.startswith("sklearn") or field or builtin else None


def setup(app):
    """Register the above with Sphinx."""
    app.connect("autodoc-skip-member", skip_what_all_have)
