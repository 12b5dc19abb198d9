"""The check of the built documentation finds what it is there to find."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_pages.py"


@pytest.fixture(scope="module")
def check_pages():
    spec = importlib.util.spec_from_file_location("check_pages", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WELL = """
<link rel="stylesheet" href="pages.css?v=1"><link rel="canonical" href="https://example.org/">
<script src="data:text/javascript,0"></script>
<h1 id="one">One</h1> <a href="#one">up</a> <a href="other.html#two">on</a>
<a href="https://example.org/">out</a> <img src="a.png" alt="A curve">
<span class="math"><math><mi>x</mi><mspace width="1em" /></math></span> <code>\\(not math\\)</code>
"""


@pytest.fixture
def faults(check_pages, tmp_path):
    """What is wrong with a page beside another, a style and a picture."""

    def found(page, style=""):
        (tmp_path / "index.html").write_text(page)
        (tmp_path / "other.html").write_text('<h2 id="two">Two</h2>')
        (tmp_path / "pages.css").write_text(style)
        (tmp_path / "a.png").touch()
        return list(check_pages.faults(tmp_path))

    return found


def test_a_page_that_needs_nothing_but_itself_passes(faults):
    assert faults(WELL, "p { background: url(a.png) }") == []


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ('<script src="https://cdn.example.org/x.js"></script>', "loads https://cdn.example.org"),
        ('<link rel="preload" href="https://example.org/x.woff2">', "from a network"),
        ('<img alt="a" src="a.png" srcset="a.png, https://e.org/b.png 2x">', "loads https://e.org"),
        ("<style>@import 'https://example.org/x.css'</style>", "a style that loads"),
        ('<img src="a.png">', "without a text"),
        ('<a href="nowhere.html">x</a>', "nowhere.html, which is not there"),
        ('<a href="other.html#three">x</a>', "a place that is not on that page"),
        ('<div class="math">\\[x\\]</div>', "a script would have to draw"),
        (
            '<div class="sphx-glr-script-out"><pre>$ crossfade\nError: No table.\n</pre></div>',
            "failed: Error: No table.",
        ),
    ],
)
def test_each_fault_is_found(faults, element, message):
    [found] = faults(WELL + element)
    assert message in found


def test_an_empty_folder_is_a_fault(check_pages, tmp_path):
    [found] = check_pages.faults(tmp_path)
    assert "holds no page" in found
