"""The demo model's planner: from a request to the next turn, a pure function.

The plan is made anew for every request: the steps follow from the task alone, and playing
them against the calls and results in the history shows how far it has come. So there is
nothing to remember, and what was edited, rejected or restored is seen as it is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..base import ModelRequest
from .data import Fact, heading, report
from .fill import Filler
from .say import TODOS, Done, Talk, answer, columns_of, path_of, without_tools
from .tools import Offer, best, conforms
from .words import (
    ACTS,
    PATH,
    STOP,
    clauses,
    first_verb,
    is_plan,
    is_question,
    is_talk,
    quoted,
    superlative,
    unquoted,
    words,
)

Call = tuple[str, dict[str, Any]]

_REWRITE = re.compile(r"^(?:update|refresh|rewrite|extend|redo|add)\b", re.IGNORECASE)
_APPEND = re.compile(r"^(?:add|append)\b", re.IGNORECASE)
_INTO = re.compile(r"\b(?:in|into|to|as|at)\s+(?:the\s+file\s+)?$", re.IGNORECASE)
_LEANS = re.compile(
    r"^(?:by|per|for|in|on|across|only|with|what about|how about|which)\b|\b(?:same|instead)\b",
    re.I,
)
_SAYS = ("tell", "give", "explain", "answer", "report")


class Chooser:
    """Finds calls for steps, among the tools on offer.

    ``wider`` is the whole task; ``compose`` writes what is known into a file.
    """

    def __init__(
        self, talk: Talk, offers: Sequence[Offer], facts: Sequence[Fact], compose: Callable[[], str]
    ) -> None:
        self.talk = talk
        self.offers = offers
        self.facts = facts
        self.compose = compose

    def offer(self, name: str) -> Offer | None:
        """The tool of that name."""
        return next((o for o in self.offers if o.name == name), None)

    def fitting(self, step: str) -> list[Offer]:
        """The tools that fit a step, the best first."""
        return best(self.offers, self._as_written(step)[0])

    def gives_data(self, step: str) -> bool:
        """Whether a step asks a tool for something, other than to act or to show a file."""
        fitting = self.fitting(step)
        return bool(fitting) and not fitting[0].groups & (ACTS | {"read", "list"})

    def is_data(self, fact: Fact) -> bool:
        """Whether a fact is worth reporting: it says something about the subject."""
        offer = self.offer(fact.name)
        return offer is not None and not offer.groups & (ACTS - {"delegate", "run"})

    def first(self, step: str) -> Call | str:
        """The call for a step; else why there is none, "" if none is needed."""
        clause, rewrite = self._as_written(step)
        if _APPEND.match(step) and quoted(step) and (call := self._read_first(step)):
            return call
        if self.follows_up(step) and (call := self._like_before(step)):
            return call
        fitting = best(self.offers, clause)
        if rewrite:
            fitting = [o for o in fitting if "write" in o.groups] or fitting
        reason = ""
        for offer in fitting[:4]:
            arguments = self._filler(clause).fill(offer)
            if isinstance(arguments, dict):
                return offer.name, overwriting(offer, arguments) if rewrite else arguments
            reason = reason or f"`{offer.name}` needs {_listed(arguments)}, which I cannot tell"
        if not self.says(step):
            return reason or "none of my tools does that"
        return "" if self.facts else reason or "none of my tools tells me that"

    def again(self, step: str, last: Fact) -> Call | None:
        """A second call for a step: after reading what is added to, or to avoid an error."""
        offer = self.offer(last.name)
        if offer is None or last.status == "rejected":
            return None
        if last.status == "ok":
            appends = "read" in offer.groups and _APPEND.match(step) and quoted(step)
            return self._append(step, last) if appends else None
        path = path_of(last.arguments)
        if "write" in offer.groups and path and "exist" in last.text:
            return self._elsewhere(offer, last, path)
        return _corrected(offer, last)

    def follows_up(self, step: str) -> bool:
        """Whether a step leans on what was asked before: "and by island?"."""
        return (
            bool(self.talk.earlier)
            and len(words(step)) <= 9
            and bool(_LEANS.search(step) or (is_question(step) and not first_verb(step)))
            and not PATH.search(step)
        )

    def says(self, step: str) -> bool:
        """Whether a step asks for words, and not for something to be done."""
        return is_question(step) or first_verb(step) in _SAYS

    def leans(self, step: str) -> bool:
        """Whether a step follows up and has no tool and no superlative of its own."""
        return self.follows_up(step) and not superlative(step) and not self.fitting(step)

    def _as_written(self, step: str) -> tuple[str, bool]:
        """The step in words that name its tool, and whether a file is to be replaced."""
        path = PATH.search(unquoted(step))
        noun = path or {"report", "file", "summary", "notes"} & set(words(step))
        if noun and not quoted(step) and _REWRITE.match(step):
            return f"write {step}", True
        documents = first_verb(step) in ("summarise", "summarize", "document", "report")
        if path and documents and _INTO.search(unquoted(step)[: path.start()]):
            return f"write {step}", False
        return step, False

    def _filler(self, clause: str) -> Filler:
        known = [*self.talk.earlier, *self.facts]
        paths = [p for f in known if f.status == "ok" and (p := path_of(f.arguments))]
        written = [
            path
            for f in known
            if f.status == "ok"
            and (path := path_of(f.arguments))
            and (offer := self.offer(f.name))
            and "write" in offer.groups
        ]
        return Filler(
            clause,
            wider=self.talk.task,
            columns=columns_of(known),
            path=paths[-1] if paths else None,
            written=written[-1] if written else None,
            compose=self.compose,
        )

    def _like_before(self, step: str) -> Call | None:
        """The last call that gave data, with what the step changes of it."""
        for fact in reversed([*self.talk.earlier, *self.facts]):
            offer = self.offer(fact.name)
            if offer is None or fact.status != "ok" or offer.groups & (ACTS | {"read", "list"}):
                continue
            fitting = best(self.offers, step)
            if fitting and fitting[0] is not offer:
                return None
            filled = Filler(step, columns=columns_of([fact]), before=fact.arguments).fill(offer)
            if filled == fact.arguments and not superlative(step):
                return None  # it has nothing to do with that
            return (offer.name, filled) if isinstance(filled, dict) else None
        return None

    def _read_first(self, step: str) -> Call | None:
        reader = next((o for o in self.offers if "read" in o.groups), None)
        path = PATH.search(unquoted(step))
        if reader is None or path is None:
            return None
        arguments = Filler(f"read {path[0]}").fill(reader)
        return (reader.name, arguments) if isinstance(arguments, dict) else None

    def _append(self, step: str, last: Fact) -> Call | None:
        writer = next((o for o in self.offers if "write" in o.groups), None)
        path = path_of(last.arguments)
        if writer is None or path is None or last.text.startswith("Lines "):
            return None
        lines = [re.sub(r"^\s*\d+\t", "", line) for line in last.text.split("\n")]
        text = "\n".join([*(lines if lines != [""] else []), quoted(step)[0], ""])
        arguments = Filler(f"write {path}", compose=lambda: text).fill(writer)
        if not isinstance(arguments, dict):
            return None
        return writer.name, overwriting(writer, arguments)

    def _elsewhere(self, offer: Offer, last: Fact, path: str) -> Call | None:
        """A refused file again: over our own report, and beside a file that is not ours."""
        ours = [f for f in self.talk.earlier if f.status == "ok" and path_of(f.arguments) == path]
        if ours and all(f.name == last.name for f in ours):
            changed = overwriting(offer, last.arguments)
        else:
            before, dot, ending = path.rpartition(".")
            other = f"{before}-2.{ending}" if dot else f"{path}-2"
            changed = {k: other if v == path else v for k, v in last.arguments.items()}
        return (last.name, changed) if changed != last.arguments else None


def overwriting(offer: Offer, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the switch set that lets a file be replaced, if there is one."""
    switch = next((p.name for p in offer.parameters if p.called("overwrite", "replace")), None)
    changed = {**arguments, switch: True} if switch else arguments
    return changed if conforms(changed, offer.schema, offer.schema) else arguments


def _corrected(offer: Offer, last: Fact) -> Call | None:
    """The call with one argument replaced by a name that the error suggests."""
    suggested = dict.fromkeys(re.findall(r"[A-Za-z_]\w{2,}", last.text))
    for name, value in last.arguments.items():
        if not isinstance(value, str) or not value.isidentifier():
            continue
        others = [s for s in suggested if s != value and s not in last.arguments]
        for close in difflib.get_close_matches(value, others, n=1, cutoff=0.5):
            changed: Mapping[str, Any] = {**last.arguments, name: close}
            if conforms(changed, offer.schema, offer.schema):
                return last.name, dict(changed)
    return None


def _listed(names: Sequence[str]) -> str:
    return "a value for " + " and ".join(f"'{name}'" for name in names)


MAX_STEPS = 8
_STYLE = re.compile(r"^(?:be|keep|don't|do not|make it|without|in (?:one|two)|use|no)\b", re.I)


class Turn(msgspec.Struct, frozen=True):
    """What the model does next: think, say something, call tools; without calls it is done."""

    thinking: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    number: int = 1


def decide(request: ModelRequest) -> Turn:
    """The next turn of a conversation."""
    talk = Talk(request)
    if not request.tools and (text := without_tools(request, talk)):
        return Turn(text=text, number=talk.turn)
    return Plan(talk, [Offer(spec) for spec in request.tools]).next_turn()


class Plan:
    """The steps of a task, and how far they have come.

    ``facts`` are the results so far; ``unable`` says by step why nothing can be called.
    """

    def __init__(self, talk: Talk, offers: Sequence[Offer]) -> None:
        self.talk = talk
        self.todo_offer = next((o for o in offers if o.name == TODOS), None)
        self.facts: list[Fact] = []
        self.unable: dict[int, str] = {}
        offers = [o for o in offers if o.name != TODOS]
        self.chooser = Chooser(talk, offers, self.facts, self._compose)
        self.wants_plan = False
        self.questions: list[str] = []
        self.left_out: list[str] = []
        self.steps = self._steps()

    def _steps(self) -> list[str]:
        steps: list[str] = []
        for clause in clauses(self.talk.task):
            style = _STYLE.match(clause) and not best(self.chooser.offers, clause)
            if STOP.match(clause):
                steps.clear()
            elif is_plan(clause):
                self.wants_plan = True
            elif not is_talk(clause) and not style:
                steps.append(clause)
        self.questions = [step for step in steps if is_question(step)]
        others = [step for step in steps if step not in self.questions]
        if any(self.chooser.gives_data(step) for step in others):
            # "Which is the heaviest? Compare the masses": the first is what the second is for.
            steps = others
        self.left_out = steps[MAX_STEPS:]
        return steps[:MAX_STEPS]

    def next_turn(self) -> Turn:
        """Play the steps against the history, up to the first that is still to do."""
        unclaimed = list(self.talk.done)
        for index, step in enumerate(self.steps):
            call = self.chooser.first(step)
            if isinstance(call, str):
                if call:
                    self.unable[index] = call
                continue
            for _ in range(2):
                fact = self._known(step, call)
                if fact is None:
                    found = next((d for d in unclaimed if _is(d, call)), None)
                    if found is None:
                        return self._turn(index, step, call)
                    unclaimed.remove(found)
                    fact = found.fact(step)
                self.facts.append(fact)
                following = self.chooser.again(step, fact)
                if following is None:
                    break
                call = following
        if todos := self._todos(len(self.steps)):
            return Turn(calls=(todos,), number=self.talk.turn)
        return Turn(text=answer(self), number=self.talk.turn)

    def _turn(self, index: int, step: str, call: Call) -> Turn:
        todos = self._todos(index)
        first = not self.talk.done and not self.talk.todos
        if first and len(self.steps) > 1:
            outline = f"I will do this in {len(self.steps)} steps: {'; '.join(self.steps)}."
            return Turn(self._thoughts(), outline, (todos or call,), self.talk.turn)
        if todos:
            return Turn(calls=(todos,), number=self.talk.turn)
        thought = f"Step {index + 1} of {len(self.steps)}, “{step}”: `{call[0]}` fits."
        return Turn(thought, "", (call,), self.talk.turn)

    def _known(self, step: str, call: Call) -> Fact | None:
        """The fact that makes a call needless: it failed already, or was answered before."""
        for fact in self.facts:
            if (fact.name, fact.arguments) == call and (
                fact.status != "ok" or self.chooser.says(step)
            ):
                return msgspec.structs.replace(fact, step=step)
        if self.chooser.follows_up(step):
            for fact in reversed(self.talk.earlier):
                if (fact.name, fact.arguments) == call and fact.status == "ok":
                    return msgspec.structs.replace(fact, step=step)
        return None

    def asked(self, fact: Fact) -> str:
        """The words that say what is wanted of a result."""
        if not fact.step:
            return ""
        said = [fact.step]
        before = iter(self.talk.before)
        # "and by island?" says nothing by itself: back to what it goes on from.
        while all(self.chooser.leans(step) for step in clauses(said[-1])):
            text = next(before, None)
            if text is None:
                break
            said.append(text)
        return "\n".join([*said, *self.questions])

    def _compose(self) -> str:
        """A report of what is known, for a file or a message."""
        facts = [f for f in self.facts if self.chooser.is_data(f)]
        facts = facts or [f for f in self.talk.earlier if self.chooser.is_data(f)][-3:]
        title = next(iter(self.questions), "") or heading(facts[0]) if facts else self.talk.task
        return report([(fact, self.asked(fact)) for fact in facts], title)

    def _todos(self, current: int) -> Call | None:
        """The call that brings the to-do list up to date; None if it is, or there is none."""
        if self.todo_offer is None:
            return None
        if any(done.status != "ok" for done in self.talk.todos):
            return None  # it does not work, or a person does not want it
        shown = {i["id"]: i for done in self.talk.todos for i in _items(done)}
        if not shown and len(self.steps) < (1 if self.wants_plan else 2):
            return None
        worked = {f.step for f in self.facts if f.status == "ok"}
        failed = {f.step for f in self.facts} - worked
        items = []
        for index, step in enumerate(self.steps):
            status = "pending" if index > current else "in_progress"
            if index < current:
                status = "cancelled" if step in failed or index in self.unable else "completed"
            text = (step[:1].upper() + step[1:])[:1000]
            items.append({"id": index + 1, "content": text, "status": status})
        ids = {item["id"] for item in items}
        for id, item in shown.items():  # of a task that was stopped
            if id not in ids and item.get("status") in ("pending", "in_progress"):
                items.append({**item, "status": "cancelled"})
        items = [i for i in items if shown.get(i["id"], {}).get("status") != i["status"]]
        arguments = {"merge": bool(shown), "todos": items}
        schema = self.todo_offer.schema
        return (TODOS, arguments) if items and conforms(arguments, schema, schema) else None

    def _thoughts(self) -> str:
        lines = ["The request has these steps:"]
        for number, step in enumerate(self.steps, start=1):
            fitting = self.chooser.fitting(step)
            lines.append(f"{number}. {step}: " + (f"`{fitting[0].name}`" if fitting else "no tool"))
        return "\n".join(lines)


def _is(done: Done, call: Call) -> bool:
    return (done.call.name, done.call.arguments) == call


def _items(done: Done) -> list[dict[str, Any]]:
    items = done.call.arguments.get("todos")
    items = items if isinstance(items, list) else []
    return [item for item in items if isinstance(item, dict) and isinstance(item.get("id"), int)]
