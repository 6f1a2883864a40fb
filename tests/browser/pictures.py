"""Pictures of pages that are the same wherever they are taken, and what two of them differ in.

The fonts are our own, durations are one second and moments one moment, nothing moves and no caret
blinks. What else may differ is how the edges of letters and lines are smoothed, which another
Chromium does another way: so squares are compared, not pixels. See :func:`difference`.
"""

from __future__ import annotations

import base64
import os
from functools import cache
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Locator, Page

from tests.browser.windows import ARTIFACTS

KEPT = Path(__file__).parents[2] / "docs" / "pictures"
REWRITE = bool(os.environ.get("REWRITE_PICTURES"))

SIDE = 16
"""Of the squares that are compared, in pixels."""
SMOOTHED = 64
"""A pixel differs if a channel does by more, of 255: edges of the same letter differ by less."""
SHARE = 1 / 16
"""So many pixels of a square may differ: less than a line that is a pixel wide takes of it."""
SHADE = 3
"""The mean of a square may differ by so much in each channel: an area has changed its colour."""

FONTS = {
    ("Kept", 400): "DejaVuSans",
    ("Kept", 700): "DejaVuSans-Bold",
    ("Kept Mono", 400): "DejaVuSansMono",
    ("Kept Mono", 700): "DejaVuSansMono-Bold",
}


def hold_still(page: Page) -> None:
    """Give a page fonts that look the same on every machine."""
    page.add_style_tag(content=_style())
    page.evaluate(
        """fonts => Promise.all(fonts.map(([family, weight]) =>
            document.fonts.load(`${weight} 14px "${family}"`)))""",
        list(FONTS),
    )


def picture(element: Locator) -> Image.Image:
    """What an element looks like once it has come to rest."""
    element.scroll_into_view_if_needed()
    element.page.mouse.move(0, 0)
    element.evaluate(AT_REST)
    element.evaluate(ONE_SECOND)
    element.evaluate(ONE_MOMENT)
    element.evaluate(ON_WHOLE_PIXELS)
    shot = element.screenshot(animations="disabled", caret="hide")
    taken = Image.open(BytesIO(shot)).convert("RGB")
    # Where it ends within a pixel, that one shows what is beside it too.
    return taken.crop((1, 1, taken.width - 1, taken.height - 1))


def compared(name: str, taken: Image.Image) -> str:
    """What is wrong with a picture, as the one of that name is kept; "" if nothing is.

    Where they are to be written anew, it is kept and nothing is wrong with it.
    """
    path = KEPT / f"{name}.png"
    if REWRITE:
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or difference(Image.open(path).convert("RGB"), taken):
            taken.save(path, optimize=True)
        return ""
    wrong = difference(Image.open(path).convert("RGB"), taken) if path.exists() else "is not kept"
    if wrong:
        ARTIFACTS.mkdir(exist_ok=True)
        taken.save(ARTIFACTS / path.name)
    return f"{name} {wrong}; now it is {ARTIFACTS / path.name}" if wrong else ""


def difference(kept: Image.Image, taken: Image.Image) -> str:
    """Where two pictures differ and in what, or "".

    They differ if their sizes do; if in any square of 16 pixels more than a sixteenth of the pixels
    differ by more than 64 of 255; or if the mean colour of one differs by more than 3.
    """
    if kept.size != taken.size:
        return f"was {kept.size} and is {taken.size} pixels large"
    a, b = (_squares(np.asarray(image, np.float32)) for image in (kept, taken))
    moved = (np.abs(a - b).max(axis=-1) > SMOOTHED).mean(axis=(1, 3)) > SHARE
    shade = np.abs(a.mean(axis=(1, 3)) - b.mean(axis=(1, 3))).max(axis=-1) > SHADE
    for what, where in (("looks different", moved), ("has another colour", shade)):
        if where.any():
            row, column = (int(place[0]) * SIDE for place in np.nonzero(where))
            return f"{what} in {where.sum()} squares, first at {column}, {row}"
    return ""


def _squares(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of squares: what is left over at the right and below is filled up with its edge."""
    height, width = pixels.shape[:2]
    pixels = np.pad(pixels, ((0, -height % SIDE), (0, -width % SIDE), (0, 0)), mode="edge")
    return pixels.reshape(-(-height // SIDE), SIDE, -(-width // SIDE), SIDE, 3)


AT_REST = """element => new Promise(done => {
    let before = "", frames = 0;
    const look = () => {
        const parts = [element, ...element.querySelectorAll("*")];
        const now = parts.map(e => [e.scrollTop, e.clientWidth, e.clientHeight]).join();
        frames = now === before ? frames + 1 : 0;
        before = now;
        frames < 15 ? requestAnimationFrame(look) : done();
    };
    look();
})"""

# What begins within a pixel has its parts rounded one way or the other.
ON_WHOLE_PIXELS = """element => {
    Object.assign(element.style, { position: "relative", top: "", left: "" });
    const { x, y } = element.getBoundingClientRect();
    Object.assign(element.style, { top: `${Math.round(y) - y}px`, left: `${Math.round(x) - x}px` });
}"""

ONE_SECOND = """element => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (/^([\\d.]+ (ms|s)|\\d+ min \\d+ s)$/.test(text.data)) text.data = "1.0 s";
    }
}"""


ONE_MOMENT = """element => {
    for (const { firstChild: text } of element.querySelectorAll("time")) {
        if (/\\d:\\d/.test(text.data))
            text.data = text.data.replace(/^.*?\\d:\\d\\d(:\\d\\d)?/, "Mon 30 Nov, 07:00");
        else text.data = text.data.startsWith("in ") ? "in 2 days" : "just now";
    }
}"""


@cache
def _style() -> str:
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    faces = "".join(
        f"@font-face {{ font-family: {family!r}; font-weight: {weight}; src: url(data:font/ttf;"
        f"base64,{base64.b64encode((folder / f'{file}.ttf').read_bytes()).decode()}) }}\n"
        for (family, weight), file in FONTS.items()
    )
    # Lab's variables, and what the exported page names.
    return f"""{faces}
        :root:root {{
            --jp-ui-font-family: 'Kept'; --jp-content-font-family: 'Kept';
            --jp-code-font-family: 'Kept Mono'; --jp-code-font-family-default: 'Kept Mono';
            --jp-cell-prompt-font-family: 'Kept Mono'; --mono: 'Kept Mono';
        }}
        body, math {{ font-family: 'Kept' !important }}
        .label {{ font-family: 'Kept' !important }}
    """
