"""The conversation as a few lines of text, for the line magics."""

from __future__ import annotations

from ..session import Session
from ..transcript import visible

_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}


class Text(str):
    """Text that shows as it is, without quotes, as a cell's value."""

    def __repr__(self) -> str:
        return visible(str(self))


def status_text(session: Session) -> str:
    """One line, and what waits."""
    model = session.agent.model.name
    line = f"{session.id}: {session.status}, {len(session.messages)} messages, model {model}"
    if session.interrupt is not None:
        return f"{line}\n{interrupt_text(session)}"
    return f"{line}\n{session.error}" if session.error else line


def interrupt_text(session: Session) -> str:
    """What waits for a decision, with the exact arguments."""
    interrupt = session.interrupt
    if interrupt is None:
        return "Nothing waits for a decision."
    lines = [f"{len(interrupt.action_requests)} call(s) wait for a decision:"]
    for request in interrupt.action_requests:
        lines.append(f"  {request.tool_call_id}  {request.tool_name}")
        lines += [f"      {name} = {value!r}" for name, value in request.arguments.items()]
    return "\n".join(lines)


def todos_text(session: Session) -> str:
    """The to-do list."""
    lines = [f"{_MARKS[todo.status]} {todo.content}" for todo in session.todos]
    return "\n".join(lines) or "The to-do list is empty."


def files_text(session: Session) -> str:
    """The files with their sizes."""
    lines = [
        f"{entry.size:>9,}  {entry.path}"
        for entry in session.files.entries()
        if not entry.is_directory
    ]
    return "\n".join(lines) or "There are no files."


def usage_text(session: Session) -> str:
    """Tokens and, where it is known, money."""
    usage = session.usage
    line = f"{usage.total_tokens:,} tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out"
    if usage.cache_read_tokens or usage.cache_write_tokens:
        line += f", {usage.cache_read_tokens:,} read from the cache"
        line += f", {usage.cache_write_tokens:,} written to it"
    return line if usage.cost_usd is None else f"{line}; {usage.cost_usd:.4f} USD"
