from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook.kernel import Kernel

pytest.importorskip("pandas")

MODEL = """
import asyncio, time
import sagents_nb as sa

class Slow(sa.ChatModel):
    name = "slow"
    delay, asked, cancelled = 0.01, 0, 0

    async def stream(self, request):
        Slow.asked += 1
        if Slow.asked == 20:
            open("all-asked", "w").close()
        try:
            await asyncio.sleep(0.01 if Slow.asked <= 10 else Slow.delay)
        except asyncio.CancelledError:
            Slow.cancelled += 1
            raise
        yield sa.Message.assistant(request.messages[-1].text.upper())

agent = sa.Agent(Slow(), replace_default_middleware=True)
rows = [f"q{n}" for n in range(20)]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernel")


@pytest.fixture(scope="module")
def kernel(folder: Path) -> Iterator[Kernel]:
    kernel = Kernel(folder)
    kernel.ok(MODEL)
    yield kernel
    kernel.stop()


@pytest.mark.parametrize("code", ["agent.map(rows)", "await agent.amap(rows)"])
def test_a_cell_that_is_stopped_ends_and_runs_the_rest_later(kernel: Kernel, code: str) -> None:
    kernel.ok("Slow.delay, Slow.asked, Slow.cancelled = 3600, 0, 0")
    cell = kernel.start(f"frame = {code}")
    kernel.wait_for("all-asked")  # ten are done by then, and ten hang
    kernel.manager.interrupt_kernel()
    ended = kernel.finish(cell)
    assert ended.error in ("KeyboardInterrupt", "CancelledError")
    assert ended.reply["traceback"] == [  # without how we wait
        f"{ended.error}: 10 of 20 rows are done and kept in this process: run it again, and only "
        "the others run."
    ]
    kernel.ok("assert Slow.cancelled == 10, Slow.cancelled")
    kernel.ok("Slow.delay, Slow.asked = 0.01, 0")
    kernel.ok(f"frame = {code}; assert list(frame.text) == [r.upper() for r in rows]")
    kernel.ok("assert (Slow.asked, frame.kept.sum()) == (10, 10), (Slow.asked, frame.kept)")


def test_the_bar_of_a_cell_is_a_widget_whose_text_stays(kernel: Kernel) -> None:
    cell = kernel.ok("_ = agent.map(rows)")
    bar = [data for data in cell.shown if "application/vnd.jupyter.widget-view+json" in data]
    assert len(bar) == 1
    assert not cell.text


def test_a_map_beside_a_loop_that_turns_needs_no_await(kernel: Kernel, tmp_path: Path) -> None:
    kernel.ok("assert asyncio.get_running_loop().is_running()")
    path = str(tmp_path / "rows.jsonl")
    kernel.ok(f"first = agent.map(rows, cache={path!r}); Slow.asked = 0")
    kernel.ok(f"again = agent.map(rows, cache={path!r}); assert Slow.asked == 0")
    kernel.ok("assert again.kept.all() and list(again.text) == list(first.text)")
