"""Histories of tool calls, whole and broken, and a context for hooks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from sagents_nb import (
    Message,
    Middleware,
    RunContext,
    ScriptedModel,
    State,
    Summarization,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from sagents_nb.events import Emitter
from sagents_nb.middleware.chain import call_hook
from tests.talking import run


def context(heard: list[Any] | None = None, model: Any = None, **options: Any) -> RunContext:
    """A context whose events go into ``heard`` and whose agent has that model."""
    sink = (lambda event: None) if heard is None else heard.append
    emitter = Emitter(sink, session_id="s1", run_id="r1")
    return RunContext(emitter=emitter, agent=SimpleNamespace(model=model, agent_id="a"), **options)


def before_model(middleware: Middleware, state: State, ctx: RunContext) -> Any:
    """What the hook returns, as a run calls it."""
    return run(call_hook(middleware, "before_model", middleware.before_model, state, ctx))


def user(text: str = "and now?") -> Message:
    return Message.user(text)


def said(text: str = "well") -> Message:
    return Message.assistant(text)


def calling(*ids: str, text: str = "") -> Message:
    return Message.assistant(text, tool_calls=[ToolCall(id, "look", {"at": id}) for id in ids])


def answered(*ids: str) -> Message:
    return Message.tool(ToolResult(id, "look", f"saw {id}") for id in ids)


IDS = ["a", "b", "c", "d"]  # few, so that they collide

_texts = st.sampled_from(["", "word", "two words", "a long text " * 20]).map(TextPart)
_calls = st.sampled_from(IDS).map(lambda id: ToolCall(id, "look", {"at": id}))
_results = st.sampled_from(IDS).map(lambda id: ToolResult(id, "look", "seen"))
_thoughts = st.just(ThinkingPart("hm", "signature", "anthropic"))

any_messages = st.builds(
    lambda role, parts: Message(role, tuple(parts)),
    st.sampled_from(["user", "assistant", "tool", "system", "note"]),
    st.lists(_texts | _calls | _results | _thoughts, max_size=4),
)
# Of the right kind, in the wrong place: nearer to what really happens.
likely_messages = st.one_of(
    st.builds(user),
    st.builds(said),
    st.lists(st.sampled_from(IDS), min_size=1, max_size=3).map(lambda ids: calling(*ids)),
    st.lists(st.sampled_from(IDS), min_size=1, max_size=3).map(lambda ids: answered(*ids)),
    st.just(Message("note", (TextPart("for the transcript only"),))),
    st.just(Message.system("Be brief.")),
)
broken_histories = st.lists(likely_messages, max_size=14) | st.lists(any_messages, max_size=10)


@st.composite
def whole_histories(draw: st.DrawFn) -> list[Message]:
    """What a loop makes: each call has its result in the next message; ids may come again."""
    messages: list[Message] = []
    for kind in draw(st.lists(st.sampled_from(["user", "said", "work", "note", "system"]))):
        if kind == "work":
            ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True))
            thought = draw(st.lists(_thoughts, max_size=1))
            call = calling(*ids)
            messages += [Message("assistant", (*thought, *call.parts)), answered(*ids)]
        else:
            made = {
                "user": user(),
                "said": said(),
                "note": Message("note", (TextPart("x"),)),
                "system": Message.system("Be brief."),
            }
            messages.append(made[kind])
    return messages


# Summarising one

TALK = [user("one"), said("first"), user("two"), said("second"), user("three")]


def one(message: Message) -> int:
    return 1


def summarise(
    messages: list[Message], *turns: Any, heard: list[Any] | None = None, **options: Any
) -> State | None:
    """What the hook makes of a history that is long enough."""
    options = {"max_tokens": 1, "keep": 2, "token_counter": one, **options}
    ctx = context(heard, ScriptedModel(turns or ["what was said"]))
    return before_model(Summarization(**options), State(messages=messages), ctx)
