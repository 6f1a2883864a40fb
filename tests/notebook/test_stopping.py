"""Stopping a run in a real kernel: what its calls say, and what the cell has saved of them."""

from __future__ import annotations

import pytest

from tests.notebook.kernel import Cell, Kernel
from tests.notebook.test_kernel_cells import SETUP
from tests.notebook.test_kernel_tools import TOOLS
from tests.talking import PATIENCE

# Who stops a run waits for what it says, however slow the machine is.
HELPERS = f"""
import sagents_nb.loop.invoke, sagents_nb.loop.tool_calls, sagents_nb.runtime.futures
sagents_nb.loop.invoke.LAST_WORDS = {PATIENCE}
sagents_nb.loop.tool_calls.GRACE = {PATIENCE}
sagents_nb.runtime.futures.ENDING = {PATIENCE}
inside, asked = pathlib.Path("inside"), pathlib.Path("asked")

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
SAID_SO = "The code was stopped before its end."
WAITS = "waits for a decision"
WAYS = {"the kernel's interrupt": "", "session.cancel": "s.cancel", "session.stop": "s.stop"}
AGENT_CELL = "%%agent\nGo."


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP + TOOLS + HELPERS)


def stopped(kernel: Kernel, cell: str, way: str, once: str) -> Cell:
    """Run that cell, and stop it once that file is there."""
    kernel.ok(f"{once}.unlink(missing_ok=True)")
    if stop := WAYS[way]:
        kernel.ok(f"once_there({once}, {stop})")
    id = kernel.start(cell, front_end=True)
    if not stop:
        kernel.wait_for(once)
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
    ended = stopped(kernel, cell, way, "inside")
    left_alone = way == "session.cancel" and cell != AGENT_CELL  # who waits for the result has it
    assert ended.error == ("" if left_alone else "KeyboardInterrupt")
    assert kernel.ok("ended()").text == f"1 cancelled {status}\n"
    assert kernel.ok("told()").text == told
    if cell == AGENT_CELL:
        assert "so far" in saved(ended)


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
    ended = stopped(kernel, cell, way, "asked")
    assert ended.error == "KeyboardInterrupt"
    assert kernel.ok("ended()").text == "1 cancelled cancelled\n"
    assert "was cancelled" in saved(ended)
    assert WAITS not in saved(ended)


def test_what_a_cell_left_waiting_is_saved_as_cancelled_once_it_is(kernel: Kernel) -> None:
    kernel.ok("start(write(), 'Never.')")
    left = kernel.ok("%%agent --no-wait\nGo.", front_end=True)
    assert WAITS in saved(left)
    cancelled = kernel.ok("s.cancel()\nawait asyncio.sleep(0)", front_end=True)
    assert "was cancelled" in saved(cancelled)
