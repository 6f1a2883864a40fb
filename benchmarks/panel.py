"""The panel in a real JupyterLab in Chromium, beside a naive widget and the chats of others.

An answer of 200 kB of paragraphs, lists and code streams in at 2,000 tokens a second; a
conversation of 10,000 messages is opened and scrolled through; thirty panels stand in one notebook.
A task is one of the page's thread, scripts, layout and paint, by the time of the processor in a
trace of the browser. Its floor is the parser of Markdown on the whole text, in the same browser.
Tasks in which V8 collects what all of the page has let go, JupyterLab too, are told apart.

Of scrolling the longest task has a bound, and not the frames: a machine without a graphics
processor, or whose processors others want, is late with frames for which the page had little to do.

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
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers._answer import CHARACTERS, END, TOKENS_A_SECOND, answer, blocks
from peers._chats import PIECE, Chat, Chats, bundled
from peers._environments import Missing
from playwright.sync_api import Browser, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from wire import busiest_second

from sagents_nb.panel.bundle import STATIC
from sagents_nb.panel.protocol import SHOWN_ENTRIES
from tests.browser.chromium import ARGUMENTS, find_chromium

ROUNDS = 2
MESSAGES = 10_000
EARLIER = 3  # how often earlier messages are asked for
SPEED = 6_000  # pixels a second
FURTHEST = 100_000  # pixels, in one go
PANELS, SAID = 30, 2  # messages in each
PATIENCE = 300  # seconds for an answer that takes 25
MOST_MESSAGES, MOST_WIRE, MOST_OPENING, MOST_FRAME = 25, 4, 1.0, 32
MOST_IN_FILE, MOST_BUNDLE = 200, 250  # kB
# The figures that have bounds, and what they are called in the tables.
LONGEST, BUSIEST, WIRE = "longest task", "messages in the busiest second", "wire / text"
OPENED, SCROLLED = "s until the newest is seen", "scrolling: longest task"
PANEL = "the panel"
COLLECTOR = "v8/src/heap/"
CATEGORIES = ["blink.user_timing", "disabled-by-default-devtools.timeline", "toplevel"]

# What every page does from its beginning: it counts what comes by sockets, and bundles.
PROBE = """
(() => {
  const probe = (globalThis.probe = { came: [], bundles: 0, frames: [] });
  const sizeOf = (data) => data.length ?? data.byteLength ?? data.size;
  const count = ({ data }) => probe.came.push([performance.now(), sizeOf(data)]);
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
          if (!(box?.height > 0 && box.top < innerHeight)) requestAnimationFrame(look);
          else setTimeout(() => done((performance.now() - since) / 1000));
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
PARSER = """
import { parseMarkdown } from "./src/markdown";
Object.assign(globalThis, { parseMarkdown });
"""
PARSE = "([text, times]) => { for (let i = 0; i < times; i++) parseMarkdown(text); }"

Figures = dict[str, float]


class Trace:
    """The tasks of a page's thread while something is done to it."""

    def __init__(self, browser: Browser, page: Page) -> None:
        self._browser, self._page = browser, page
        self.tasks: list[float] = []
        """The processor time of each, in milliseconds."""
        self.collections: list[float] = []
        """That of V8's own tasks, which collect what all of the page has let go, not its work."""

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
        inside = [
            e
            for e in events
            if (e["pid"], e["tid"]) == thread
            and "dur" in e
            and marks["begin"]["ts"] < e["ts"] + e["dur"] <= marks["end"]["ts"]
        ]
        collecting = [
            e["ts"] for e in inside if e["args"].get("src_file", "").startswith(COLLECTOR)
        ]
        for e in inside:
            if e["name"] != "RunTask":
                continue
            # The first task of a trace is told to have had more of the processor than it lasted.
            took = min(e.get("tdur", e["dur"]), e["dur"]) / 1000
            of_v8 = any(e["ts"] <= began < e["ts"] + e["dur"] for began in collecting)
            (self.collections if of_v8 else self.tasks).append(took)


def streamed(browser: Browser, chat: Chat) -> Figures:
    """What the page does, and what comes to it, from the question until all is shown."""
    page = chat.page
    chat.show()
    page.wait_for_timeout(1000)  # what opening has the page do
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
        LONGEST: max(trace.tasks),
        "all tasks": sum(trace.tasks),
        "tasks > 50 ms": sum(ms > 50 for ms in trace.tasks),
        "V8's longest collection": max(trace.collections, default=0.0),
        "seconds until all is shown": seconds,
        BUSIEST: busiest_second([ms / 1000 for ms in times]),
        WIRE: sum(sizes) / len(answer()),
    }


def opened(browser: Browser, chat: Chat) -> Figures:
    """From the run of the cell until the newest message is in sight, and what the page does."""
    page = chat.page
    assert chat.notebook is not None
    with Trace(browser, page) as trace:
        page.evaluate(f"probe.opening(() => {chat.newest})")
        chat.notebook.run_cell(1)
        seconds = page.evaluate("probe.opened")
        page.wait_for_timeout(1000)
    return {
        OPENED: seconds,
        "opening: longest task": max(trace.tasks),
        "opening: all tasks": sum(trace.tasks),
    }


def scrolled(browser: Browser, chat: Chat, earlier: int) -> Figures:
    """The frames and tasks of a reader who goes back to the first message here, and further.

    What it takes to draw the earlier messages that were asked for is told apart.
    """
    page = chat.page
    entries = f"{chat.box}.querySelectorAll('[data-testid=entry]').length"
    frames, moving, coming = [], [], [0.0]

    def go_to_the_top() -> None:
        with Trace(browser, page) as trace:
            page.evaluate("void probe.watch(true)")
            scroll_up(chat)
            frames.extend(page.evaluate("probe.watch(false)"))
        moving.extend(trace.tasks)

    go_to_the_top()
    for _ in range(earlier):
        with Trace(browser, page) as trace:
            count = page.evaluate(entries)
            page.evaluate("document.querySelector('[data-testid=earlier]').click()")
            page.wait_for_function(f"n => {entries} > n", arg=count)
            page.wait_for_timeout(500)
        coming.extend(trace.tasks)
        go_to_the_top()
    return {
        SCROLLED: max(moving),
        "scrolling: tasks of a second": sum(moving) / (sum(frames) / 1000),
        "scrolling: longest frame": max(frames),
        "scrolling: % frames > 32 ms": 100 * sum(ms > MOST_FRAME for ms in frames) / len(frames),
        "100 earlier come: longest task": max(coming),
    }


def read(browser: Browser, chat: Chat) -> Figures:
    """A conversation that is opened and gone back through, as far as it has earlier messages."""
    figures = opened(browser, chat)
    return figures | scrolled(browser, chat, EARLIER if chat.composer else 0)


def scroll_up(chat: Chat) -> None:
    """Scroll as a wheel does, to the top, or as far as one goes at once."""
    box = chat.page.evaluate(f"{chat.box}.getBoundingClientRect()")
    devtools = chat.page.context.new_cdp_session(chat.page)
    gone = 0.0
    while gone < FURTHEST and (left := chat.page.evaluate(f"{chat.box}.scrollTop")) > 0:
        distance = min(left, 5 * SPEED, FURTHEST - gone)
        gesture = {
            "x": box["x"] + box["width"] / 2,
            "y": box["y"] + box["height"] / 2,
            "yDistance": distance,
            "speed": SPEED,
            "gestureSourceType": "mouse",
            "preventFling": True,
        }
        devtools.send("Input.synthesizeScrollGesture", gesture)
        gone += distance


def gathered(chats: Chats) -> Figures:
    """What many panels add to the file of their notebook, and how often they load the bundle."""
    with chats.panels(PANELS, SAID) as notebook:
        before = notebook.path.stat().st_size
        notebook.run_all()
        shown = notebook.page.locator(".sagents-transcript")
        notebook.cell(PANELS).scroll_into_view_if_needed()
        expect(shown).to_have_count(PANELS)
        notebook.wait_for_kernel_idle()
        notebook.save()
        return {
            "kB in the file": (notebook.path.stat().st_size - before) / 1000,
            "bundles": notebook.page.evaluate("probe.bundles"),
        }


def parsed(browser: Browser) -> tuple[float, float]:
    """How long parsing takes: all of the answer, in a page that has parsed nothing, and a block.

    That is the block which takes longest, of those that are long. In milliseconds.
    """
    page = browser.new_page()
    page.add_script_tag(content=bundled(PARSER, "iife"))

    def task(text: str, times: int) -> float:
        with Trace(browser, page) as trace:
            page.evaluate(PARSE, [text, times])
        return max(trace.tasks) / times

    whole = task(answer(), 1)
    largest = max(task(block, 200) for block in sorted(blocks(CHARACTERS), key=len)[-10:])
    page.close()
    return whole, largest


Contestants = dict[str, Callable[[], contextlib.AbstractContextManager[Chat]]]


def measured(
    contestants: Contestants, measure: Callable[[Chat], Figures], rounds: int
) -> dict[str, Figures]:
    """The least of each figure, but the most messages that came in a second; all take turns."""
    found: dict[str, list[Figures]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name in list(found):
            try:
                with contestants[name]() as chat:
                    found[name].append(measure(chat))
            except (Missing, PlaywrightError, AssertionError, RuntimeError) as error:
                if name == PANEL:
                    raise
                print(f"{name}: {str(error).partition(chr(10))[0]}")
                del found[name]
    return {
        name: {row: (max if row == BUSIEST else min)(one[row] for one in all_) for row in all_[0]}
        for name, all_ in found.items()
    }


def print_table(columns: dict[str, Figures]) -> None:
    """A row for each figure, a column for each of who has it."""
    print(f"\n{'':34}" + "".join(f"{name:>17}" for name in columns))
    for row in next(iter(columns.values())):
        cells = (f"{found[row]:,.2f}" if row in found else "–" for found in columns.values())
        print(f"{row:34}" + "".join(f"{cell:>17}" for cell in cells))


def verdict(what: str, value: float, most: float, form: str = ".2f") -> None:
    print(f"{'met' if value <= most else 'MISSED':>6}  {what}: {value:{form}}")


def main() -> None:
    """Print the tables, and what is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="install jupyter-ai, to measure it")
    parser.add_argument("--beside", type=Path, help="the static files of another build")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        print("There is no Chromium, so nothing is measured.")
        return
    expect.set_options(timeout=PATIENCE * 1000)
    size = (STATIC / "panel.js").stat().st_size
    with contextlib.ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        stack.callback(browser.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chats = Chats(browser, folder, PROBE.replace("BUNDLE", str(size)))
        stack.callback(chats.close)
        parses = [parsed(browser) for _ in range(options.rounds)]
        whole, largest = map(min, zip(*parses, strict=True))
        print(f"{len(answer()):,} characters, {TOKENS_A_SECOND:,} tokens a second.")
        print(f"Parsing: all {whole:.1f} ms, the largest block {largest:.2f}.", flush=True)

        says: Contestants = {PANEL: chats.ours}
        opens: Contestants = {PANEL: lambda: chats.ours(MESSAGES)}
        if options.beside:
            other = options.beside.resolve()
            says["the other"] = lambda: chats.ours(static=other)
            opens["the other"] = lambda: chats.ours(MESSAGES, other)
        says |= {
            "naive, Markdown": lambda: chats.naive(True),
            "naive, text": lambda: chats.naive(False),
            "marimo": lambda: chats.marimo(PIECE),
            "jupyter-ai": lambda: chats.jupyter_ai(options.peers),
        }
        opens |= {
            "naive, Markdown": lambda: chats.naive(True, MESSAGES),
            f"naive, {SHOWN_ENTRIES} alone": lambda: chats.naive(True, SHOWN_ENTRIES),
        }
        streams = measured(says, lambda chat: streamed(browser, chat), options.rounds)
        print_table(streams)
        print(f"\n{MESSAGES:,} messages opened and scrolled:")
        openings = measured(opens, lambda chat: read(browser, chat), options.rounds)
        print_table(openings)
        many = gathered(chats)
    stream, opening = streams[PANEL], openings[PANEL]
    longest, in_file = stream[LONGEST], many["kB in the file"]
    print(f"\nThe longest task is {longest / largest:.1f} × the largest block.")
    verdict("longest task / parsing all ≤ 50/48", longest / whole, 50 / 48)
    verdict(f"≤ {MOST_MESSAGES} messages in any second", stream[BUSIEST], MOST_MESSAGES, ".0f")
    verdict(f"≤ {MOST_WIRE} × the text on the wire", stream[WIRE], MOST_WIRE)
    verdict(f"≤ {MOST_OPENING:g} s to open {MESSAGES:,} messages", opening[OPENED], MOST_OPENING)
    verdict(f"≤ {MOST_FRAME} ms for the longest task of scrolling", opening[SCROLLED], MOST_FRAME)
    verdict(f"≤ {MOST_IN_FILE} kB more in the file, {PANELS} panels", in_file, MOST_IN_FILE, ".1f")
    verdict(f"1 bundle loaded, {PANELS} panels", many["bundles"], 1, ".0f")
    verdict(f"≤ {MOST_BUNDLE} kB of the bundle, without formulas", size / 1000, MOST_BUNDLE, ".1f")


if __name__ == "__main__":
    main()
