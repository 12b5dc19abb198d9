"""Formulas of the documentation as MathML: what is converted, and what is refused."""

import io
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def mathml(monkeypatch):
    pytest.importorskip("latex2mathml")
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    yield pytest.importorskip("mathml")
    del sys.modules["mathml"]


@pytest.mark.parametrize(
    ("tex", "sign", "tag"),
    [
        (r"\arg\min_{a} R", "min", "munder"),
        (r"\left(\sum_j x_j\right)", "∑", "munder"),
        (r"\prod_{i=1}^{M} x", "∏", "munderover"),
    ],
)
def test_limits_stand_below(mathml, tex, sign, tag):
    [limits] = [e for e in mathml.to_tree(tex, "block").iter(tag) if e[0].text == sign]
    assert limits[0].get("movablelimits") == "true"


@pytest.mark.parametrize(
    ("tex", "word"),
    [(r"\foo x", "foo"), (r"\frac{1}", "missing"), ("a & b", "&"), (r"\left( a", "Left")],
)
def test_what_cannot_be_shown_as_meant_is_refused(mathml, tex, word):
    with pytest.raises(mathml.FormulaError, match=word):
        mathml.to_tree(tex)


# -- on a page ------------------------------------------------------------------------------

PAGE = """
Title
=====

Of :math:`x < 1`, by :eq:`one`:

.. math:: a = b \\tag{7}

.. math::
   :label: one

   a = \\frac{b}{c}
"""


@pytest.fixture
def build(mathml, tmp_path):
    """Builds one page; returns its text, and what Sphinx warned of."""

    from sphinx.application import Sphinx

    def built(page):
        (tmp_path / "index.rst").write_text(page)
        said = io.StringIO()
        settings = {"extensions": ["mathml"], "html_math_renderer": "mathml"}
        app = Sphinx(
            tmp_path, None, tmp_path / "out", tmp_path / "trees", "html", settings,
            status=None, warning=said,
        )  # fmt: skip
        app.build()
        return (tmp_path / "out" / "index.html").read_text(), said.getvalue()

    return built


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_a_page_shows_formulas_with_tags_and_numbers(build):
    text, said = build(PAGE)
    assert said == ""
    assert text.count("<math") == 3
    assert 'id="equation-7">(7)' in text
    assert '<span class="eqno">(1)' in text
    assert 'href="#equation-one"' in text
    assert "mathjax" not in text.lower()
    assert "\\tag" not in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_a_formula_that_fails_is_a_warning_that_names_its_place(build):
    text, said = build("Title\n=====\n\nOf :math:`\\foo`.\n")
    assert "index.rst:4: WARNING: This formula has no MathML: \\foo is not known" in said
    assert "<code>\\foo</code>" in text
