"""Our models and the SDKs' typed calls, side by side on the loopback, in one run.

Prints milliseconds per request by length of the history, and microseconds per streamed delta:
once with each event in an HTTP chunk of its own, as providers send them, once all in one. The
server shares the process, as in the tests, so both sides pay for it alike. "typed" is what the
SDKs' READMEs show first: `client.messages.create(stream=True)` and its like, given plain dicts.

Then what making the body of a request takes of us alone, when all but the newest messages were in
the one before, beside a bare join of the same pieces: their ratio at 10,000 messages is to be 2 at
most. "as a list" is a history that a hook gave, which is looked through message by message.

Usage: python benchmarks/providers.py [--quick]
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from sagents_nb.frozenlist import FrozenList
from sagents_nb.messages import Message, ToolCall, ToolResult
from sagents_nb.models import ModelRequest
from sagents_nb.models.providers.arguments import ParameterNames
from sagents_nb.models.providers.clients import close_clients
from sagents_nb.models.providers.history import Items, joined
from sagents_nb.models.providers.streaming import ProviderModel
from sagents_nb.tools import ToolSpec
from tests.models.loopback import KEY, Answer, Provider, model_for

SIZES = (10, 100, 1_000, 5_000)
BODY_GOAL = 2
BODIES = (10, 1_000, 10_000)
DELTAS = 2_000
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
TOOLS = tuple(ToolSpec(f"tool_{n}", "Does something useful.", SCHEMA) for n in range(10))


def history(size: int) -> list[Message]:
    messages: list[Message] = [Message.user("Hello")]
    for turn in range(size // 4 + 1):
        id = f"call_{turn}"
        messages += [
            Message.user(f"Question {turn}: what does the file of that number hold? " * 2),
            Message.assistant("Let me look. " * 4, [ToolCall(id, "tool_1", {"path": "a"})]),
            Message.tool([ToolResult(id, "tool_1", "contents of the file " * 10)]),
            Message.assistant("It holds numbers and a few words. " * 5),
        ]
    return messages[:size]


def sse(*events: dict[str, Any]) -> list[bytes]:
    lines = []
    for event in events:
        head = f"event: {event['type']}\n" if "type" in event else ""
        lines.append(f"{head}data: {json.dumps(event)}\n\n".encode())
    return lines


def answer(name: str, deltas: int) -> list[bytes]:
    """The events of an answer of that many deltas."""
    if name == "anthropic":
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
        head |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        text = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "word "}
        return [
            *sse({"type": "message_start", "message": head}),
            *sse({"type": "content_block_start", "index": 0, "content_block": text}),
            *sse({"type": "content_block_delta", "index": 0, "delta": delta}) * deltas,
            *sse({"type": "content_block_stop", "index": 0}),
            *sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
            *sse({"type": "message_stop"}),
        ]
    if name == "openai":
        item = {"type": "message", "id": "m", "role": "assistant", "status": "in_progress"}
        item["content"] = []  # type: ignore[assignment]
        response = {"id": "r", "object": "response", "created_at": 1, "status": "completed"}
        response |= {"model": "x", "output": [], "tools": [], "tool_choice": "auto"}
        response["parallel_tool_calls"] = True
        where = {"item_id": "m", "output_index": 0, "content_index": 0, "sequence_number": 1}
        delta = {"type": "response.output_text.delta", **where, "logprobs": [], "delta": "word "}
        return [
            *sse({"type": "response.output_item.added", "output_index": 0, "item": item}),
            *sse(delta) * deltas,
            *sse({"type": "response.completed", "response": response, "sequence_number": 2}),
        ]
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x"}

    def choice(finish: str | None, **delta: str) -> dict[str, Any]:
        return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    return [*sse(choice(None, content="word ")) * deltas, *sse(choice("stop")), b"data: [DONE]\n\n"]


Call = Callable[[ModelRequest], Awaitable[int]]


def ours(model: ProviderModel) -> Call:
    async def call(request: ModelRequest) -> int:
        count = 0
        async for _ in model.stream(request):
            count += 1
        return count

    return call


def typed(name: str, model: ProviderModel, url: str) -> Call:
    """The SDK's own way; the conversion to plain dicts is ours and counted, as it must be."""
    import anthropic
    import openai

    create: Any
    if name == "anthropic":
        create = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0).messages.create
    else:
        client = openai.AsyncOpenAI(api_key=KEY, base_url=url + "/v1", max_retries=0)
        create = client.responses.create if name == "openai" else client.chat.completions.create

    async def call(request: ModelRequest) -> int:
        count = 0
        async for _ in await create(**model.body(request, {})):
            count += 1
        return count

    return call


async def best(call: Call, request: ModelRequest, rounds: int) -> float:
    """The shortest of some rounds, in seconds, after one to warm up."""
    await call(request)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        await call(request)
        times.append(time.perf_counter() - start)
        if sum(times) > 2:  # seconds; what is so slow needs no more rounds
            break
    return min(times)


def shortest(*works: Callable[[], Any], rounds: int) -> list[float]:
    """The shortest of some rounds of each, in milliseconds, taken in turns after one to warm up."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds + 1):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return [min(taken[1:]) * 1e3 for taken in times]


def bodies(model: ProviderModel, size: int, rounds: int) -> tuple[float, float, float, float]:
    """Milliseconds for the body at its first time, in a later turn, as a list; of a bare join."""

    def body(messages: Sequence[Message]) -> dict[str, Any]:
        request = ModelRequest(messages, "Be brief.", TOOLS)
        names = ParameterNames(TOOLS if model.plain_parameters else ())
        return model.encoded_body(request, {}, names)

    messages = FrozenList(history(size - rounds - 1))
    start = time.perf_counter()
    made = joined(body(messages))
    first = (time.perf_counter() - start) * 1e3
    turns = iter([*(messages := messages.append(Message.user("next")) for _ in range(rounds + 1))])
    listed = list(messages)
    (ready,) = (value.pieces() for value in body(listed).values() if isinstance(value, Items))
    later, as_list, bare = shortest(
        lambda: joined(body(next(turns))),
        lambda: joined(body(listed)),
        lambda: b",".join(ready),
        rounds=rounds,
    )
    assert made
    return first, later, as_list, bare


async def main(quick: bool) -> None:
    rounds = 2 if quick else 7
    sizes = SIZES[:3] if quick else SIZES
    versions = {name: importlib.metadata.version(name) for name in ("anthropic", "openai")}
    print(f"{platform.python_implementation()} {platform.python_version()}, {versions}")
    header = "".join(f"{f'{size:,} messages':>17}" for size in sizes)
    print(f"{'':22}{header}{'delta, apart':>17}{'delta, at once':>17}")
    for name in ("anthropic", "openai", "openai-chat"):
        server = Provider()
        model = model_for(name, server.url)
        for label, call in (("ours", ours(model)), ("typed", typed(name, model, server.url))):
            server.answer = Answer(framing="chunked", pieces=answer(name, 1))
            cells = []
            for size in sizes:
                seconds = await best(call, ModelRequest(history(size), "Be brief.", TOOLS), rounds)
                cells.append(f"{seconds * 1e3:.1f} ms")
            base = await best(call, ModelRequest([Message.user("hi")]), rounds)
            pieces = answer(name, DELTAS)
            for body in (pieces, [b"".join(pieces)]):
                server.answer = Answer(framing="chunked", pieces=body)
                seconds = await best(call, ModelRequest([Message.user("hi")]), rounds)
                cells.append(f"{(seconds - base) / DELTAS * 1e6:.1f} µs")
            print(f"{name:12}{label:10}" + "".join(f"{cell:>17}" for cell in cells), flush=True)
        await close_clients()
        server.close()
    heads = "".join(f"{head:>12}" for head in ("first", "later", "as a list", "bare join", "ratio"))
    print(f"\n{'bodies, ms':22}{heads}")
    for name in ("anthropic", "openai", "openai-chat"):
        for size in BODIES:
            model = model_for(name, "http://127.0.0.1:1")
            first, later, listed, bare = bodies(model, size, 3 if size < 100 else 30)
            row = "".join(f"{cell:>12.3f}" for cell in (first, later, listed, bare))
            print(f"{name:12}{size:>10,}{row}{later / bare:>12.1f}", flush=True)
        verdict = "met" if later <= BODY_GOAL * bare else "MISSED"
        print(
            f"{verdict:>6}  ≤ {BODY_GOAL} × the join of ready pieces, {name}'s body at {size:,} "
            f"messages: {later / bare:.1f}"
        )


if __name__ == "__main__":
    asyncio.run(main("--quick" in sys.argv[1:]))
