"""The panel in a real JupyterLab in Chromium, beside a naive widget and the chats of others.

An answer of 200 kB of paragraphs, lists and code streams in at 2,000 tokens a second; a conversation
of 10,000 messages is opened and scrolled through; thirty panels stand in one notebook. A task is one
of the page's thread, scripts, layout and paint, by the time of the processor in a trace of the
browser. Its floor is the parser of Markdown on the whole text, in the same browser.

The naive widget is an anywidget with one text trait, which is set anew for each piece of 400
characters. marimo's chat comes with the project; jupyter-ai gets an environment of its own below
.venv-peers/, made by --peers. The server drops no message, as it would of the naive widget's.

``--beside DIRECTORY`` measures another build of the panel in turns with this one: where its
``loader.js``, ``panel.js`` and ``panel.css`` are.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers._answer import END, answer, blocks
from peers._chats import OURS, NAIVE, Chat, Chats, bundled, naive_script
from peers._environments import Missing
from playwright.sync_api import Browser, Page, sync_playwright
from wire import busiest_second

from sagents_nb.panel.bundle import STATIC
from tests.browser.chromium import ARGUMENTS, find_chromium

ROUNDS = 3
MESSAGES = 10_000
EARLIER = 3  # how often earlier messages are asked for
SPEED = 6_000  # pixels a second
PANELS = 30
PATIENCE = 300  # seconds for an answer that takes 25
MOST_MESSAGES, MOST_WIRE, MOST_OPENING, MOST_FRAME = 25, 4, 1.0, 32
MOST_IN_NOTEBOOK, MOST_BUNDLE = 200_000, 250_000
CATEGORIES = ["blink.user_timing", "disabled-by-default-devtools.timeline", "toplevel"]

# What every page does from its beginning: it counts what comes by sockets, and bundles.
PROBE = """
(() => {
  const probe = (globalThis.probe = { came: [], bundles: 0, frames: [] });
  const count = ({ data }) => probe.came.push([performance.now(), data.length ?? data.byteLength ?? data.size]);
  globalThis.WebSocket = class extends WebSocket {
    constructor(...all) {
      super(...all);
      this.addEventListener("message", count);
    }
  };
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    if (blob.size === BUNDLE) probe.bundles++;
    return make.call(URL, blob);
  };
  // From Ctrl+Enter until an element that `find` finds is in sight.
  probe.opening = (find) => {
    probe.opened = new Promise((done) => {
      const began = (event) => {
        if (!event.ctrlKey || event.key !== "Enter") return;
        removeEventListener("keydown", began, true);
        const since = performance.now();
        const look = () => {
          const box = find()?.getBoundingClientRect();
          if (box?.height > 0 && box.top < innerHeight) setTimeout(() => done(performance.now() - since));
          else requestAnimationFrame(look);
        };
        look();
      };
      addEventListener("keydown", began, true);
    });
  };
  // How far apart frames are, in milliseconds, until the next call.
  let last = 0;
  const frame = (now) => {
    if (!last) return;
    probe.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  probe.watch = (on) => {
    last = on ? performance.now() : 0;
    if (on) probe.frames = [];
    if (on) requestAnimationFrame(frame);
    return probe.frames;
  };
})();
"""
NEWEST = "document.querySelector('.sagents-transcript > [data-testid=entry]:last-of-type')"
PARSER = """
import { parseMarkdown } from "./src/markdown";
Object.assign(globalThis, { parseMarkdown });
"""
PARSE = """
([text, times]) => {
  const began = performance.now();
  for (let i = 0; i < times; i++) parseMarkdown(text);
  return (performance.now() - began) / times;
}
"""

Figures = dict[str, float]


class Trace:
    """The tasks of a page's thread while something is done to it."""

    def __init__(self, browser: Browser, page: Page) -> None:
        self._browser, self._page = browser, page
        self.tasks: list[float] = []
        """The processor time of each, in milliseconds."""

    def __enter__(self) -> Trace:
        self._browser.start_tracing(page=self._page, categories=CATEGORIES)
        self._page.evaluate("performance.mark('begin')")
        return self

    def __exit__(self, *error: object) -> None:
        self._page.evaluate("performance.mark('end')")
        events = json.loads(self._browser.stop_tracing())["traceEvents"]
        marks = {
            e["name"]: e
            for e in events
            if e["cat"] == "blink.user_timing" and e["name"] in ("begin", "end")
        }
        thread = marks["begin"]["pid"], marks["begin"]["tid"]
        self.tasks = [
            e.get("tdur", e["dur"]) / 1000
            for e in events
            if e["name"] == "RunTask"
            and (e["pid"], e["tid"]) == thread
            and "dur" in e
            and marks["begin"]["ts"] < e["ts"] + e["dur"] <= marks["end"]["ts"]
        ]


def streamed(browser: Browser, chat: Chat) -> Figures:
    """What the page does, and what comes to it, from the question until all is shown."""
    page = chat.page
    shown = f"end => {chat.box}?.textContent.includes(end)"
    with Trace(browser, page) as trace:
        page.evaluate("probe.came = []")
        began = time.monotonic()
        chat.ask()
        page.wait_for_function(shown, arg=END, polling=500, timeout=PATIENCE * 1000)
        seconds = time.monotonic() - began
        page.wait_for_timeout(1000)  # what the end of a run has the page do
    times, sizes = zip(*page.evaluate("probe.came"), strict=True)
    return {
        "longest task": max(trace.tasks),
        "all tasks": sum(trace.tasks),
        "tasks > 50 ms": sum(ms > 50 for ms in trace.tasks),
        "seconds until all is shown": seconds,
        "messages in the busiest second": busiest_second([ms / 1000 for ms in times]),
        "wire / text": sum(sizes) / len(answer()),
    }


def opened(browser: Browser, chat: Chat, newest: str) -> Figures:
    """From the run of the cell until the newest message is in sight, and what the page does."""
    page = chat.page
    assert chat.notebook is not None
    with Trace(browser, page) as trace:
        page.evaluate(f"probe.opening(() => {newest})")
        chat.notebook.run_cell(1)
        ms = page.evaluate("probe.opened")
        page.wait_for_timeout(1000)
    return {
        "ms to open": ms,
        "opening: longest task": max(trace.tasks),
        "opening: all tasks": sum(trace.tasks),
    }


def scrolled(browser: Browser, chat: Chat, earlier: int) -> Figures:
    """The frames of a reader who goes back to the first message here, and further."""
    page = chat.page
    devtools = page.context.new_cdp_session(page)
    top = f"{chat.box}.scrollTop"
    place = page.evaluate(
        f"(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])({chat.box}.getBoundingClientRect())"
    )

    def to_the_top() -> float:
        gone = 0.0
        while (left := page.evaluate(top)) > 0 and gone < FURTHEST:
            distance = min(left, 5 * SPEED)
            devtools.send(
                "Input.synthesizeScrollGesture",
                {
                    "x": place[0], "y": place[1], "yDistance": distance, "speed": SPEED,
                    "gestureSourceType": "mouse", "preventFling": True,
                },
            )  # fmt: skip
            gone += distance
        return gone

    with Trace(browser, page) as trace:
        page.evaluate("void probe.watch(true)")
        gone = to_the_top()
        for _ in range(earlier):
            count = page.evaluate(f"{chat.box}.querySelectorAll('[data-testid=entry]').length")
            page.get_by_test_id("earlier").click()
            page.wait_for_function(
                f"count => {chat.box}.querySelectorAll('[data-testid=entry]').length > count",
                arg=count,
            )
            gone += to_the_top()
        frames = page.evaluate("probe.watch(false)")
    return {
        "scrolled": gone,
        "longest frame": max(frames),
        "frames": len(frames),
        "frames > 32 ms": sum(ms > MOST_FRAME for ms in frames),
        "scrolling: longest task": max(trace.tasks),
    }

FURTHEST = 1e9
