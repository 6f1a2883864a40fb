"""The conversation as text: a few lines for the line magics, and what a notebook's file keeps.

A notebook is handed on, and what shows it trusts it. So all that is put out as Markdown or HTML is
made here: without the secrets of the notebook's variables, and with nothing in it that is live.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from IPython import get_ipython

from ..frames.columns import MEASURED, pandas_module
from ..interrupts import Interrupt
from ..middleware.conversation_title import TITLE
from ..models.demo import DemoModel
from ..panel.publisher import without_tool
from ..redaction import Secrets, masked, secrets_of_names
from ..session import Session, sessions
from ..text import visible
from ..transcript import (
    ESTIMATED,
    Block,
    Transcript,
    folded,
    inert,
    one_line,
    title_of,
    usage_line,
    with_folds,
)
from .capture import masked_data

MimeBundle = tuple[dict[str, Any], dict[str, Any]]  # data and metadata, by MIME type

TODO_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}


class Text(str):
    """Text that shows as it is, without quotes, as a cell's value."""

    def __repr__(self) -> str:
        return kept_text(str(self))


def status_text(session: Session, beside_panel: bool = False) -> str:
    """One line, what runs without being asked about any more, and what waits or is left to do.

    ``beside_panel`` if that stands above, with the buttons to answer with.
    """
    line = f"{session.id}: {status_line(session)}"
    if allowed := session.always_allowed:
        line += f"\nAlways allowed here: {', '.join(allowed)}; %agent ask asks again."
    if session.interrupt is not None:
        asked = "It waits for your answer above." if beside_panel else interrupt_text(session)
        return f"{line}\n{asked}"
    if session.status == "paused" and not beside_panel:
        return f"{line}\n%agent continue goes on."
    return f"{line}\n{session.error}" if session.error else line


def status_line(session: Session) -> str:
    """What it is doing, without its name."""
    count = len(session.messages)
    model = session.agent.model.name
    return f"{session.status}, {count} message{'' if count == 1 else 's'}, model {model}"


def list_text(current: Session | None, store: Any, whole: bool = False) -> str:
    """A line for each conversation, live or kept; an asterisk marks the current one.

    Of those that are kept these are the latest, unless the ``whole`` is to be listed.
    """
    live = {id: sessions.get(id) for id in sessions.list()}
    if current is not None:
        live.setdefault(current.id, current)
    every = [] if store is None else store.list_conversations(_EVERY)
    shown = every if whole else every[:_LISTED]
    kept = {c.id: c for c in shown}
    opened = set() if store is None else store.open_conversations()
    lines, clean = {}, cleaning()
    for id, session in live.items():
        title = getattr(kept.get(id), "title", None) or session.state.get_metadata(TITLE)
        lines[id] = status_line(session), title or title_of(session.messages, clean)
    for id, conversation in kept.items():
        if id not in lines:
            when = conversation.updated_at.astimezone()  # the clock on the reader's wall
            state = store.history(id).state
            title = conversation.title or title_of(state.messages, clean)
            where = "open elsewhere" if id in opened else "kept"
            waits = ", waits for an answer" if state.interrupt is not None else ""
            lines[id] = f"{where}{waits}, last used {when:%Y-%m-%d %H:%M}", title
    if not lines:
        return "There is no conversation."
    marked = current.id if current is not None else None
    listed = [
        f"{'*' if id == marked else ' '} {id}: {line}{f', “{title}”' if title else ''}"
        for id, (line, title) in lines.items()
    ]
    if left := len(every) - len(shown):
        listed.append(f"  and {left:,} older; %agent list all shows them.")
    return "\n".join(listed)


_LISTED = 50
"""Kept conversations that are listed if not all are asked for."""
_EVERY = 1_000_000


def interrupt_text(session: Session) -> str:
    """What waits for a decision, with the exact arguments."""
    interrupt = session.interrupt
    if interrupt is None:
        return "Nothing waits for a decision."
    requests = interrupt.action_requests
    lines, gone = [_question(interrupt)], without_tool(session)
    for request in requests:
        lines.append(f"  {one_line(request.tool_call_id)}  {one_line(request.tool_name)}")
        for name, value in request.arguments.items():
            lines += _argument(name, value)
        for name, value in request.defaults.items():
            lines += _argument(name, value, " (default)")
        if request.tool_call_id in gone:
            name = one_line(request.tool_name)
            otherwise = "do not run it again" if interrupt.type == "in_doubt" else "reject"
            lines.append(
                f"      The agent has no tool {name} by now, so the call would fail. Define it and "
                f"add it with %agent tools add {name}, or {otherwise}."
            )
    if any("approve" not in request.allowed_decisions for request in requests):
        # No magic answers in words; the panel has a button for each answer.
        shown = (
            f"sa.sessions.get({session.id!r})" if session.id in sessions.list() else "The session"
        )
        lines.append(f"{shown} as the last line of a cell shows buttons to answer with.")
    return "\n".join(lines)


def _argument(name: str, value: Any, note: str = "") -> list[str]:
    """An argument in lines: a text of several, such as code, has the lines that it has."""
    if not isinstance(value, str) or "\n" not in value:
        return [f"      {one_line(name)} = {value!r}{note}"]
    # What is no printable character is written out, and no line of it passes for one of ours.
    return [
        f"      {one_line(name)} ={note}",
        *(f"        | {visible(v)}" for v in value.split("\n")),
    ]


def under_way_text(session: Session) -> str:
    """What stands below a cell until its run has ended, and stays where a kernel ends before."""
    text = "*The agent was at work when this was saved.*"
    if session.options.store is None:
        return text
    load = f"`%agent load {one_line(session.id)}`"
    return f"{text} After `%load_ext sagents_nb`, {load} goes on with what was kept."


def _question(interrupt: Interrupt) -> str:
    count = len(interrupt.action_requests)
    if interrupt.type == "in_doubt":  # its message says what code answers
        names = ", ".join(request.tool_name for request in interrupt.action_requests)
        begun = f"The process ended when this had begun: {names}."
        return f"{begun} Look whether it ran: what runs again may happen twice."
    if interrupt.message is not None:
        return interrupt.message
    return "1 call waits for a decision:" if count == 1 else f"{count} calls wait for a decision:"


def superseded_text(interrupt: Interrupt) -> str:
    """What becomes of calls that wait where a message comes instead of an answer."""
    names = dict.fromkeys(one_line(request.tool_name) for request in interrupt.action_requests)
    waited = ", ".join(names) or "What the agent asked"
    return f"{waited} waited for an answer, and is cancelled: this message came instead."


def todos_text(session: Session) -> str:
    """The to-do list."""
    lines = [f"{TODO_MARKS[todo.status]} {one_line(todo.content)}" for todo in session.todos]
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
    """Tokens and, where it is known, money; where the demo answers, what its own stand for."""
    line = usage_line(session.usage)
    if not isinstance(session.agent.model, DemoModel):
        return line
    return f"{line}. {ESTIMATED}"


def markdown_output(text: str, plain: str = "") -> MimeBundle:
    """``text`` as Markdown, long results folded; where that is not shown, ``plain`` or the same.

    A transcript shows its images: below a panel there is nothing else of them without a kernel.
    """
    transcript = text if isinstance(text, Transcript) else Transcript([Block(text)])
    shown = transcript.with_images(_safe_markdown)
    return {"text/plain": _without_keys(plain or text), "text/markdown": shown}, {}


def _safe_markdown(text: str) -> str:
    return with_folds(inert(_without_keys(text)))


def folded_output(summary: str, text: str) -> MimeBundle:
    """``text`` folded under its summary."""
    summary = _without_keys(summary)
    return {"text/plain": summary, "text/html": folded(summary, _without_keys(text))}, {}


def kept_text(text: str) -> str:
    """``text`` as it may be put out, and so be saved: without secrets, and all of it in sight."""
    return visible(_without_keys(text))


def kept_frame(frame: Any) -> Any:
    """A frame of a conversation as it may be put out: its texts without secrets."""
    secrets = _secrets()
    kept = frame.copy(deep=False)
    for place, column in enumerate(frame.columns):
        values = frame[column]
        if values.dtype.kind == "O":
            told = [masked_data(value, secrets) for value in values]
            kept.isetitem(place, type(values)(told, index=values.index, dtype=values.dtype))
    return kept


def frame_html(frame: Any) -> str | None:
    """A frame of ours as HTML in which "$" is a dollar; one of the user's own as pandas has it.

    Pages set what stands between two of them as a formula.
    """
    if MEASURED not in frame.attrs:
        return cast(str | None, frame._repr_html_())
    with pandas_module().option_context("display.html.use_mathjax", False):
        return cast(str | None, frame._repr_html_())


def cleaning() -> Callable[[str], str]:
    """What takes the secrets out of texts that are about to be cut: those that there are now."""
    return partial(masked, secrets=_secrets())


def _without_keys(text: str) -> str:
    return masked(text, _secrets())


def _secrets() -> Secrets:
    shell = get_ipython()
    return secrets_of_names({} if shell is None else shell.user_ns)
