"""Draw docs/images/live.png: the page of ``crossfade live --demo`` in the middle of its second cue.

``python scripts/make_live_picture.py [FILE]``; needs playwright and chromium.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "live.png"
#: Slow enough to take a picture between two windows.
OPTIONS = ("--demo", "--speed", "2", "--want", "0.8", "--no-open")


def main(path: Path) -> None:
    """Calibrate the recorded person until more windows are just worth it, and take a picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        command = [sys.executable, "-c", "from crossfade.cli import main; main()", "live", *OPTIONS]
        process = subprocess.Popen(
            [*command, "--folder", "results/live"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            # Keys are ignored before the page is connected.
            page.locator("#start:enabled").wait_for()
            page.keyboard.press("Space")
            counted = page.locator("#counts").filter(has_text=re.compile("rest 5.*arithmetic 2"))
            counted.wait_for(timeout=60_000)
            page.wait_for_timeout(500)
            page.screenshot(path=path)
            browser.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=10.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
