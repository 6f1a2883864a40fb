"""What the page does for a streamed answer, and for a conversation that is opened, in Chromium.

An answer of 200 kB of paragraphs, lists and code streams in at 2,000 tokens a second, as a kernel
sends it: 20 messages a second. Counted is the processor time of each task of the page's thread,
scripts, layout and paint, from a trace of the browser. Beside it, in the same browser: how long
the parser of Markdown alone takes for the whole text and for each of its blocks.

``--beside DIRECTORY`` measures another build of the panel in turns with this one: where its
``panel.js`` and ``panel.css`` are.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from sagents_nb.panel.bundle import STATIC
from sagents_nb.panel.protocol import new_view_state

CHARACTERS = 200_000
TOKENS_A_SECOND = 2_000
TOKEN = 4  # characters
MESSAGES_A_SECOND = 20
OPENED = 200  # entries
ROUNDS = 3

WIDGETS = Path(__file__).parent.parent / "widgets"
CATEGORIES = ["blink.user_timing", "disabled-by-default-devtools.timeline", "toplevel"]

PARSER = """
import { parseMarkdown } from "./src/markdown";
Object.assign(globalThis, { parseMarkdown });
"""

# A session's model as the panel sees it, and what the measurements do with it.
HARNESS = """
async (files) => {
  const style = document.createElement("style");
  style.textContent = files.style;
  document.head.append(style);
  const url = URL.createObjectURL(new Blob([files.script], { type: "text/javascript" }));
  const panel = await import(url);
  let take, seq = 1;
  const model = {
    get: (name) => (name === "view" ? "session" : ""),
    on: (name, callback) => { if (name === "msg:custom") take = callback; },
    off: () => {},
    send: () => {},
  };
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const pause = (till) => new Promise((done) => setTimeout(done, till - performance.now()));
  const root = document.body.appendChild(document.createElement("div"));
  root.style.width = "900px";
  panel.render({ model, source: model, el: root, signal: new AbortController().signal });
  const events = (...events) => {
    const after = seq;
    seq += events.length;
    const of = (event, i) => ({ run_id: "r", seq: after + 1 + i, ts: 1, ...event });
    take({ type: "events", after, seq, events: events.map(of) });
  };
  globalThis.open = async (text, last) => {
    const state = JSON.parse(text);
    await drawn();
    performance.mark("begin");
    take({ type: "snapshot", seq, state });
    while (document.querySelectorAll("[data-testid=entry]").length < last) await drawn();
    await drawn();
    performance.mark("end");
    await drawn();
  };
  globalThis.stream = async (text, size, interval) => {
    events({ type: "agent_start" }, { type: "message_start", message: { role: "assistant" } });
    await drawn();
    performance.mark("begin");
    const began = performance.now();
    for (let at = 0, n = 1; at < text.length; at += size, n++) {
      events({ type: "message_update", delta: { type: "text", text: text.slice(at, at + size) } });
      await pause(began + n * interval);
    }
    await drawn();
    performance.mark("written");
    events(
      { type: "message_end", message: { role: "assistant", parts: [{ type: "text", text }] } },
      { type: "agent_end", status: "completed" },
    );
    await drawn();
    await drawn();
    performance.mark("end");
    await drawn();
  };
}
"""

PARSE = """
([text, times]) => {
  const began = performance.now();
  for (let i = 0; i < times; i++) parseMarkdown(text);
  return (performance.now() - began) / times;
}
"""

ROWS = (
    "streaming: the longest task",
    "its end: the longest task",
    "streaming and end: all tasks",
    "opening 200 entries: the longest task",
    "opening 200 entries: all tasks",
)

WORDS = [
    *("agent", "reads", "table", "prices", "finds", "city", "grow", "rents", "north", "years"),
    *("the", "a", "of", "and", "that", "most", "with", "while", "over", "all", "were", "here"),
]


def answer(characters: int, seed: int = 1) -> list[str]:
    """The blocks of a text: paragraphs, headings, lists, tables and code."""
    chance = random.Random(seed)

    def words(least: int, most: int) -> str:
        said = chance.choices(WORDS, k=chance.randint(least, most))
        for mark in ("**", "`", "*"):
            place = chance.randrange(len(said))
            said[place] = f"{mark}{said[place]}{mark}"
        return " ".join(said).capitalize() + "."

    def paragraph() -> str:
        return " ".join(words(8, 20) for _ in range(chance.randint(2, 6)))

    def items() -> str:
        return "\n".join(f"- {words(5, 25)}" for _ in range(chance.randint(4, 12)))

    def code() -> str:
        body = "\n".join(
            f"    total_{i} = prices['{chance.choice(WORDS)}'].mean() + {i}  # {words(4, 8)}"
            for i in range(chance.randint(10, 40))
        )
        return f"```python\ndef measure(prices):\n{body}\n    return total_0\n```"

    blocks, length = [], 0
    while length < characters:
        make = chance.choice([paragraph, paragraph, items, code])
        blocks.append(make() if chance.random() > 0.1 else f"## {words(3, 6)}")
        length += len(blocks[-1]) + 2
    return blocks


def conversation(entries: int) -> dict[str, Any]:
    """The view state of questions and answers, each answer of 3 kB."""
    state = new_view_state("s", "m")
    for i in range(entries):
        text = "\n\n".join(answer(3_000, seed=i)) if i % 2 else f"And what of number {i}?"
        role = "assistant" if i % 2 else "user"
        message = {"role": role, "parts": [{"type": "text", "text": text}]}
        state["entries"].append({"seq": 0, "run_id": "", "ts": 0, "message": message})
    return state


def tasks(trace: bytes) -> tuple[list[tuple[float, float]], dict[str, float]]:
    """When each task of the page's thread ended and its processor time, and the marks: in ms."""
    events = json.loads(trace)["traceEvents"]
    marks = {
        e["name"]: e["ts"] / 1000
        for e in events
        if e["cat"] == "blink.user_timing" and e["name"] in ("begin", "written", "end")
    }
    thread = next(
        (e["pid"], e["tid"])
        for e in events
        if e["cat"] == "blink.user_timing" and e["name"] == "begin"
    )
    found = [
        ((e["ts"] + e["dur"]) / 1000, e.get("tdur", e["dur"]) / 1000)
        for e in events
        if e["name"] == "RunTask" and (e["pid"], e["tid"]) == thread and "dur" in e
    ]
    return found, marks


def traced(browser: Browser, page: Page, script: str, *arguments: Any) -> bytes:
    """The trace of what the script does in that page."""
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.evaluate(script, list(arguments))
    return browser.stop_tracing()


def page_of(browser: Browser, static: Path) -> Page:
    """A page with a panel of that build, to which nothing was said yet."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.set_content("<!doctype html><body data-jp-theme-light='true'></body>")
    script, style = ((static / name).read_text() for name in ("panel.js", "panel.css"))
    page.evaluate(HARNESS, {"script": script, "style": style})
    return page


def streamed(browser: Browser, static: Path, text: str) -> list[float]:
    """The longest task while the text streams in, the longest at its end, and all of both."""
    page = page_of(browser, static)
    page.evaluate("state => open(state, 10)", json.dumps(conversation(10)))  # all is compiled
    size = TOKENS_A_SECOND * TOKEN // MESSAGES_A_SECOND
    script = "([text, size, interval]) => stream(text, size, interval)"
    found, marks = tasks(traced(browser, page, script, text, size, 1000 / MESSAGES_A_SECOND))
    page.close()
    during = [ms for end, ms in found if marks["begin"] < end <= marks["written"]]
    after = [ms for end, ms in found if marks["written"] < end]
    return [max(during), max(after), sum(during) + sum(after)]


def opened(browser: Browser, static: Path, state: dict[str, Any]) -> list[float]:
    """The longest task until all entries are there, and all of them."""
    page = page_of(browser, static)
    script = "([state, last]) => open(state, last)"
    found, marks = tasks(traced(browser, page, script, json.dumps(state), len(state["entries"])))
    page.close()
    took = [ms for end, ms in found if marks["begin"] < end]
    return [max(took), sum(took)]


def parsed(browser: Browser, blocks: list[str]) -> list[float]:
    """How long parsing takes: the whole, in a page that has parsed nothing yet, and a block.

    That is the block which takes longest, of those that are long.
    """
    build = subprocess.run(
        [WIDGETS / "node_modules/.bin/esbuild", "--bundle", "--format=iife", "--loader=ts"],
        input=PARSER,
        cwd=WIDGETS,
        capture_output=True,
        text=True,
        check=True,
    )
    page = browser.new_page()
    page.add_script_tag(content=build.stdout)
    whole = page.evaluate(PARSE, ["\n\n".join(blocks), 1])
    largest = max(page.evaluate(PARSE, [block, 200]) for block in sorted(blocks, key=len)[-20:])
    page.close()
    return [whole, largest]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, help="the static files of another build")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("There is no Chromium on PATH, so nothing is measured.")
        return
    builds = [STATIC] + ([options.beside] if options.beside else [])
    blocks = answer(CHARACTERS)
    text, state = "\n\n".join(blocks), conversation(OPENED)
    parses, rounds = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(options.rounds):
            parses.append(parsed(browser, blocks))
            rounds.append(
                [[*streamed(browser, b, text), *opened(browser, b, state)] for b in builds]
            )
        browser.close()
    whole, largest = (min(found) for found in zip(*parses, strict=True))
    print(
        f"{len(text):,} characters: parsing all {whole:.1f} ms, the largest block {largest:.2f}\n"
    )
    print(f"{'ms':42}" + "".join(f"{name:>12}" for name in ("this", "the other")[: len(builds)]))
    least = [
        [min(one[build][n] for one in rounds) for build in range(len(builds))]
        for n in range(len(ROWS))
    ]
    for name, row in zip(ROWS, least, strict=True):
        print(f"{name:42}" + "".join(f"{ms:12.1f}" for ms in row))
    goals = [("longest task / parsing all ≤ 50/48", max(least[0][0], least[1][0]) / whole, 50 / 48)]
    if options.beside:
        goals.append(("opening / that of the other ≤ 0.4", least[4][0] / least[4][1], 0.4))
    for goal, measured, most in goals:
        print(f"{'met' if measured <= most else 'MISSED':>6}  {goal}: {measured:.2f}")


if __name__ == "__main__":
    main()
