"""Sessions in which payloads stand wherever somebody may have written them.

Made in the kernels of the notebooks that ``test_sinks.py`` opens, which see this checkout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import sagents_nb as sa
from sagents_nb.notebook.widget import frozen_bundle
from sagents_nb.text import whole
from tests.export.payloads import ASKING, SCRIPTS

ALL = [*SCRIPTS, *ASKING]
ENDED = "That is all of them."
SPOKEN = 99  # payloads of a conversation: a panel shows 200 messages
_ARGUMENTS = 20  # payloads of one call
_ASKED = 10 * _ARGUMENTS
NUMBER_OF_ANSWERS = -(-len(ALL) // SPOKEN)
NUMBER_OF_WAITING = -(-len(ALL) // _ASKED)
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\5\0\1\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82"
)


T = TypeVar("T")


def batches(things: Sequence[T], size: int) -> Iterator[list[T]]:
    """The things, so many at once at most, and something of each kind in each batch."""
    count = -(-len(things) // size)
    return (list(things[n::count]) for n in range(count))


def session_of(messages: Sequence[sa.Message], *turns: object, **options: object) -> sa.Session:
    """A session that has said this, and whose model goes on with that."""
    agent = sa.Agent(sa.ScriptedModel(turns, chunk=200), **options)
    said = [*messages, sa.Message.assistant(ENDED)]
    return sa.Session(agent, state=sa.State(messages=said))


def answers() -> list[sa.Session]:
    """What a person and a model have said and thought, and errors."""
    return [
        session_of(
            [
                message
                for evil in some
                for message in (
                    sa.Message.user(evil),
                    sa.Message("assistant", (sa.ThinkingPart(evil), sa.TextPart(evil)), error=evil),
                )
            ]
        )
        for some in batches(ALL, SPOKEN)
    ]


def calls() -> list[sa.Session]:
    """Names and arguments of tools, of files that were changed among them, and their results."""
    sessions = []
    for many in batches(ALL, len(ALL) // 3 + 1):
        messages: list[sa.Message] = []
        for number, evil in enumerate(many):
            a, b, c, d = (f"{kind}{number}" for kind in "abcd")
            edit = {"file_path": f"/{evil}", "old_string": evil, "new_string": f"{evil}!"}
            asked = [
                sa.ToolCall(a, evil, {evil: evil, "list": [evil, {evil: evil}]}),
                sa.ToolCall(b, "run_python", {"code": evil}),
                sa.ToolCall(c, "task", {"instructions": evil, "subagent_type": evil}),
                sa.ToolCall(d, "edit_file", edit),
            ]
            fake = sa.ImagePart(url="https://evil.example/image")
            results = [
                sa.ToolResult(a, evil, evil, metadata={"edited_arguments": {"x": evil}}),
                sa.ToolResult(
                    b, "run_python", [sa.TextPart(evil), sa.JsonPart({evil: evil}), fake]
                ),
                sa.ToolResult(c, "task", evil),
                sa.ToolResult(d, "edit_file", evil, is_error=True),
            ]
            if number % 4 == 0:
                messages += [sa.Message.assistant("", []), sa.Message.tool([])]
            messages[-2:] = [
                sa.Message.assistant("", [*messages[-2].tool_calls, *asked]),
                sa.Message.tool([*messages[-1].tool_results, *results]),
            ]
        sessions.append(session_of(messages))
    return sessions


def planned() -> sa.Session:
    """To-dos; and what the session and its model are called."""
    made = session_of([])
    todos = [sa.Todo(evil) for evil in ALL]
    name = "<img src=https://evil.example/id onerror=alert(1)>"
    return sa.Session(made.agent, id=name, state=sa.State(messages=made.messages, todos=todos))


def filed() -> sa.Session:
    """Files of all kinds that viewers know, with payloads in them and as their names."""
    made = session_of([])
    files = made.files
    v4 = {"nbformat": 4, "nbformat_minor": 5}
    for number, some in enumerate(batches(ALL, 60)):
        cells = []
        for evil in map(whole, some):
            data = {"text/html": evil, "image/svg+xml": evil, "text/markdown": evil}
            kept = [data, {"text/plain": evil}, {"image/png": evil}]
            outputs = [{"output_type": "display_data", "data": one, "metadata": {}} for one in kept]
            outputs += [{"output_type": "stream", "name": "stdout", "text": evil}]
            outputs += [
                {"output_type": "error", "ename": evil, "evalue": evil, "traceback": [evil]}
            ]
            code = {"execution_count": 1, "metadata": {}, "outputs": outputs, "source": evil}
            cells += [{"cell_type": "code", **code}]
            cells += [{"cell_type": "markdown", "metadata": {}, "source": evil}]
        about = {"metadata": {"kernelspec": {"language": some[0]}}, "cells": cells}
        files.write(f"/seen/{number}.ipynb", json.dumps(v4 | about))
        rows = "\n".join('"{0}","{0}"'.format(evil.replace('"', '""')) for evil in map(whole, some))
        files.write(f"/seen/{number}.csv", f"a,b\n{rows}\n")
    for number, some in enumerate(batches(ALL, 25)):
        files.write(f"/seen/{number}.md", whole("\n\n".join(some)))
    svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><image href='{}'/></svg>"
    for name in ("x.svg", "x.png", "x.html", "x.md"):
        files.write(f"/seen/<img src=y onerror=alert(1)>{name}", svg.format("https://evil.example"))
    files.write("/seen/real.png", PNG, mime_type='image/png" onload="alert(1)')
    for number, evil in enumerate(map(whole, ALL)):
        plain = "".join(c for c in re.sub(r"[/\\]", "∕", evil) if c.isprintable())
        files.write(f"/names/{plain} {number}.md", evil)
        parts = [part for part in evil.split("/") if part.strip(".")]
        if number % 10 == 0 and "\\" not in evil and evil.isprintable():
            files.write(f"/deep/{number}{'/'.join(parts)}/x", evil)
    return made


def waiting() -> list[sa.Session]:
    """What waits for approval, behind an answer that was streamed; and what was asked."""
    sessions = []
    for number, many in enumerate(batches(ALL, _ASKED)):

        @sa.tool(display_text=many[0])
        def send(texts: list[str], note: str, more: dict[str, str]) -> str:
            "Send."
            return "sent"

        asked = []
        for place, some in enumerate(batches(many, _ARGUMENTS)):
            text = "\n".join(some)
            more = {evil: evil for evil in some}
            asked += [
                sa.ToolCall(f"s{place}", "send", {"texts": some, "note": text, "more": more}),
                sa.ToolCall(f"w{place}", "write_file", {"file_path": "/x.md", "content": text}),
            ]
        streamed = ["\n\n".join(many), *asked]
        if number == 0:
            options = [{"label": evil, "value": evil} for evil in many[:9]]
            ask = {"question": many[0], "response_type": "single_select", "options": options}
            streamed = [sa.ToolCall("q", "ask_user", ask)]
        both = {"send": True, "write_file": True}
        session = session_of(
            [], streamed, tools=[send], interrupt_on=both, middleware=[sa.AskUser()]
        )
        session.send("Go.").result(60)
        sessions.append(session)
    return sessions


def said(evil: str) -> list[sa.Message]:
    """A message and a call with one payload."""
    call = sa.ToolCall("c", evil, {evil: evil})
    result = sa.ToolResult("c", evil, evil)
    return [
        sa.Message.user(evil),
        sa.Message("assistant", (sa.TextPart(evil), call)),
        sa.Message.tool([result]),
        sa.Message("assistant", (sa.TextPart(evil),), error=evil),
    ]


def frozen(evil: str) -> dict[str, Any]:
    """What stands in the place of a panel."""
    return frozen_bundle(session_of(said(evil)))[0]


def results() -> list[sa.RunResult]:
    """Results of runs that have said all payloads."""
    return [session_of([], "\n\n".join(some)).send(some[0]).result(60) for some in batches(ALL, 60)]


def use(shell: Any) -> None:
    """Have %%agent answer with payloads."""
    turn = ["\n\n".join(ASKING[-60:]), sa.ToolCall("t", "ls", {"pattern": ASKING[0]})]
    shell.user_ns["a"] = sa.Agent(sa.ScriptedModel([turn, ENDED] * 2, chunk=1000))
    shell.run_line_magic("load_ext", "sagents_nb")
    shell.run_line_magic("agent", "use a")
