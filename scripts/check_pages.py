"""Check the built documentation: pages must work offline, and links must lead somewhere.

``make docs`` runs it after Sphinx: ``python scripts/check_pages.py docs/_build/html``. It refuses

- scripts, styles, fonts and pictures from a network;
- formulas that only a script could draw;
- links to missing pages, files or places on a page;
- pictures without a description;
- tutorials with a failed command.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

#: Where an element loads something from; other addresses are for readers to follow.
LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
}
#: Links of a head by which a page loads something.
LOADING = {"stylesheet", "preload", "prefetch", "preconnect", "icon", "shortcut", "modulepreload"}
NETWORK = re.compile(r"(?:https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)
#: How a script would find formulas.
TEX = re.compile(r"\\\(|\\\[|mathjax|katex", re.IGNORECASE)

#: What a tutorial has printed.
PRINTED = re.compile('class="sphx-glr-script-out.*?</pre>', re.DOTALL)
FAILURE = re.compile(r".*(?:Error|Refused|Traceback)\b.*")


class Page(HTMLParser):
    """What a page loads, its links, and the places on it that links can name."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.places, self.mute = [], [], {"", "top"}, []
        self.inside = []
        self.formulas = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note addresses and identifiers."""
        values = dict(attrs)
        self.places |= {values[key] for key in ("id", "name") if values.get(key)}
        for key in LOADED.get(tag, ()):
            value = values.get(key) or ""
            # A set of pictures: addresses, each with its resolution.
            parts = map(str.split, value.split(",") if key == "srcset" else [value])
            self.loads += [part[0] for part in parts if part]
        if tag == "link" and LOADING & set((values.get("rel") or "").split()):
            self.loads.append(values.get("href") or "")
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        source = values.get("src") or ""
        # Thumbnails of the gallery stand beside their title.
        if tag == "img" and not values.get("alt") and "_thumb." not in source:
            self.mute.append(source)
        if "math" in (values.get("class") or "").split():
            self.inside = [tag]
        elif self.inside and tag not in ("img", "br", "wbr", "mspace"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        """Leave a formula."""
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data):
        """Note the text of formulas."""
        if self.inside:
            self.formulas += data


def faults(folder):
    """What is wrong with the pages in a folder, as sentences."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    if not pages:
        yield f"{folder} holds no page: build them first, with make docs"
    for path, page in sorted(pages.items()):
        name = path.relative_to(folder.resolve())
        for address in page.loads:
            if NETWORK.match(address):
                yield f"{name} loads {address} from a network"
            elif not address.startswith("data:") and not target(path, address)[0].exists():
                yield f"{name} loads {address}, which is not there"
        for address in IN_STYLES.findall(path.read_text("utf-8")):
            yield f"{name} has a style that loads {address} from a network"
        if TEX.search(page.formulas):
            yield f"{name} has mathematics that a script would have to draw"
        for address in page.mute:
            yield f"{name} shows {address} without a text (alt) for those who do not see it"
        for printed in PRINTED.findall(path.read_text("utf-8")):
            for line in FAILURE.findall(printed)[:1]:
                yield f"{name} shows that it failed: {line}"
        for address in page.links:
            if re.match(r"[a-z]+:", address) or NETWORK.match(address):
                continue
            file, place = target(path, address)
            if not file.exists():
                yield f"{name} leads to {address}, which is not there"
            elif file in pages and place not in pages[file].places:
                yield f"{name} leads to {address}, a place that is not on that page"
    for path in sorted(folder.rglob("*.css")):
        for address in IN_STYLES.findall(path.read_text("utf-8")):
            yield f"{path.relative_to(folder)} loads {address} from a network"


def target(path, address):
    """File and place that an address on a page leads to."""
    file, place = urldefrag(address)
    file = file.partition("?")[0]
    return (path.parent / unquote(file) if file else path).resolve(), unquote(place)


def main():
    """Print what is wrong, and fail if anything is."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")
    wrong = list(dict.fromkeys(faults(folder)))
    for sentence in wrong:
        print(sentence)
    count = sum(1 for _ in folder.rglob("*.html"))
    print(f"{count} pages, {len(wrong)} faults")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
