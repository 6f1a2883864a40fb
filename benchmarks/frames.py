"""How long 100,000 messages and 100,000 tool calls take to become frames, and at what memory.

Each frame is made in a process of its own: its memory is how much the process grew at most
while it was made, beside what the frame itself takes.

Usage: python benchmarks/frames.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

COUNT = 100_000
SECONDS, SHARE = 2.0, 3.0


def conversation() -> Any:
    """100,000 messages, half of them with two calls or their results, and their events."""
    import sagents_nb as sa
    from sagents_nb import events
    from sagents_nb.frames import Conversation

    messages: list[Any] = []
    told: list[Any] = []
    for n in range(0, COUNT, 2):
        calls = [sa.ToolCall(f"c{n + i}", "search", {"query": f"item {n + i}"}) for i in (0, 1)]
        usage = sa.Usage(1000 + n, 50, cost_usd=0.001)
        results = [sa.ToolResult(c.id, "search", f"what was found for {c.id}, " * 4) for c in calls]
        said = sa.Message.assistant(f"I look for {n} now, and then go on. " * 3, calls, usage=usage)
        messages += [said, sa.Message.tool(results)]
        told.append(events.MessageEnd(seq=n, ts=1e9 + n, run_id="run-1", message=said))
        told += [
            events.ToolExecutionEnd(
                seq=n + i,
                ts=1e9 + n,
                run_id="run-1",
                tool_call_id=call.id,
                tool_name="search",
                result=result,
                status="completed",
                duration=0.1,
            )
            for i, (call, result) in enumerate(zip(calls, results, strict=True))
        ]
    return Conversation("c-1", sa.State(messages=messages), told)


def resident(field: str) -> int:
    """What /proc/self/status says in bytes: VmRSS, or VmHWM, the most there was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def measure(kind: str) -> None:
    """Make one frame and print the figures as JSON."""
    import gc

    import pandas  # noqa: F401  # imported before the clock starts
    import pyarrow  # noqa: F401

    from sagents_nb.frames import Conversation, frame_of

    given = conversation()
    small = Conversation("c-1", type(given.state)(messages=given.state.messages[:200]), [])
    frame_of(kind, [small])  # what is loaded with the first one
    gc.collect()
    before = resident("VmRSS")
    grown = 0
    Path("/proc/self/clear_refs").write_text("5")  # the most there was is what there is
    times = []
    for _ in range(3):
        start = time.perf_counter()
        frame = frame_of(kind, [given])
        times.append(time.perf_counter() - start)
        grown = resident("VmHWM") - before if len(times) == 1 else grown
    seconds = min(times)
    size = int(frame.memory_usage(deep=True).sum())
    print(json.dumps({"rows": len(frame), "seconds": seconds, "grown": grown, "size": size}))


def main() -> None:
    """Measure and print."""
    seconds = 0.0
    worst = 0.0
    for kind in ("messages", "tool_calls"):
        out = subprocess.check_output([sys.executable, __file__, kind], text=True)
        found = json.loads(out)
        seconds += found["seconds"]
        worst = max(worst, found["grown"] / found["size"])
        print(
            f"{kind:12}{found['rows']:9,} rows{found['seconds']:8.3f} s"
            f"{found['size'] / 1e6:9.1f} MB, {found['grown'] / 1e6:.1f} MB while it was made"
        )
    print(
        f"{'met' if seconds <= SECONDS else 'MISSED':>6}  ≤ {SECONDS:g} s for both: {seconds:.3f}"
    )
    print(f"{'met' if worst <= SHARE else 'MISSED':>6}  ≤ {SHARE:g} × the frame: {worst:.2f}")


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
