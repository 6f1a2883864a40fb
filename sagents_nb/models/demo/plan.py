"""The demo model's planner: from a request to the next turn, a pure function.

The plan is made anew for every request: the steps follow from the task alone, and playing
them against the calls and results in the history shows how far it has come. So there is
nothing to remember, and what was edited, rejected or restored is seen as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ..base import ModelRequest
from .choose import Call, Chooser
from .data import Fact, heading, report
from .say import answer, without_tools
from .talk import TODOS, Done, Talk
from .tools import Offer, best, conforms
from .words import STOP, clauses, is_plan, is_question, is_talk

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
