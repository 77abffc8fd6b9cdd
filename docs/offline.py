"""Sphinx extension: the build fails where a page would load a script, a style, a
picture or a font from the web. Links that readers follow may lead there."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LOADED = {
    "audio",
    "embed",
    "iframe",
    "img",
    "input",
    "object",
    "script",
    "source",
    "track",
    "video",
}
RELATIONS = {"icon", "modulepreload", "preconnect", "prefetch", "preload", "stylesheet"}
ELSEWHERE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class Loads(HTMLParser):
    """Collect what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        loaded = [given.get("src", ""), given.get("data", ""), given.get("poster", "")]
        loaded += given.get("srcset", "").split(",")
        if tag == "link" and RELATIONS & set(given.get("rel", "").lower().split()):
            loaded.append(given.get("href", ""))
        if tag in LOADED | {"link"}:
            self.found += [address for address in loaded if ELSEWHERE.match(address)]
        self.found += IN_STYLES.findall(given.get("style", ""))


def loads(text: str) -> list[str]:
    """Addresses on the web that a page, given as HTML, loads by itself."""
    page = Loads()
    page.feed(text)
    styles = re.findall(r"<style\b.*?</style>", text, flags=re.DOTALL | re.IGNORECASE)
    return page.found + [address for style in styles for address in IN_STYLES.findall(style)]


def check_pages(folder: Path) -> None:
    """Raise an error that names what the pages and styles of a folder load from the
    web."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        found += [f"{path}: {address}" for address in loads(path.read_text(encoding="utf-8"))]
    for path in sorted(folder.rglob("*.css")):
        found += [f"{path}: {a}" for a in IN_STYLES.findall(path.read_text(encoding="utf-8"))]
    if found:
        raise ValueError("not without a network: " + "; ".join(found))


def check_build(app: "Sphinx", exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        check_pages(Path(app.outdir))


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("build-finished", check_build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
