"""One tool cannot stop the others: faults that were seen from outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import PATIENCE

BEGIN = """
import sys, threading, time
import sagents_nb as sa

def finish(name, function):
    '''Say what it gives, in the patience of a test; a process would hang with it.'''
    out = []
    thread = threading.Thread(target=lambda: out.append(function()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    print(name, out or "HANGS")
"""


def printed(script: str) -> str:
    """What the script prints in a process of its own, which has to end by itself."""
    code = BEGIN.replace("PATIENCE", str(PATIENCE / 4)) + script
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_b01_forty_rows_whose_tools_ask_another_agent_are_answered() -> None:
    script = """
@sa.tool
def lookup(q: str) -> str:
    "Look up."
    time.sleep(0.05)
    return "in"

@sa.tool
def expert(q: str) -> str:
    "Ask the expert."
    model = sa.ScriptedModel([sa.ToolCall("c", "lookup", {"q": "1"}), "answer"])
    return sa.Agent(model, tools=[lookup]).run(q).text

class Asks(sa.ChatModel):
    name = "asks"
    async def stream(self, request):
        if any(m.role == "tool" for m in request.messages):
            yield sa.Message.assistant(request.messages[-1].tool_results[0].text)
        else:
            yield sa.Message.assistant("", [sa.ToolCall("c", "expert", {"q": "x"})])

def rows():
    agent = sa.Agent(Asks(), tools=[expert])
    frame = agent.map([f"q{n}" for n in range(40)], concurrency=40, progress=False)
    return list(frame["text"])

finish("rows", rows)
"""
    assert printed(script) == f"rows {[['answer'] * 40]}\n"


def test_b02_tools_that_timed_out_keep_no_session_from_running_one() -> None:
    script = """
@sa.tool(timeout=0.05)
def hang() -> str:
    "Hang."
    threading.Event().wait()

@sa.tool
def quick() -> str:
    "Quick."
    return "quick"

for n in range(7):
    calls = [sa.ToolCall(f"c{i}", "hang", {}) for i in range(5)]
    sa.Agent(sa.ScriptedModel([calls, "done"]), tools=[hang]).run("x")
model = sa.ScriptedModel([sa.ToolCall("c", "quick", {}), "done"])
session = sa.Session(sa.Agent(model, tools=[quick]))
finish("quick", lambda: session.send("x").result().messages[2].tool_results[0].text)
"""
    assert printed(script) == "quick ['quick']\n"


def test_c01_a_tool_that_timed_out_does_not_keep_python_from_ending() -> None:
    script = """
@sa.tool(timeout=0.05)
def hang() -> str:
    "Hang."
    threading.Event().wait()

agent = sa.Agent(sa.ScriptedModel([sa.ToolCall("c", "hang", {}), "done"]), tools=[hang])
print(agent.run("x").text)
"""
    assert printed(script) == "done\n"


@pytest.mark.parametrize(
    "hook", ["on_event", "after_tool", "on_session_start", "handle_message", "before_model"]
)
def test_b06_a_hook_that_exits_ends_no_other_session(hook: str) -> None:
    def leave(self: Any, *args: Any) -> None:
        sys.exit(1)

    def work() -> str:
        return "worked"

    bad = type("Bad", (sa.Middleware,), {hook: leave})()
    model = sa.ScriptedModel([sa.ToolCall("c", "work", {}), "done"])
    session = sa.Session(sa.Agent(model, tools=[work], middleware=[bad]))
    session.notify_middleware("Bad", "hello")
    ends_the_run = hook in ("after_tool", "before_model")
    if ends_the_run:
        with pytest.raises(sa.MiddlewareError, match=rf"^Bad\.{hook} failed: SystemExit: 1$"):
            session.send("x").result(PATIENCE)
    else:
        assert session.send("x").result(PATIENCE).text == "done"
    other = sa.Session(sa.Agent(sa.ScriptedModel(["ok"])))
    assert other.send("x").result(PATIENCE).text == "ok"


def test_b26_a_tool_that_raises_generator_exit_is_an_error_of_that_tool() -> None:
    async def leave() -> str:
        raise GeneratorExit

    model = sa.ScriptedModel([sa.ToolCall("c", "leave", {}), "done"])
    session = sa.Session(sa.Agent(model, tools=[leave]))
    result = session.send("x").result(PATIENCE)
    assert result.messages[2].tool_results[0].is_error
    assert (session.status, result.text) == ("idle", "done")


def test_b26_a_model_whose_error_has_no_text_ends_its_run() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    class Broken(sa.ChatModel):
        name = "broken"

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            raise Mute
            yield ""

    session = sa.Session(sa.Agent(Broken()))
    with pytest.raises(sa.ModelError, match="its text failed with ValueError"):
        session.send("x").result(PATIENCE)
    assert session.status == "error"


# Eight agents, each of which asks the next in a sync tool; the last one's tool answers.
CHAIN = """
class Caller(sa.ChatModel):
    name = "caller"
    async def stream(self, request):
        if any(m.role == "tool" for m in request.messages):
            yield sa.Message.assistant(request.messages[-1].tool_results[0].text)
        else:
            yield sa.Message.assistant("", [sa.ToolCall("c", "deeper", {})])

count, lock, most, working = 0, threading.Lock(), 0, 0

def agent_at(depth):
    below = agent_at(depth - 1) if depth > 1 else None

    @sa.tool
    def deeper() -> str:
        "Ask the next."
        global count, most, working
        with lock:
            count, working = count + 1, working + 1
            most = max(most, working)
        try:
            return below.run("x").text if below else "bottom"
        finally:
            with lock:
                working -= 1

    return sa.Agent(Caller(), tools=[deeper], replace_default_middleware=True)
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_b01_ten_thousand_nested_calls_all_come_back() -> None:
    """Up to 200 at once, 8 deep."""
    script = (
        CHAIN
        + """
frame = agent_at(8).map([str(n) for n in range(1250)], concurrency=25, progress=False)
print(set(frame["text"]), count, most <= 200, most > 8)
"""
    )
    assert printed(script) == "{'bottom'} 10000 True True\n"


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_b02_a_thousand_abandoned_calls_cost_little_while_they_last() -> None:
    script = """
import resource
from pathlib import Path

@sa.tool(timeout=0.05)
def hang() -> str:
    "Hang."
    threading.Event().wait()

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def leave(n):
    for _ in range(n // 5):
        calls = [sa.ToolCall(f"c{i}", "hang", {}) for i in range(5)]
        model = sa.ScriptedModel([calls, "done"])
        sa.Agent(model, tools=[hang], replace_default_middleware=True).run("x")

leave(5)
before, threads = resident(), threading.active_count()
leave(1000)
each = (resident() - before) / 1000
print(threading.active_count() - threads, each <= 100_000)
print(f"{each:,.0f} bytes each", file=sys.stderr)
model = sa.ScriptedModel([sa.ToolCall("c", "look", {}), "done"])

@sa.tool
def look() -> str:
    "Look."
    return "seen"

finish("another", lambda: sa.Agent(model, tools=[look]).run("x").text)
"""
    assert printed(script) == "1000 True\nanother ['done']\n"
