"""What code puts out while it runs: for the model as text and images, for people in the cell."""

from __future__ import annotations

import base64
import codecs
import contextlib
import ctypes
import io
import itertools
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..messages import (
    IMAGE_TYPES,
    ContentPart,
    ImagePart,
    Message,
    TextPart,
    figure_of,
    image_of,
)
from ..redaction import LONGEST, SHORTEST, masked
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..runtime.workers import workers
from .interpolate import describe, without_secret_entries

MOST_IMAGES = 4
"""Images of one call that a model is handed."""

_WATCHED = (1, 2)  # standard output and errors, as the system knows them
_AT_ONCE = 65_536  # bytes that are read of them

_MOST_DATA = 5_000_000  # characters of base64: Anthropic refuses more, and all else with it
_INTERACTIVE = {"widget", "ipympl", "backend_nbagg", "nbagg", "notebook"}
_LONGEST_LINE = 200  # characters of a line that is told
_NEWS_EVERY = 0.2  # seconds between the lines that are told while the code runs
_LOOKED_AT = 2 * LONGEST  # characters of the end for that: a secret of several lines is found whole


class Capture(io.TextIOBase):
    """The output of one call, in its order; a file that can be written to.

    Of more than ``most`` characters the middle is left out: what stands beside it is kept as far as
    a secret may reach, so that one is found before it is cut. ``shell`` displays to the cell.
    What then are the ``secrets`` is masked in both: a cell is saved in the notebook. ``tell`` hears
    meanwhile of the line that was printed last.
    """

    def __init__(
        self,
        shell: Any,
        most: int,
        secrets: Callable[[], Iterable[str]] = tuple,
        tell: Callable[[str], Any] | None = None,
    ) -> None:
        self._shell = shell
        self._tell = tell
        self._has_news = False
        self._show = shown_in_cell(shell)
        self._lock = threading.RLock()
        self._secrets = secrets
        self._most = most
        self._figures: set[int] = set()
        self.clear()

    def clear(self, wait: bool = False) -> None:
        """Forget everything; what stands in the cell stays, the agent's panel among it."""
        self._head: list[str | ImagePart] = []
        self._tail: deque[str | ImagePart] = deque()
        self._room = self._most + LONGEST  # of the head
        self._tail_size = 0
        self._written = 0
        self._is_cut = False
        self._images = 0

    encoding = "utf-8"

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Take text."""
        with self._lock:
            self._written += len(text)
            kept, rest = text[: self._room], text[self._room :]
            if kept:
                self._head.append(kept)
                self._room -= len(kept)
            if rest:
                self._tail.append(rest)
                self._tail_size += len(rest)
                self._trim()
            if self._tell is not None and not self._has_news:
                self._has_news = True
                # Elsewhere than on the loop: to find secrets is to look into people's own objects.
                runtime.post(
                    runtime.loop.call_later, _NEWS_EVERY, workers.submit, self._tell_last_line
                )
        return len(text)

    def _tell_last_line(self) -> None:
        with self._lock:
            self._has_news = False
            pieces, left = list[str](), _LOOKED_AT
            for piece in itertools.chain(reversed(self._tail), reversed(self._head)):
                if left <= 0:
                    break
                if isinstance(piece, str):
                    pieces.append(piece[-_LOOKED_AT:])
                    left -= len(piece)
        # Of a line that is not whole yet a secret may follow.
        whole = re.match(r"(?s).*[\r\n]", "".join(reversed(pieces)))
        if self._tell is None or whole is None:
            return
        secrets = set(self._secrets())
        # Of one with several lines the others may follow, too.
        secrets |= {line for each in secrets for line in each.split("\n") if len(line) >= SHORTEST}
        *before, last = masked(whole[0], secrets).rstrip().splitlines() or [""]
        if last.strip() and (before or left > 0):  # and it begins within what was looked at
            self._tell(last.strip()[:_LONGEST_LINE])

    def _trim(self) -> None:
        while (over := self._tail_size - self._most - LONGEST) > 0:
            first = self._tail.popleft()
            if isinstance(first, ImagePart):
                self._head.append(first)
                continue
            if len(first) > over:
                self._tail.appendleft(first[over:])
            cut = min(over, len(first))
            self._tail_size -= cut
            self._is_cut = True

    def image(self, image: ImagePart) -> None:
        """Take an image; of those over the limits it is said that there were more."""
        if len(image.data or "") > _MOST_DATA:
            self.write(f"[an image of {len(image.data or ''):,} characters: too large]\n")
            return
        self._images += 1
        if self._images <= MOST_IMAGES:
            (self._tail if self._tail else self._head).append(image)

    def bundle(self, data: dict[str, Any]) -> None:
        """Take what was displayed: its image if it has one, else its text."""
        image = _image(data)
        if image is not None:
            self.image(image)
        elif text := data.get("text/plain") or data.get("text/markdown"):
            self.write(f"{text}\n")

    def show(self, data: dict[str, Any], metadata: dict[str, Any], **how: Any) -> None:
        """Show that to people only."""
        secrets = self._secrets()
        self._show(masked_data(data, secrets), masked_data(metadata, secrets), **how)

    def value(self, value: Any) -> None:
        """Take the value of a last expression, and display it if it is more than text."""
        if getattr(figure_of(value), "number", None) in _figures() - self._figures:
            return  # a new figure, or its axes, which pandas' plot gives: taken with the others
        value = without_secret_entries(value)
        data: dict[str, Any] = {}
        if type(value).__module__ != "builtins":
            data, metadata = self._shell.display_formatter.format(value)
            if data.keys() - {"text/plain"}:
                self.show(data, metadata)
        library = type(value).__module__.partition(".")[0]
        image = _image(data) or (image_of(value) if library in ("PIL", "matplotlib") else None)
        if image is not None:
            self.image(image)
        else:
            most = self._most * 9 // 10
            self.write(describe(value, most, self._secrets()))  # says itself that it is cut

    def publish(self, data: dict[str, Any], metadata: Any = None, **how: Any) -> None:
        """As the shell's own ``display_pub.publish``."""
        self.bundle(data)
        self.show(data, metadata or {}, **how)

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Take what is printed and displayed meanwhile, also by C code and by commands."""
        self._figures = _figures()
        in_kernel = os.name == "posix" and getattr(self._shell, "kernel", None) is not None
        with (
            _descriptors_taken(self.write) if in_kernel else contextlib.nullcontext(),
            contextlib.redirect_stdout(self),
            contextlib.redirect_stderr(self),
            replaced(self._shell.display_pub, publish=self.publish, clear_output=self.clear),
        ):
            try:
                yield
            except KeyboardInterrupt:
                self._take_figures(drawn=False)  # whoever stopped it wants no more work
                raise
            except BaseException:
                self._draw_figures()
                raise
            self._draw_figures()

    def _draw_figures(self) -> None:
        """Take them; that may be interrupted, as it can take long."""
        work = main_thread.innermost()
        try:
            work.runs = True
            self._take_figures()
        finally:
            work.runs = False

    def _take_figures(self, drawn: bool = True) -> None:
        """Take the figures of matplotlib that were made meanwhile, and show and close them.

        The inline backend would show them when the whole cell has ended. Those of an
        interactive one stay, and are shown by it.
        """
        made = sorted(_figures() - self._figures)
        if not made:
            return
        from matplotlib import pyplot

        interactive = _stays(pyplot)
        for number in made:
            figure = pyplot.figure(number)
            try:
                if drawn and (image := image_of(figure)) is not None:
                    self.image(image)
                    if not interactive:
                        self.show({"text/plain": repr(figure), image.mime_type: image.data}, {})
            finally:
                if not interactive:
                    pyplot.close(number)

    def content(self) -> str | list[ContentPart]:
        """All of it for the model; without images a text."""
        secrets = tuple(self._secrets())
        if self._is_cut:  # what stood at the cut may be a piece of a secret
            head = _without_last(_masked(self._head, secrets), LONGEST)
            tail = _without_first(_masked(self._tail, secrets), LONGEST)
            pieces = self._without_middle(head, tail)
        else:
            pieces = _masked([*self._head, *self._tail], secrets)
            if self._written > self._most:
                pieces = self._without_middle(pieces, pieces)
        if self._images > MOST_IMAGES:
            pieces.append(f"\n[{self._images - MOST_IMAGES} more images are shown in the notebook]")
        parts = _joined(pieces)
        if len(parts) == 1 and isinstance(parts[0], str):
            return parts[0]
        return [TextPart(part) if isinstance(part, str) else part for part in parts] or ""

    def _without_middle(
        self, head: list[str | ImagePart], tail: list[str | ImagePart]
    ) -> list[str | ImagePart]:
        """Of both what there is room for, and between them how much is left out.

        Each may be all of it: an image is where what stands after it is.
        """
        half, is_all = self._most // 2, head is tail
        head = _without_last(head, _size(head) - (self._most - half))
        tail = _without_first(tail, _size(tail) - half)
        if is_all:
            begin = next((i for i, piece in enumerate(tail) if isinstance(piece, str) and piece), 0)
            head, tail = head[: begin + 1], tail[begin:]
        left_out = max(1, self._written - _size(head) - _size(tail))
        return [*head, f"\n… {left_out:,} characters are left out here …\n", *tail]


def _masked(pieces: Iterable[str | ImagePart], secrets: tuple[str, ...]) -> list[str | ImagePart]:
    return [masked(p, secrets) if isinstance(p, str) else p for p in _joined([*pieces])]


def _size(pieces: Iterable[str | ImagePart]) -> int:
    return sum(len(piece) for piece in pieces if isinstance(piece, str))


def _without_first(pieces: Iterable[str | ImagePart], count: int) -> list[str | ImagePart]:
    """All but so many characters at the beginning; the images stay, also between those."""
    left: list[str | ImagePart] = []
    for piece in pieces:
        cut = min(count, len(piece)) if isinstance(piece, str) and count > 0 else 0
        left.append(piece[cut:] if isinstance(piece, str) else piece)
        count -= cut
    return left


def _without_last(pieces: Iterable[str | ImagePart], count: int) -> list[str | ImagePart]:
    """All but so many characters at the end; the images stay, also between those."""
    left: list[str | ImagePart] = []
    for piece in reversed([*pieces]):
        cut = min(count, len(piece)) if isinstance(piece, str) and count > 0 else 0
        left.append(piece[: len(piece) - cut] if isinstance(piece, str) else piece)
        count -= cut
    return left[::-1]


def shown_in_cell(shell: Any) -> Callable[..., None]:
    """What shows data, by MIME type, and its metadata in the cell; nothing outside of a kernel.

    Elsewhere to display is to print.
    """
    if getattr(shell, "kernel", None) is None:
        return lambda data, metadata, **how: None
    show: Callable[..., None] = shell.display_pub.publish
    return show


def masked_data(data: Any, secrets: Iterable[str]) -> Any:
    """What is displayed, by MIME type or within its JSON, without secrets; an image is as it is."""
    if isinstance(data, str):
        return masked(data, secrets)
    if isinstance(data, dict):
        return {
            name: value if name in IMAGE_TYPES else masked_data(value, secrets)
            for name, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [masked_data(item, secrets) for item in data]
    return data


def _joined(pieces: list[str | ImagePart]) -> list[str | ImagePart]:
    """With the texts between two images as one."""
    joined: list[str | ImagePart] = []
    texts: list[str] = []
    for piece in [*pieces, None]:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if text := "".join(texts):
            joined.append(text)
        texts.clear()
        if piece is not None:
            joined.append(piece)
    return joined


def _image(data: dict[str, Any]) -> ImagePart | None:
    for mime_type in IMAGE_TYPES:
        image = data.get(mime_type)
        if isinstance(image, bytes):
            return ImagePart(base64.b64encode(image).decode(), mime_type)
        if isinstance(image, str):
            return ImagePart("".join(image.split()), mime_type)
    return None


def _figures() -> set[int]:
    """The numbers of pyplot's figures; it is not imported to ask."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set() if pyplot is None else set(pyplot.get_fignums())


def _stays(pyplot: Any) -> bool:
    """Whether the backend shows figures by itself as long as they are open."""
    return pyplot.get_backend().lower().rpartition(".")[2] in _INTERACTIVE


def close_shown(messages: Iterable[Message]) -> None:
    """Close figures of pyplot that tools have given back, as their images say.

    They are seen in the transcript. The inline backend, which closes all as a cell ends, would show
    them once more below it.
    """
    if not (made := sorted(_figures())):
        return
    results = [result for message in messages for result in message.tool_results]
    given = [part for r in results if not isinstance(r.content, str) for part in r.content]
    images = {part.data for part in given if isinstance(part, ImagePart)}
    from matplotlib import pyplot

    if not images or _stays(pyplot):
        return
    for number in made:
        with contextlib.suppress(Exception):  # what cannot be drawn is not there twice
            image = image_of(pyplot.figure(number))
            if image is not None and image.data in images:
                pyplot.close(number)


@contextlib.contextmanager
def replaced(thing: Any, **attributes: Any) -> Iterator[None]:
    """``thing`` with other attributes meanwhile."""
    own = {name: vars(thing)[name] for name in attributes if name in vars(thing)}
    for name, value in attributes.items():
        setattr(thing, name, value)
    try:
        yield
    finally:
        for name in attributes:
            if name in own:
                setattr(thing, name, own[name])
            else:
                delattr(thing, name)


@contextlib.contextmanager
def _descriptors_taken(write: Callable[[str], Any]) -> Iterator[None]:
    """Have ``write`` called, on another thread, with what goes to descriptors 1 and 2 meanwhile.

    A kernel of ipykernel reads these and puts the text below the cell, as it is. All that was
    written has been taken at the end; what a process that was left behind writes later is dropped.
    """
    reading, writing = os.pipe()
    mark = os.urandom(16)  # what stands before it in the pipe was written before the end
    seen = threading.Event()
    thread = threading.Thread(
        target=_read, args=(reading, mark, seen, write), name="sagents-descriptors", daemon=True
    )
    thread.start()
    before: dict[int, int] = {}
    try:
        _flush()
        for number in _WATCHED:
            before[number] = os.dup(number)
            os.dup2(writing, number)
        yield
    finally:
        _flush()
        for number, copy in before.items():
            os.dup2(copy, number)
            os.close(copy)
        os.write(writing, mark)
        os.close(writing)
        seen.wait()


def _read(reading: int, mark: bytes, seen: threading.Event, write: Callable[[str], Any]) -> None:
    """Read until nobody can write any more, and pass on what comes before the mark."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = b""  # which may begin the mark
    try:
        while data := os.read(reading, _AT_ONCE):
            if seen.is_set():
                continue
            before, found, _ = (held + data).partition(mark)
            held = b"" if found else before[len(before) - len(mark) + 1 :]
            if text := decoder.decode(before[: len(before) - len(held)], final=bool(found)):
                write(text)
            if found:
                seen.set()
    finally:
        seen.set()  # whatever happened, nobody waits for ever
        os.close(reading)


def _flush() -> None:
    """Have C's own buffers written out."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
