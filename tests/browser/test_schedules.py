"""Whatever happens between page and kernel, in the end a panel shows what its session says.

A schedule is a random sequence of what people and machines do: messages, answers to questions,
pages that are loaded again or opened twice, kernels that restart, lines that break, messages
that are lost, come twice or too late, machines that sleep. Several sessions of a notebook go
through theirs at once, since a page is loaded for all of them. What was drawn is the same for the
same seed: ``pytest tests/browser/test_schedules.py -k "[17]"``.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.lab import NOTEBOOK, LabWindow, NotebookPage
from tests.browser.wires import BROKEN, Wire
from tests.talking import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SESSIONS = 5
"""Sessions of a notebook, each with a schedule of its own."""
SCHEDULES = 200
SEEDS = range(SCHEDULES // SESSIONS)
QUICK = 1
"""As many of the seeds are a matter of seconds, and no soak."""

SETUP = """
%load_ext sagents_nb
import asyncio, json
import sagents_nb as sa

class Told(sa.ChatModel):
    "Does what the last message of a person says, one word a turn; remembers nothing itself."
    name = "told"
    async def stream(self, request):
        asked = max(i for i, m in enumerate(request.messages) if m.role == "user")
        said = request.messages[asked].text.split()
        turn = sum(m.role == "assistant" for m in request.messages[asked:])
        place = f"{len(request.messages)} of {said[0]}"
        word = said[1 + turn] if 1 + turn < len(said) else "end"
        text = f"Turn {place}: {word}."
        for piece in text.split(" "):
            yield piece + " "
            await asyncio.sleep(0.02)
        call = CALLS.get(word, lambda place: None)(place)
        # Providers reuse the ids of calls.
        calls = [] if call is None else [sa.ToolCall(f"c{len(request.messages) % 6}", *call)]
        yield sa.Message.assistant(text + " ", calls, usage=sa.Usage(10, 5))

def listed(place):
    contents = enumerate([f"Look at {place}", "Tell", "Go on"], 1)
    todos = [dict(id=i, content=c, status="pending" if i > 1 else "completed") for i, c in contents]
    return "write_todos", dict(merge=False, todos=todos)

CALLS = {
    "todos": listed,
    "write": lambda place: ("write_file", dict(file_path=f"/{place}.md", content=place)),
    "look": lambda place: ("look", dict(where=place)),
    "fail": lambda place: ("look", dict(where="")),
    "pay": lambda place: ("pay", dict(to=place)),
    "task": lambda place: ("task", dict(instructions=f"sub-{place} look", subagent_type="helper")),
}

@sa.tool
async def look(where: str, ctx: sa.ToolContext) -> str:
    "Look somewhere."
    for n in range(3):
        await ctx.progress(f"{n} of 3", n / 3)
        await asyncio.sleep(0.05)
    if not where:
        raise ValueError("There is nothing there.")
    return f"Nothing in {where}."

@sa.tool
def pay(to: str) -> str:
    "Send money."
    with open("paid.txt", "a") as book:
        print(to, file=book)
    return "Paid."

helper = sa.CompiledSubAgent("helper", "Looks.", sa.Agent(Told(), tools=[look]))
agent = sa.Agent(Told(), tools=[look, pay], interrupt_on={"pay": True},
                 subagent_options={"subagents": [helper]})
store = sa.ConversationStore("sqlite:///kept.db")

def opened(name):
    if store.find_conversation(name) is None:
        return sa.Session(agent, id=name, store=store)
    return sa.Session.open(name, agent=agent, store=store)

s = [opened(f"talk-{i}") for i in range(SESSIONS)]

def truth(session):
    calls = session.to_frame("tool_calls")
    statuses = calls["status"].astype(object).where(calls["status"].notna(), "open")
    return dict(
        entries=[[m.role, m.text.strip()] for m in session.messages if m.role != "tool"],
        calls=[[name, status] for name, status in zip(calls["name"], statuses)
               if name != "write_todos"],
        todos=[[todo.content, todo.status] for todo in session.todos],
        files=sorted(entry.path for entry in session.files.entries()),
        status=session.status,
        queued=[message.text for run, when, message in session.queued],
    )
"""

# What a panel shows, in the words of `truth`.
SHOWN = """
([selector]) => [...document.querySelectorAll(selector)].map((panel) => {
  const all = (name) => [...panel.querySelectorAll(`[data-testid=${name}]`)];
  const said = (entry) => {
    const copy = entry.cloneNode(true);
    const beside = ".sagents-sr, .sagents-stop-note, [data-testid=tool-card]";
    copy.querySelectorAll(beside).forEach((e) => e.remove());
    return copy.textContent.trim();
  };
  const words = {
    pending: "open", unfinished: "open", answer: "interrupted", doubt: "interrupted" };
  return {
    entries: all("entry").map((entry) => [entry.dataset.role, said(entry)]),
    calls: all("tool-card").map(({ dataset: { tool, status } }) => [tool, words[status] ?? status]),
    todos: all("todo").map((todo) => [
      todo.lastElementChild.textContent.trim(), todo.dataset.status]),
    files: all("file").map((file) => file.dataset.path).sort(),
    status: panel.querySelector("[data-testid=status]").dataset.status,
    queued: all("queued").map((one) => one.querySelector(".sagents-queued-text").textContent),
  };
})
"""
PANELS = (
    ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell .jp-OutputArea-output"
    " [data-testid=sagents-panel]"
)

# A person who writes a message and presses Enter, where that is possible now.
SAY = """
(areas, text) => {
  const area = areas[0];
  if (!area || area.disabled || area.value) return false;
  const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
  set.call(area, text);
  area.dispatchEvent(new InputEvent("input", { bubbles: true }));
  return new Promise((done) => setTimeout(() => {
    area.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    done(true);
  }, 50));
}
"""
PRESS = "buttons => { const b = buttons.find((b) => !b.disabled); b?.click(); return !!b }"

# Code that the kernel runs for a page, and what it prints.
ASK = f"""
async (code) => {{
  const future = {NOTEBOOK}.sessionContext.session.kernel.requestExecute({{
    code, store_history: false }});
  let said = "";
  future.onIOPub = ({{ header, content }}) => {{
    if (header.msg_type === "stream") said += content.text;
    if (header.msg_type === "error") said += content.traceback.join("\\n");
  }};
  await future.done;
  return said;
}}
"""


class Desk:
    """Who sits before the notebook, and what happens to it."""

    def __init__(self, lab: LabWindow, seed: int) -> None:
        self.lab = lab
        self.chance = random.Random(seed)
        self.log: list[str] = []
        lab.run_first(BROKEN)
        cells = [SETUP.replace("SESSIONS", str(SESSIONS)), *(f"s[{i}]" for i in range(SESSIONS))]
        self.tabs = [lab.open(cells)]
        self.said = 0
        self.run_cells()

    @property
    def first(self) -> NotebookPage:
        return self.tabs[0]

    def run_cells(self) -> None:
        """Run the whole notebook, and wait until all panels are there."""
        self.first.run_all()
        for i in range(SESSIONS + 1):
            self.first.wait_for_cell(i)
        self.wait_for_panels(self.first)

    def wait_for_panels(self, tab: NotebookPage) -> None:
        expect(tab.page.locator(f"{PANELS} [data-testid=composer]:enabled")).to_have_count(SESSIONS)

    def part(self, tab: NotebookPage, i: int, name: str) -> Any:
        return tab.page.locator(PANELS).nth(i).get_by_test_id(name)

    # Steps of one session

    def say(self, i: int) -> None:
        words = self.chance.choices(
            ["todos", "write", "look", "fail", "pay", "task", "end"], k=self.chance.randint(0, 3)
        )
        self.said += 1
        text = " ".join([f"m{self.said}", *words])
        tab = self.chance.choice(self.tabs)
        if self.part(tab, i, "composer").evaluate_all(SAY, text):
            self.log.append(f"{i}: says {text!r} in tab {self.tabs.index(tab)}")

    def decide(self, i: int) -> None:
        name = self.chance.choice(["approve", "approve", "reject"])
        tab = self.chance.choice(self.tabs)
        if self.part(tab, i, name).evaluate_all(PRESS):
            if name == "reject":
                self.part(tab, i, "reject-message-send").evaluate_all(PRESS)
            self.log.append(f"{i}: {name} in tab {self.tabs.index(tab)}")

    def stop(self, i: int) -> None:
        tab = self.chance.choice(self.tabs)
        if self.part(tab, i, "stop").evaluate_all(PRESS):
            self.log.append(f"{i}: stops in tab {self.tabs.index(tab)}")

    # Steps of the page

    def lose(self) -> None:
        tab = self.chance.choice(self.tabs)
        way = self.chance.choice(["in", "in", "in", "out"])
        fault = self.chance.choice(["drop", "double", "swap"])
        self.log.append(f"{fault} {way} in tab {self.tabs.index(tab)}")
        Wire(tab.page).fail(way, fault)

    def pause(self) -> None:
        self.first.page.wait_for_timeout(self.chance.uniform(50, 800))

    def reload(self) -> None:
        tab = self.chance.choice(self.tabs)
        self.log.append(f"reload tab {self.tabs.index(tab)}")
        Wire(tab.page).let_go()
        tab.wait_for_kernel_idle()
        if tab is self.first:
            tab.reload()
        else:  # it saves nothing: the first would be asked whose file is right
            tab.page.reload()
            tab.wait_until_ready()
        self.wait_for_panels(tab)

    def second_tab(self) -> None:
        if len(self.tabs) > 1:
            self.log.append("close tab 1")
            self.close(self.tabs[1])
            return
        self.log.append("open tab 1")
        self.first.save()
        tab = self.lab.open_file(self.first.path)
        self.tabs.append(tab)
        self.wait_for_panels(tab)

    def close(self, tab: NotebookPage) -> None:
        self.tabs.remove(tab)
        self.lab.notebooks.remove(tab)
        tab.page.close()

    def restart(self) -> None:
        self.log.append("restart")
        for tab in self.tabs:
            Wire(tab.page).let_go()
        self.first.wait_for_kernel_idle()
        self.first.restart_kernel()
        lost = self.first.page.locator(f"{PANELS} [data-testid=lost]")
        expect(lost).to_have_count(SESSIONS)
        for tab in self.tabs[1:]:  # which the server tells nothing of a restart in another
            self.close(tab)
        self.run_cells()

    def offline(self) -> None:
        tab = self.chance.choice(self.tabs)
        self.log.append(f"cut tab {self.tabs.index(tab)}")
        Wire(tab.page).cut()
        self.say(self.chance.randrange(SESSIONS))
        self.pause()
        Wire(tab.page).let_go()

    def sleep(self) -> None:
        tab = self.chance.choice(self.tabs)
        self.log.append(f"sleep tab {self.tabs.index(tab)}")
        session = tab.page.context.new_cdp_session(tab.page)
        session.send("Page.setWebLifecycleState", {"state": "frozen"})
        time.sleep(self.chance.uniform(0.1, 1))
        session.send("Page.setWebLifecycleState", {"state": "active"})
        session.detach()

    # The end

    def steps(self) -> list[Callable[[], None]]:
        """What happens, in order."""
        steps: list[Callable[[], None]] = []
        for i in range(SESSIONS):
            steps += [partial(self.say, i) for _ in range(self.chance.randint(1, 3))]
            steps += [partial(self.decide, i) for _ in range(self.chance.randint(0, 2))]
            steps += [partial(self.stop, i)] * (self.chance.random() < 0.2)
        steps += [self.lose for _ in range(self.chance.randint(2, 8))]
        steps += [self.pause for _ in range(self.chance.randint(2, 8))]
        shared = [self.reload, self.second_tab, self.restart, self.offline, self.sleep]
        steps += self.chance.sample(shared, k=self.chance.randint(2, 4))
        self.chance.shuffle(steps)
        return steps

    def let_go(self) -> None:
        """All lines work, and nothing runs any more."""
        for tab in self.tabs:
            Wire(tab.page).let_go()
            tab.wait_for_kernel_idle()

    def ask(self, code: str) -> str:
        return str(self.first.page.evaluate(ASK, code))

    def truths(self) -> list[dict[str, Any]]:
        """What the sessions say, once none of them is at work, nor was while it was asked."""
        end = time.monotonic() + PATIENCE
        before = None
        while time.monotonic() < end:
            said = json.loads(self.ask("print(json.dumps([truth(each) for each in s]))"))
            if said == before and all(each["status"] != "running" for each in said):
                return list(said)
            before = said
            self.first.page.wait_for_timeout(100)
        raise AssertionError(f"a session runs for ever: {said}")

    def differences(self, truths: list[dict[str, Any]]) -> list[str]:
        """What panels show otherwise than their sessions say."""
        found = []
        for number, tab in enumerate(self.tabs):
            shown = tab.page.evaluate(SHOWN, [PANELS])
            if len(shown) != len(truths):
                found.append(f"tab {number} has {len(shown)} panels")
            for i, (panel, session) in enumerate(zip(shown, truths, strict=False)):
                found += [
                    f"tab {number}, session {i}, {what}:\n"
                    f"  shown {panel[what]}\n  is    {session[what]}"
                    for what in session
                    if panel[what] != session[what]
                ]
        return found


@pytest.mark.parametrize(
    "seed", [n if n < QUICK else pytest.param(n, marks=pytest.mark.soak) for n in SEEDS]
)
def test_panels_show_what_their_sessions_say(lab_window: LabWindow, seed: int) -> None:
    desk = Desk(lab_window, seed)
    for step in desk.steps():
        step()
    desk.let_go()
    end = time.monotonic() + PATIENCE
    # A page may still have something to say again.
    while (wrong := desk.differences(truths := desk.truths())) and time.monotonic() < end:
        desk.first.page.wait_for_timeout(100)
    assert not wrong, f"seed {seed}\n" + "\n".join([*wrong, "after", *desk.log])
    for each in truths:
        asked = [text for role, text in each["entries"] if role == "user"] + each["queued"]
        assert len(asked) == len(set(asked)), f"seed {seed}: said twice: {asked}\n{desk.log}"
    print("\n".join(desk.log), json.dumps(truths, indent=0)[:1500])
