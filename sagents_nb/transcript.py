"""A conversation as text that is readable everywhere: plain, Markdown and folded HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .messages import CUT_SHORT, Message, ToolCall, ToolResult

# A terminal or a log must never act on what a model or a tool wrote: C0 and C1 controls but
# tab and newline, and the characters that reorder or hide text (OWASP LLM10:2026).
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SHOWN = 2000


def visible(text: str) -> str:
    r"""``text`` with control and invisible characters written out.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _HIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)


def run_summary(status: str, messages: Sequence[Message]) -> str:
    """One stable line: no time, no ids."""
    turns = sum(1 for m in messages if m.role == "assistant")
    calls = sum(len(m.tool_calls) for m in messages)
    parts = [f"{turns} turn{'' if turns == 1 else 's'}"]
    if calls:
        parts.append(f"{calls} tool call{'' if calls == 1 else 's'}")
    answers = [m for m in messages if m.role == "assistant"]
    if status == "completed" and answers and answers[-1].stop_reason in CUT_SHORT:
        status = f"completed, cut ({answers[-1].stop_reason})"
    return f"Agent run {status}: {', '.join(parts)}"


def markdown(messages: Iterable[Message]) -> str:
    """The messages as Markdown: what people said, tool calls as one line with their results."""
    blocks: list[str] = []
    messages = list(messages)
    results = {r.tool_call_id: r for m in messages for r in m.tool_results}
    for message in messages:
        text = visible(message.shown.text).strip()
        if message.role == "user":
            blocks.append("\n".join(f"> {line}" for line in text.splitlines()))
        elif message.role == "assistant":
            if text:
                blocks.append(text)
            blocks += [_call_markdown(call, results.get(call.id)) for call in message.tool_calls]
            if note := message.error or CUT_SHORT.get(message.stop_reason or ""):
                blocks.append(f"**{visible(note)}**")
    return "\n\n".join(block for block in blocks if block)


def _call_markdown(call: ToolCall, result: ToolResult | None) -> str:
    name = visible(call.name).replace("`", "'")
    line = f"- `{name}({_arguments(call)})`"
    if result is None:
        return f"{line} waits for a decision"
    text = visible(result.text)
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall("`+", text)), default=0))
    not_run = result.metadata.get("not_run")  # as the loop marks what it did not run
    word = f"was {not_run}" if not_run else "failed" if result.is_error else "gave"
    block = "\n".join([f"{fence}text", _short(text), fence])
    return f"{line} {word}\n\n{_indent(block)}"


def _arguments(call: ToolCall) -> str:
    shown = ", ".join(f"{name}={_value(value)}" for name, value in call.arguments.items())
    return visible(shown).replace("`", "'")


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{len(value)} item{'' if len(value) == 1 else 's'}]"
    if isinstance(value, dict):
        return "{...}" if value else "{}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}...'"


def _short(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}\n... {len(text) - _SHOWN:,} more characters"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def folded(summary: str, messages: Iterable[Message]) -> str:
    """HTML: the summary line with the transcript folded under it. Everything is escaped text."""
    import html

    body = html.escape(markdown(messages))
    return (
        f"<details><summary>{html.escape(summary)}</summary>"
        f'<pre style="white-space: pre-wrap">{body}</pre></details>'
    )
