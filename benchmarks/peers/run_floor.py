"""The floor: a loop written by hand over dicts, with one callback per event and no library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import _measure
from _measure import CALLS, DELTAS, SLEEP, Call, exchanges, next_step


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def message(kind: str, n: int) -> dict[str, Any]:
    if kind == "user":
        return {"role": "user", "content": f"turn number {n}"}
    if kind == "call":
        call = {"id": f"h{n}", "name": "add", "arguments": f'{{"a": {n}, "b": 1}}'}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "result":
        return {"role": "tool", "tool_call_id": f"h{n}", "content": str(n + 1)}
    return {"role": "assistant", "content": "done"}


class Floor:
    """See `Contestant`."""

    def turns(self, turns: int) -> Call:
        """The loop."""
        return self.grown(turns, 0)

    def grown(self, turns: int, history: int) -> Call:
        """The loop, which is given the whole history each time."""
        prior = [message(*item) for item in exchanges(history)]
        tools = {"add": add}
        events = 0

        def on(event: str, value: Any) -> None:
            nonlocal events
            events += 1

        def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
            step = next_step(messages[-1].get("tool_call_id"))
            if step == turns:
                return {"role": "assistant", "content": "done"}
            call = {"id": f"c{step}", "name": "add", "arguments": f'{{"a": {step}, "b": 1}}'}
            return {"role": "assistant", "content": None, "tool_calls": [call]}

        def call() -> None:
            messages = [*prior, {"role": "user", "content": "go"}]
            while True:
                on("model_start", None)
                reply = model(messages)
                messages.append(reply)
                on("message", reply)
                if "tool_calls" not in reply:
                    break
                for asked in reply["tool_calls"]:
                    on("tool_start", asked)
                    value = tools[asked["name"]](**json.loads(asked["arguments"]))
                    content = json.dumps(value)
                    result = {"role": "tool", "tool_call_id": asked["id"], "content": content}
                    messages.append(result)
                    on("tool_end", result)

        return call

    def deltas(self, heard: Callable[[str], None]) -> Call:
        """One callback each."""

        def call() -> None:
            for _ in range(DELTAS):
                heard("abcd")

        return call

    def together(self) -> Call:
        """Only the waiting."""

        async def call() -> None:
            for _ in range(CALLS):
                await asyncio.sleep(SLEEP)

        return call

    def idle(self) -> Any:
        """Nothing to keep but the list of messages."""
        return [{"role": "system", "content": "Be brief."}]


if __name__ == "__main__":
    _measure.main("floor", Floor())
