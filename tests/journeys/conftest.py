"""Commands as a newcomer types them, and a browser for their pages."""

import re
import shutil

import pytest
from click.testing import CliRunner

from crossfade.cli import main

#: As root there is no sandbox; the rest keeps a browser from calling its maker.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Needs the package playwright.")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("There is no chromium. Install it, on Debian with `apt install chromium`.")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Open a page; nothing may go wrong in it, and nothing may be asked for from elsewhere."""
    contexts, troubles, requests = [], [], []

    def open_page(address, width=1280, **options):
        viewport = {"width": width, "height": 800}
        contexts.append(browser.new_context(viewport=viewport, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    own = r"(http|ws)://127\.0\.0\.1:|file:.*/report\.html$|blob:"
    assert [url for url in requests if not re.match(own, url)] == []
