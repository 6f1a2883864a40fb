"""Stopping a run in a real kernel: what its calls say, and what the cell has saved of them."""

from __future__ import annotations

import itertools

import pytest

from tests.notebook.kernel import Cell, Kernel
from tests.notebook.test_kernel_cells import SETUP
from tests.notebook.test_kernel_tools import TOOLS
from tests.notebook.test_waiting import Asked
from tests.talking import PATIENCE

# Who stops a run waits for what it says, however slow the machine is.
HELPERS = f"""
import sagents_nb.loop.invoke, sagents_nb.loop.tool_calls, sagents_nb.runtime.futures
sagents_nb.loop.invoke.LAST_WORDS = {PATIENCE}
sagents_nb.loop.tool_calls.GRACE = {PATIENCE}
sagents_nb.runtime.futures.ENDING = {PATIENCE}
inside = pathlib.Path("inside")

def once_there(path, do):
    def wait():
        while not path.exists():
            time.sleep(0.01)
        do()
    threading.Thread(target=wait).start()

def ended():
    '''How often the model was asked, and how the session and its calls are.'''
    results = [r for m in s.messages for r in m.tool_results]
    print(len(s.agent.model.requests), s.status, *[r.status for r in results])
"""
COMPUTES = """
print('so far')
inside.touch()
while True:
    pass
"""
CATCHES = """
try:
    print('so far')
    inside.touch()
    while True:
        pass
except KeyboardInterrupt:
    print('caught')
"""
CATCHES_ALL = """
print('so far')
while True:
    try:
        inside.touch()
        while True:
            pass
    except BaseException:
        pass
"""
SHOWS = """
class Slow:
    def __repr__(self):
        inside.touch()
        while True:
            pass

print('so far')
Slow()
"""
RAISES = """
class Odd(Exception):
    def __str__(self):
        inside.touch()
        while True:
            pass

print('so far')
raise Odd
"""
SAID_SO = "The code was stopped before its end."
WAITS = "waits for a decision"
WAYS = {"the kernel's interrupt": "", "session.cancel": "s.cancel", "session.stop": "s.stop"}
AGENT_CELL = "%%agent\nGo."


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP + TOOLS + HELPERS)


def stopped(kernel: Kernel, cell: str, way: str) -> Cell:
    """Run that cell, and stop it once its code is inside."""
    kernel.ok("inside.unlink(missing_ok=True)")
    if stop := WAYS[way]:
        kernel.ok(f"once_there(inside, {stop})")
    id = kernel.start(cell, front_end=True)
    if not stop:
        kernel.wait_for("inside")
        kernel.manager.interrupt_kernel()
    return kernel.finish(id)


def saved(cell: Cell) -> str:
    """What the notebook's file has in the place of the panel."""
    told = [data for data in (*cell.shown, *cell.updates) if "text/markdown" in data]
    return str(told[-1]["text/markdown"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cell", [AGENT_CELL, "s.send('Go.').result()"], ids=["agent", "sync"])
@pytest.mark.parametrize(
    ("code", "told", "status"),
    [
        (COMPUTES, f"so far\n{SAID_SO}\n", "cancelled"),
        (CATCHES, "so far\ncaught\n\n", "completed"),
        (CATCHES_ALL, f"so far\n{SAID_SO}\n", "cancelled"),
        (SHOWS, "so far\nThe code ended; showing what it made was stopped.\n", "completed"),
    ],
    ids=["computing", "catching it once", "catching all", "shown"],
)
def test_code_that_is_stopped_says_what_it_printed_and_the_model_is_not_asked_again(
    kernel: Kernel, code: str, told: str, status: str, cell: str, way: str
) -> None:
    kernel.ok(f"python({code!r})")
    ended = stopped(kernel, cell, way)
    left_alone = way == "session.cancel" and cell != AGENT_CELL  # who waits for the result has it
    assert ended.error == ("" if left_alone else "KeyboardInterrupt")
    assert kernel.ok("ended()").text == f"1 cancelled {status}\n"
    assert kernel.ok("told()").text == told
    if cell == AGENT_CELL:
        assert "so far" in saved(ended)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_takes_for_ever_to_say_what_it_is_is_stopped_too(
    kernel: Kernel, way: str
) -> None:
    kernel.ok(f"python({RAISES!r})")
    assert stopped(kernel, AGENT_CELL, way).error == "KeyboardInterrupt"
    assert kernel.ok("ended()").text == "1 cancelled failed\n"
    assert kernel.ok("told()").text.startswith("so far\n")


def test_code_that_is_out_of_time_says_what_it_printed_and_the_agent_goes_on(
    kernel: Kernel,
) -> None:
    kernel.ok(f"python({COMPUTES!r})\ns.replace(agent=s.agent.with_(tool_timeout=0.2))")
    kernel.ok(AGENT_CELL, front_end=True)
    assert kernel.ok("ended()").text == "2 idle failed\n"
    assert kernel.ok("told()").text == f"so far\n{SAID_SO}\nTimed out after 0.2 seconds.\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "cell", [AGENT_CELL, "s.send('Go.').result(wait=True)"], ids=["agent", "sync"]
)
def test_what_waited_for_a_decision_when_it_was_stopped_is_saved_as_cancelled(
    kernel: Kernel, cell: str, way: str
) -> None:
    kernel.ok("start(write(), 'Never.')")
    if stop := WAYS[way]:
        kernel.ok(f"inside.unlink(missing_ok=True)\nonce_there(inside, {stop})")
    id = kernel.start(cell, front_end=True)
    asked = Asked(kernel)  # its panel shows what waits, and stands below the cell
    while all(message["msg_type"] != "display_data" for message in asked.seen):
        asked.seen.append(kernel.client.get_iopub_msg(timeout=PATIENCE))
    if stop:
        (kernel.folder / "inside").touch()
    else:
        kernel.manager.interrupt_kernel()
    ended = asked.finish(id)
    assert ended.error == "KeyboardInterrupt"
    assert kernel.ok("ended()").text == "1 cancelled cancelled\n"
    assert "was cancelled" in saved(ended)
    assert WAITS not in saved(ended)


def test_what_a_cell_left_waiting_is_saved_as_cancelled_once_it_is(kernel: Kernel) -> None:
    kernel.ok("start(write(), 'Never.')")
    left = kernel.ok("%%agent --no-wait\nGo.", front_end=True)
    assert WAITS in saved(left)
    kernel.start("s.cancel()", front_end=True)
    later = Cell()
    while "was cancelled" not in str(later.updates):
        later.messages.append(kernel.client.get_iopub_msg(timeout=PATIENCE))
    assert WAITS not in saved(later)


# Around the call


SUB_AGENT = f"""
helper = sa.Agent(ScriptedModel([ToolCall("k", "run_python", {{"code": {COMPUTES!r}}}), "No."]),
                  name="helper", description="Helps.",
                  middleware=[NotebookTools()], interrupt_on={{"run_python": False}})
task = ToolCall("t", "task", {{"instructions": "Go.", "subagent_type": "helper"}})
s = sa.Session(sa.Agent(ScriptedModel([task, "Never."]), subagents=[helper]))
%agent use s
"""
COMPUTING = f"""
def computing():
    return sa.Agent(
        ScriptedModel([ToolCall("k", "run_python", {{"code": {COMPUTES!r}}}), "No."]),
        middleware=[NotebookTools()], interrupt_on={{"run_python": False}})
"""
ASKED = """
start(ToolCall("a", "ask", {}), "Never.", tools=[ask])
"""
INNER_RUNS = f"""{COMPUTING}
@sa.tool
def ask() -> list[str]:
    return [computing().run(text).text for text in ("Go.", "Go on.")]
{ASKED}"""
MAP = f"""{COMPUTING}
@sa.tool
def ask() -> str:
    return str(computing().map(["Go.", "Go on."], progress=False))
{ASKED}"""
MAP_AFTER_A_RUN = f"""{COMPUTING}
@sa.tool
def ask() -> str:
    computing().run("Go.")
    return str(computing().map(["Go.", "Go on."], progress=False))
{ASKED}"""
# One of the two has the main thread, and the other waits for it.
BESIDE_OTHERS = (
    INNER_RUNS
    + f"""
beside = [ToolCall("a", "ask", {{}}), ToolCall("k", "run_python", {{"code": {COMPUTES!r}}})]
start(beside, "Never.", tools=[ask])
s.replace(agent=s.agent.with_(middleware=[NotebookTools()], interrupt_on={{"run_python": False}}))
"""
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("setup", "calls"),
    [(SUB_AGENT, 1), (INNER_RUNS, 1), (BESIDE_OTHERS, 2), (MAP, 1), (MAP_AFTER_A_RUN, 1)],
    ids=[
        "a sub-agent",
        "runs in a tool",
        "runs in a tool beside another call",
        "a map in a tool",
        "a map after a run in a tool",
    ],
)
def test_who_stops_a_run_ends_what_works_for_it_and_who_interrupts_that_ends_the_run(
    kernel: Kernel, setup: str, calls: int, way: str
) -> None:
    kernel.ok(setup)
    ended = stopped(kernel, AGENT_CELL, way)
    assert ended.error == "KeyboardInterrupt"
    assert kernel.ok("ended()").text == f"1 cancelled{' cancelled' * calls}\n"


BOTH = f"""
python({COMPUTES!r})
first = s
python({COMPUTES!r})
"""


def test_an_interrupt_ends_all_runs_that_a_cell_awaits(kernel: Kernel) -> None:
    """Of two that want the main thread, the second one would begin as the first one ends."""
    kernel.ok(BOTH)
    both = "await asyncio.gather(first.send('Go.'), s.send('Go.'))"
    ended = stopped(kernel, both, "the kernel's interrupt")
    assert ended.error == "CancelledError"
    assert kernel.ok("print(first.status, s.status)").text == "cancelled cancelled\n"


def test_a_cell_that_catches_its_cancellation_hears_of_it_once(kernel: Kernel) -> None:
    kernel.ok(f"python({COMPUTES!r})")
    ended = stopped(
        kernel,
        "try:\n    await s.send('Go.')\nexcept asyncio.CancelledError:\n    print('caught')\n"
        "for _ in range(20):\n    await asyncio.sleep(0.01)\nprint('went on')",
        "the kernel's interrupt",
    )
    assert not ended.error
    assert ended.text == "caught\nwent on\n"


@pytest.mark.parametrize("way", WAYS)
def test_what_was_written_meanwhile_waits_when_the_run_is_stopped(kernel: Kernel, way: str) -> None:
    kernel.ok(
        f"python({COMPUTES!r})\n"
        "def also(event):\n    if event.type == 'tool_execution_start':\n        s.send('second')\n"
        "leave = s.subscribe(also)"
    )
    ended = stopped(kernel, AGENT_CELL, way)
    assert ended.error == "KeyboardInterrupt"
    assert kernel.ok("ended()").text == "1 cancelled cancelled\n"
    assert kernel.ok("print(*[each.message.text for each in s.queued])").text == "second\n"


BY_PERSON = ["the kernel's interrupt", "session.stop"]


@pytest.mark.parametrize(
    ("cell", "way"),
    [
        *itertools.product(
            ["await s.send('Go.')", "async for event in s.send('Go.'):\n    pass"], BY_PERSON
        ),
        ("await s.agent.arun('Go.')", "the kernel's interrupt"),
    ],
)
def test_a_cell_that_awaits_a_run_is_red_when_a_person_stops_that(
    kernel: Kernel, cell: str, way: str
) -> None:
    kernel.ok(f"python({COMPUTES!r})")
    ended = stopped(kernel, cell, way)
    assert ended.error == "CancelledError"
    assert kernel.ok("print(len(s.agent.model.requests))").text == "1\n"


@pytest.mark.parametrize("reads", ["for", "async for"])
def test_a_cell_is_red_too_when_it_was_at_an_event_as_its_run_was_stopped(
    kernel: Kernel, reads: str
) -> None:
    kernel.ok("start('Hello! ' * 99, delay=60)")
    body = "if event.type == 'turn_start':\n        s.stop()"
    stopped = kernel.run(f"{reads} event in s.send('Go.'):\n    {body}")
    assert stopped.error == {"for": "KeyboardInterrupt", "async for": "CancelledError"}[reads]
    assert kernel.ok("print(s.status)").text == "cancelled\n"


def test_who_awaits_a_run_that_was_stopped_before_has_its_result(kernel: Kernel) -> None:
    kernel.ok("start('Hello! ' * 99, delay=60)\nrun = s.send('Go.')\nrun.stop()")
    assert kernel.ok("print((await run).status)").text == "cancelled\n"


def test_a_call_that_ends_as_the_cell_is_interrupted_has_its_result_and_nothing_follows(
    kernel: Kernel,
) -> None:
    kernel.ok(
        "import sagents_nb.notebook.cell\n"
        "shutdown, sagents_nb.notebook.cell.SHUTDOWN = sagents_nb.notebook.cell.SHUTDOWN, 3600\n"
        "@sa.tool\ndef hold(ctx: sa.ToolContext) -> str:\n    inside.touch()\n"
        "    while not ctx.cancelled:\n        time.sleep(0.01)\n    return 'held'\n"
        "start(ToolCall('h', 'hold', {}), 'Never.', tools=[hold])"
    )
    ended = stopped(kernel, AGENT_CELL, "the kernel's interrupt")
    kernel.ok("sagents_nb.notebook.cell.SHUTDOWN = shutdown")
    assert ended.error == "KeyboardInterrupt"
    assert kernel.ok("ended()").text == "1 cancelled completed\n"
    assert "held" in saved(ended)


@pytest.mark.parametrize("way", BY_PERSON)
@pytest.mark.parametrize("cell", ["await s.send('Go.')", "async for event in s.send('Go.'): pass"])
def test_so_is_one_whose_run_waits_for_another_thread(kernel: Kernel, cell: str, way: str) -> None:
    kernel.ok(
        "go_on.clear()\n"
        "@sa.tool\ndef hold() -> str:\n    inside.touch()\n    go_on.wait()\n    return 'held'\n"
        "start(ToolCall('h', 'hold', {}), 'Never.', tools=[hold])"
    )
    assert stopped(kernel, cell, way).error == "CancelledError"
    kernel.ok("go_on.set()\nwhile s.status == 'running':\n    time.sleep(0.01)\ngo_on.clear()")
    assert kernel.ok("ended()").text == "1 cancelled cancelled\n"


def test_a_cell_that_leaves_the_events_of_a_run_stops_nothing(kernel: Kernel) -> None:
    kernel.ok("start('Said.')\nasync for event in (run := s.send('Go.')):\n    break")
    assert kernel.ok("print((await run).text)").text == "Said.\n"
