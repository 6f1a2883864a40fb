"""What the demo model says: the answer at the end, answers where there are no tools, small talk."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ...messages import Message, ToolCall, ToolResult
from ..base import ModelRequest
from .data import Fact, finding
from .words import IDENTIFIER, THANKS, clauses, quoted, word_set, words

if TYPE_CHECKING:
    from .plan import Plan


TODOS = "write_todos"
_LONGEST = 20_000  # characters of a task that are read
_RECENT = 200  # messages to look back for what a follow-up question is about
_REJECTED = re.compile(
    r"\b(?:person|people|user|human|you)\b[^.\n]{0,40}\brejected\b", re.IGNORECASE
)
_SAID = re.compile(r"\bThey said:\s*(.*)", re.DOTALL)
_CANCELLED = re.compile(r"\bcancelled\b", re.IGNORECASE)
_CALL_ID = re.compile(r"call_(\d+)_\d+")
_STATISTICS = word_set("count mean std min max median 25% 50% 75% sum n index")


class Done(msgspec.Struct, frozen=True):
    """A call of the history and its result, None where there is none."""

    call: ToolCall
    result: ToolResult | None

    @property
    def status(self) -> str:
        """ "ok", "error" or "rejected"."""  # noqa: D210
        if self.result is None or self.result.is_error or self.result.is_interrupt:
            return "error"
        return "rejected" if _REJECTED.search(self.result.text[:200]) else "ok"

    def fact(self, step: str) -> Fact:
        """What it came to, as a fact about a step."""
        text = self.result.text if self.result else "there is no result"
        return Fact(step, self.call.name, self.call.arguments, text, self.status)


class Talk:
    """A conversation, cut where the present task begins.

    ``task`` is what people said since the last answer, ``done`` the calls since then,
    ``todos`` the calls that wrote the to-do list. ``earlier`` are the facts before, and
    ``before`` what people said before, the newest first.
    """

    def __init__(self, request: ModelRequest) -> None:
        messages = list(request.messages)[-_RECENT:]
        begin = _begin(messages)
        said = [m.text for m in messages[begin:] if m.role == "user"]
        self.task = "\n".join(text for text in said if text.strip())[:_LONGEST]
        before = [m.text for m in messages[:begin] if m.role == "user" and m.text.strip()]
        self.before = before[::-1]
        calls = _calls(messages[begin:])
        self.done = [d for d in calls if d.call.name != TODOS]
        self.todos = [d for d in calls if d.call.name == TODOS]
        self.earlier = [d.fact("") for d in _calls(messages[:begin]) if d.call.name != TODOS]
        self.turn = 1 + max(
            (int(m[1]) for c in _ids(messages) if (m := _CALL_ID.fullmatch(c))),
            default=sum(m.role == "assistant" for m in messages),
        )


def _ids(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages for call in message.tool_calls]


def _begin(messages: Sequence[Message]) -> int:
    """Where the present task begins: after the last answer that a person replied to."""
    replied = False
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "user":
            replied = True
        elif replied and message.role == "assistant":
            # A message that broke off is no answer; one that was cancelled ended its task.
            if not message.tool_calls and message.stop_reason != "error":
                return position + 1
        elif replied and any(
            r.is_error and _CANCELLED.search(r.text) for r in message.tool_results
        ):
            return position + 1
    return 0


def _calls(messages: Sequence[Message]) -> list[Done]:
    results: dict[str, ToolResult] = {}
    for message in messages:
        for result in message.tool_results:
            results[result.tool_call_id] = result
    return [Done(c, results.get(c.id)) for message in messages for c in message.tool_calls]


def rejection(fact: Fact) -> str:
    """What the person said with a rejection, "" if nothing."""
    match = _SAID.search(fact.text)
    return match[1].strip() if match else ""


def columns_of(facts: Sequence[Fact]) -> list[str]:
    """Names of columns that results and arguments mention."""
    found: list[str] = []
    for fact in facts:
        if fact.status == "ok":
            found += [key for row in fact.rows[:1] for key in row if key]
            found += IDENTIFIER.findall(fact.text[:5000])
        found += [v for v in fact.arguments.values() if isinstance(v, str) and v.isidentifier()]
    return [name for name in dict.fromkeys(found) if name.lower() not in _STATISTICS]


def path_of(arguments: dict[str, Any]) -> str | None:
    """The path in the arguments of a call; the new one of a move."""
    paths = [v for k, v in arguments.items() if isinstance(v, str) and ("path" in k or "file" in k)]
    return paths[-1] if paths else None


_LONG = 600


def answer(plan: Plan) -> str:
    """The end of a task: what was found and done, and what was not and why."""
    said: list[str] = []
    worked = {fact.step for fact in plan.facts if fact.status == "ok"}
    last = {fact.step: fact for fact in plan.facts if fact.status == "ok"}
    for fact in plan.facts:
        if fact.status == "ok":
            if last[fact.step] is fact:
                said.append(_of(fact, plan))
        elif fact.status == "rejected":
            message = rejection(fact)
            because = f" (“{message}”)" if message else ""
            said.append(f"You rejected `{fact.name}`{because}, so I left that out.")
        elif fact.step not in worked:
            said.append(f"`{fact.name}` failed: {_short(fact.text)}")
    for index, reason in plan.unable.items():
        said.append(f"I cannot do “{plan.steps[index].rstrip('?')}”: {reason}.")
    if plan.unable:
        said.append(_tools(plan))
    if plan.left_out:
        said.append(f"I stopped after {len(plan.steps)} steps. Left: {'; '.join(plan.left_out)}.")
    said = list(dict.fromkeys(s for s in said if s))
    if said:
        return "\n\n".join(said)
    if plan.talk.done and not plan.steps:
        return "I stopped. " + " ".join(f"`{d.call.name}` had run." for d in plan.talk.done[-3:])
    return _introduction(plan)


def _of(fact: Fact, plan: Plan) -> str:
    offer = plan.chooser.offer(fact.name)
    does = offer.groups if offer else set()
    path = path_of(fact.arguments)
    if "write" in does and path:
        title = _heading(fact)
        return f"I wrote {path}{f' (“{title}”)' if title else ''}."
    if "list" in does:
        return _listing(fact)
    if found := finding(fact, plan.asked(fact)):
        return found
    if "read" in does and path:
        lines = [re.sub(r"^\s*\d+\t", "", line) for line in fact.text.split("\n")]
        return f"{path} says:\n\n" + _short("\n".join(lines))
    if "delegate" in does:
        return f"The helper says: {_short(fact.text)}"
    return _short(fact.text) or f"`{fact.name}` ran and returned nothing."


def _heading(fact: Fact) -> str:
    for value in fact.arguments.values():
        if isinstance(value, str) and (match := re.match(r"# (.+)", value)):
            return match[1]
    return ""


def _listing(fact: Fact) -> str:
    try:
        entries = json.loads(fact.text)
    except ValueError:
        return _short(fact.text)
    names = [
        str(e.get("path", e)) if isinstance(e, dict) else str(e)
        for e in (entries if isinstance(entries, list) else [entries])
        if not (isinstance(e, dict) and e.get("type") == "directory")
    ]
    count = "1 file" if len(names) == 1 else f"{len(names)} files"
    more = ", …" if len(names) > 20 else ""
    return f"There {'is' if len(names) == 1 else 'are'} {count}: {', '.join(names[:20])}{more}."


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONG else text[:_LONG].rstrip() + " …"


def _tools(plan: Plan) -> str:
    names = [f"`{offer.name}`" for offer in plan.chooser.offers]
    if not names:
        return "I have no tools here, and as the demo model I know nothing by myself."
    return f"What I have are these tools: {', '.join(names)}."


def _introduction(plan: Plan) -> str:
    if THANKS.match(plan.talk.task.strip()):
        return "You are welcome."
    greets = re.match(r"(?:hi|hello|hey|good)\b", plan.talk.task.strip(), re.IGNORECASE)
    greeting = "Hello. " if greets else ""
    return (
        f"{greeting}I am the demo model: I work offline, and I plan, call tools and write files "
        f"as I am told in plain sentences. {_tools(plan)}"
    )


def without_tools(request: ModelRequest, talk: Talk) -> str:
    """A title or a summary, if that is what is asked for; else ""."""
    asked = f"{request.system}\n{talk.task}".lower()
    if re.search(r"\btitle\b", asked):
        return _title(talk.task)
    if re.search(r"\b(?:summary|summari[sz]e)\b", asked):
        return _summary(request, talk)
    return ""


def _title(text: str) -> str:
    """The first words of what the title is for."""
    marked = re.search(r"(?:<[a-z_]+>|:)\s*(\S.*)", text, re.DOTALL)
    subject = next(iter(quoted(text)), "") or (marked[1] if marked else text)
    picked = next(iter(clauses(re.sub(r"</?[a-z_]+>", " ", subject))), "").split()[:7]
    title = " ".join(picked).strip(" .,:;?!")
    return title[:1].upper() + title[1:] if words(title) else "Conversation"


def _summary(request: ModelRequest, talk: Talk) -> str:
    """What people asked for and what calls found, as a list."""
    asked = [m.text.strip() for m in request.messages if m.role == "user" and m.text.strip()]
    lines = [f"- The user asked: {text[:300]}" for text in asked[:-1][-10:] or asked]
    for fact in [*talk.earlier, *(d.fact("") for d in talk.done)][-20:]:
        text = finding(fact, talk.task) or fact.text.strip()[:200]
        lines.append(f"- `{fact.name}` ({fact.status}): {text}")
    return "Summary of the conversation so far:\n" + "\n".join(lines)
