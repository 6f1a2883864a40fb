"""The site of ``docs/``: how it is built, and what is wrong with it.

Run as a script (``make docs``), it builds ``site/`` and fails where something is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).parents[2]
ADDRESSES = {"href", "src", "srcset", "poster", "data", "action", "formaction"}
STYLED = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')]+)""")


def build(folder: Path) -> Path:
    """Build the site below ``folder``, strictly, and without a network where it may be taken."""
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / "sagents_nb").symlink_to(ROOT / "sagents_nb")
    alone = ("unshare", "--map-root-user", "--net")
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        alone = ()
    zensical = Path(sys.executable).parent / "zensical"
    command = [*alone, str(zensical), "build", "--clean", "--strict"]
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return folder / "site"


class Page(HTMLParser):
    """What can be jumped to in a page, where its links lead, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ADDRESSES and value:
                (self.links if tag == "a" else self.loaded).append(value)


def problems(site: Path) -> Iterator[str]:
    """What a built site loads from elsewhere, and its links that lead nowhere."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for address in page.loaded:
            if is_elsewhere(address) and not address.startswith("data:"):
                yield f"{path.relative_to(site)} loads {address}"
        for address in [*page.links, *page.loaded]:
            if is_elsewhere(address) or path.name == "404.html":  # which may stand anywhere
                continue
            target, anchor = urldefrag(address)
            found = (path.parent / unquote(urlsplit(target).path)).resolve() if target else path
            if not found.is_file():
                yield f"{path.relative_to(site)} links to {address}, which is not there"
            elif found in pages and unquote(anchor) not in pages[found].anchors:
                yield f"{path.relative_to(site)} links to {address}, which has no such place"
    for path in site.rglob("*.css"):
        for address in STYLED.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads {address}"


def is_elsewhere(address: str) -> bool:
    """Whether it is no place of the site."""
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc)


def main() -> None:
    """Build ``site/`` from what is there, and check it."""
    zensical = Path(sys.executable).parent / "zensical"
    subprocess.run([zensical, "build", "--clean", "--strict"], cwd=ROOT, check=True)
    found = list(problems(ROOT / "site"))
    if found:
        sys.exit("\n".join(found))
    print("Open site/index.html: every link of it is good, and it needs no network.")


if __name__ == "__main__":
    main()
