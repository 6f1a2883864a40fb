"""A model that needs no key and no network: it plans by rules, and really uses the tools.

The plan is made anew for every request, a pure function of it: the steps follow from the task
alone, and playing them against the calls and results in the history shows how far it has come.
So there is nothing to remember, and what was edited, rejected or restored is seen as it is.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ... import kinds
from ...errors import ModelError
from ...messages import (
    Delta,
    ImagePart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    Usage,
)
from ...serialization import to_data
from ...state import TODOS
from ...text import logger_of, whole_data
from ...transcript import fenced, one_line, spanned
from ..base import ChatModel, ModelRequest
from ..replay import deltas_of
from .analysis import INSPECT, RUN, SHOW, Analysis
from .calls import MOST_FILES, Call, Chooser, files_in, folder_of
from .documents import (
    FORMATS,
    ONLY,
    TABLES,
    format_of,
    literal,
    named_for,
    place_of,
    refers,
    refers_to_pasted,
    subject_of,
    table_text,
    wanted_of,
)
from .history import (
    Done,
    Fact,
    Talk,
    as_asked,
    finding,
    heading,
    of_edited,
    path_of,
    rejection,
    report,
)
from .mending import FailedCell, code_for_files, failed_cell, mended, names_in
from .questions import ABLE
from .tools import TOOLS, Offer, best, conforms
from .words import (
    PATH,
    STOP,
    THANKS,
    after_plan,
    clauses,
    is_code,
    is_of_image,
    is_plan,
    is_prose,
    is_question,
    is_talk,
    quoted,
    word_set,
    words,
)

_PIECE = re.compile(r"\S+\s*|\s+")
MAX_STEPS = 8
_STYLE = re.compile(
    r"^(?:be|keep|don't|do not|make it|without|in (?:one|two)|use|no)\b", re.IGNORECASE
)
# What is to stand in the answer, as sub-agents are told.
_RETURN = re.compile(r"^(?:return|reply|respond|report back)\b", re.IGNORECASE)
_THEM = re.compile(r"\b(?:them|it|these|those|they)\b", re.IGNORECASE)
_ADDS = word_set("add append insert")
_LONG = 600  # characters of a result that are shown
LOST = "I do not understand what is asked here: please say it in other words"
# What an answer says beside what was found: what was done, refused or failed.
_NO_FINDING = re.compile(
    r"I wrote |I replaced |I cannot |I am |I do not |Offline, |Hello|You are welcome|I stopped|"
    r"You rejected |There is no plot|What I have are |`\w+` (?:failed:|was not run)"
)
_LOG = logger_of(__name__)
_IMAGE_TOKENS = 1_000  # as where the length of a history is estimated
_QUOTED = 80  # characters of what was replaced and of what stands there now, in a sentence
_NUMBERED = re.compile(r"^ *\d+\t(.*)", re.MULTILINE)


class DemoModel(ChatModel):
    """Understands simple English instructions and the tools it is given; offline, no key.

    It is no language model. What it does next is a pure function of the request: it splits
    the instructions into steps, keeps a to-do list if it may, calls the tools whose words
    fit and fills in their arguments, and writes what the results say. With the tools of a
    notebook it answers questions about data frames. The same request always gives the same
    message. It says so when it cannot do something.

    It streams word by word, ``delay`` seconds apart. Token counts are estimates: a quarter
    of the characters, and 1,000 for an image.

    >>> from sagents_nb import Agent, DemoModel
    >>> def temperature(city: str) -> str:
    ...     "The temperature in a city."
    ...     return f"20 degrees in {city}."
    >>> result = Agent(DemoModel(), tools=[temperature]).run("What is the temperature in Oslo?")
    >>> [call.name for message in result.messages for call in message.tool_calls]
    ['temperature']
    """

    name = "demo"
    is_offline = True

    @kinds.checked(delay=kinds.number(0, "seconds"))
    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | str | Message]:
        """Stream the next turn; raises ModelError where an answer of some type is wanted again."""
        if request.messages and request.messages[-1].metadata.get("reminder"):
            raise ModelError(
                "The demo model answers in text and gives no values of a type; choose a model that "
                "does, such as Agent('anthropic:NAME', output_type=…)."
            )
        try:
            turn = decide(request)
        except Exception:  # a fault of the rules must not end the conversation
            _LOG.debug("The demo model found no plan.", exc_info=True)
            turn = NextTurn(text=f"{LOST}; offline, {ABLE}.")
        parts: list[Part] = []
        if turn.thinking:
            parts.append(ThinkingPart(turn.thinking))
        if turn.text:
            parts.append(TextPart(turn.text))
        calls = [
            ToolCall(f"call_{turn.number}_{n}", name, arguments)
            for n, (name, arguments) in enumerate(turn.calls, start=1)
        ]
        usage = Usage(_tokens(request), _size([*parts, *calls]) // 4)
        message = Message.assistant(parts, calls, usage=usage, model=self.name)
        for delta in deltas_of(message, _PIECE.findall):
            await asyncio.sleep(self.delay)
            yield delta
        yield message


def _tokens(request: ModelRequest) -> int:
    size = len(request.system) + sum(_size(m.parts) for m in request.messages)
    size += _size([msgspec.to_builtins(tool) for tool in request.tools])
    images = [image for message in request.messages for image in _images(message.parts)]
    return (size - sum(len(i.data or "") for i in images)) // 4 + _IMAGE_TOKENS * len(images)


def _images(parts: Iterable[Any]) -> Iterator[ImagePart]:
    for part in parts:
        if isinstance(part, ImagePart):
            yield part
        elif isinstance(part, ToolResult) and not isinstance(part.content, str):
            yield from _images(part.content)


def _size(values: object) -> int:
    try:
        return len(msgspec.json.encode(values, enc_hook=repr))
    except UnicodeEncodeError:  # there is half a character in it
        return len(msgspec.json.encode(whole_data(to_data(values))))


# The plan


class Unwritten(msgspec.Struct, frozen=True):
    """Why a file is not written, as the end of a sentence."""

    why: str


class NextTurn(msgspec.Struct, frozen=True):
    """What the model does next: think, say something, call tools; without calls it is done."""

    thinking: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    number: int = 1


def decide(request: ModelRequest) -> NextTurn:
    """The next turn of a conversation."""
    talk = Talk(request)
    if cell := failed_cell(talk.newest):
        return _mending(cell, talk, [spec.name for spec in request.tools])
    if not request.tools and (text := without_tools(request, talk)):
        return NextTurn(text=text, number=talk.turn)
    return Plan(talk, [Offer(spec) for spec in request.tools]).next_turn()


def _mending(cell: FailedCell, talk: Talk, tools: Sequence[str]) -> NextTurn:
    """The next turn about a cell that failed: it asks which names there are, once."""
    looked = [done.fact("") for done in talk.done if done.call.name in (INSPECT, RUN)]
    names = {} if cell.kind == "NameError" else {"names": names_in(cell)}
    code = code_for_files(cell)
    look: Call = (RUN, {"code": code}) if code else (INSPECT, names)
    if cell.wrong and cell.kind != "ModuleNotFoundError" and look[0] in tools and not looked:
        return NextTurn(calls=(look,), number=talk.turn)
    return NextTurn(text=mended(cell, looked), number=talk.turn)


class Plan:
    """The steps of a task, and how far they have come.

    ``facts`` are the results so far; ``unable`` says by step why nothing can be called, and
    ``refused`` in a sentence each what is no step, as it takes a language model.
    ``sources`` are by step that writes a file those that find what it is to hold, none for what
    was found in an earlier turn; or why there is nothing to write.
    """

    def __init__(self, talk: Talk, offers: Sequence[Offer]) -> None:
        self.talk = talk
        self.todo_offer = next((o for o in offers if o.name == TODOS), None)
        self.facts: list[Fact] = []
        self.unable: dict[int, str] = {}
        offers = [o for o in offers if o.name != TODOS]
        self.analysis = Analysis(talk, offers)
        self.text: str | Unwritten = ""
        self.chooser = Chooser(talk, offers, self.facts, lambda: str(self.text))
        self.questions: list[str] = []
        self.left_out: list[str] = []
        self.refused: list[str] = []
        self.sources: dict[str, list[str] | str] = {}
        self.steps = self._steps()

    def _steps(self) -> list[str]:
        steps: list[str] = []
        asked = map(after_plan, clauses(self.talk.task))
        parts = [part for clause in asked for part in self.chooser.apart(clause)]
        for clause in self.analysis.steps(self.chooser.joined(parts)):
            style = _STYLE.match(clause) and not best(self.chooser.offers, clause)
            returns = _RETURN.match(clause) and not any(
                offer.is_meant_by(words(clause)[0]) for offer in self.chooser.offers
            )
            style = style or returns
            if STOP.match(clause):
                steps.clear()
                self.refused.clear()
            elif is_plan(clause) or not clause:
                continue  # there is one of two steps and more
            elif steps and (place := place_of(clause)) and self._writes_somewhere(steps[-1]):
                steps[-1] = f"{steps[-1]} to {place}"
            elif (why := self._why_not(clause)) and not style:
                self.refused.append(why)
            elif not is_talk(clause) and not style:
                named = self._writes_somewhere(clause) and named_for(clause)
                steps.append(f"{clause} to {named}" if named else clause)
        steps = self._with_sources(steps)
        self.of_frames = {step for step in steps if self._is_of_frames(step, steps)}
        others = [step for step in steps if step not in self.of_frames]
        self.questions = [step for step in others if is_question(step)]
        told = [step for step in others if step not in self.questions]
        tools = {self.chooser.fitting(s)[0].name for s in told if self.chooser.gives_data(s)}
        needless = [step for step in self.questions if self._is_for(step, tools)]
        steps = [step for step in steps if step not in needless]
        self.left_out = steps[MAX_STEPS:]
        return steps[:MAX_STEPS]

    def _why_not(self, clause: str) -> str:
        """Why a clause is no step, as a sentence, "" if it is one."""
        fitting = self.chooser.fitting(clause)[:1]
        own = [o for o in fitting if o.name not in TOOLS and "write" not in o.groups]
        if own:
            return ""
        if is_prose(clause):
            no = "I write no texts of my own"
        elif is_code(clause) or is_of_image(clause):
            no = "I write no code" if is_code(clause) else "I read no images"
        else:
            return ""
        how = " with `%agent model PROVIDER:NAME`" if self.analysis.available else ""
        return f"I am a planner without a language model, and {no}: choose a model that does{how}."

    def _is_for(self, question: str, tools: Collection[str]) -> bool:
        """Whether a question only says what is asked of these tools.

        "Which is the heaviest? Compare the masses": the first is what the second is for, but not
        if a tool of its own answers it.
        """
        fitting = self.chooser.fitting(question)
        return bool(tools) and (not fitting or fitting[0].name in tools)

    def _is_of_frames(self, step: str, steps: Sequence[str]) -> bool:
        if step in self.sources:
            return False
        if not self.analysis.takes(step):
            call = self.chooser.first(step) if self.analysis.available else ""
            return not isinstance(call, str) and call[0] in (SHOW, "plot")
        before = steps[steps.index(step) - 1] if steps.index(step) else ""
        reads = bool(folder_of(before) or (PATH.search(before) and before not in self.sources))
        # "Open the files in /notes and summarise them": that is about what is read.
        return not (reads and _THEM.search(step) and not re.search(r"`[\w.]+`", step))

    def _with_sources(self, steps: Sequence[str]) -> list[str]:
        """The steps, and before each that writes a file those that find what it is to hold."""
        found: list[str] = []
        fresh: list[str] = []  # what was asked since the last file
        last: list[str] = []
        for step in steps:
            if not self._composes(step):
                found.append(step)
                fresh.append(step)
                continue
            sources = self._sources(step, fresh or last, found)
            if isinstance(sources, list):
                found += [source for source in sources if source not in found]
                fresh, last = [], sources
            self.sources[step] = sources
            found.append(step)
        return found

    def _composes(self, step: str) -> bool:
        """Whether a step writes a file whose text it does not give itself."""
        fitting = [] if is_question(step) else self.chooser.fitting(step)
        takes_path = bool(fitting) and any(p.called("path", "file") for p in fitting[0].parameters)
        return takes_path and "write" in fitting[0].groups and not self._given(step)

    def _writes_somewhere(self, step: str) -> bool:
        """Whether a step writes a file and does not say where."""
        return not PATH.search(step) and self._composes(step)

    def _given(self, step: str) -> str:
        """The text that is to be written, as a step quotes it or as it was pasted with it."""
        text = literal(step)
        pasted = self.talk.pasted
        alone = len(clauses(self.talk.task)) == 1
        if not text and len(pasted) == 1 and refers_to_pasted(wanted_of(step), alone):
            return f"{pasted[0]}\n"
        return "" if self.analysis.knows(text) else text

    def _sources(self, step: str, fresh: Sequence[str], found: Sequence[str]) -> list[str] | str:
        """The steps that find what a step writes; else why it writes nothing."""
        ending = format_of(step)
        if len(set(PATH.findall(step))) > 1:
            return "I write one file at a time, so each takes a sentence of its own"
        if ending and ending not in FORMATS:
            return f"I write Markdown, text, CSV, JSON and Python, and no .{ending}"
        wanted = wanted_of(step)
        asked = [source for source in found if source not in self.sources]
        known = self.talk.answered or any(self.chooser.is_data(f) for f in self.talk.earlier)
        if refers(wanted, ""):
            again = self.analysis.asked_before() if ending in TABLES and not fresh else []
            if again:
                return again
            return list(fresh) or ([] if known else "I have found nothing yet that it could hold")
        if asked and refers(wanted, " ".join([*asked, *self.questions])):
            return asked
        subject, reports = subject_of(wanted)
        trials = [subject, f"summarise {subject}"] if reports else [subject]
        if re.fullmatch(r"(?:the\s+)?`?[\w.]+`?", subject) and self.analysis.knows(subject):
            trials = [f"summarise {subject}" if reports else f"show {subject}"]
        for trial in trials:
            if self.analysis.asks(trial) or self.chooser.gives_data(trial):
                return [trial]
        before = " ".join([*self.talk.before[:1], self.talk.answered])
        return [] if known and refers(wanted, before) else ONLY

    def next_turn(self) -> NextTurn:
        """Play the steps against the history, up to the first that is still to do."""
        unclaimed = list(self.talk.done)
        for index, step in enumerate(self.steps):
            analyses = step in self.of_frames
            call = self.analysis.first(step) if analyses else self._first(step)
            if isinstance(call, str):
                if call:
                    self.unable[index] = call
                continue
            for _ in range(5 if analyses else 2 + MOST_FILES * bool(folder_of(step))):
                fact = self._known(step, call)
                if fact is None:
                    found = next((d for d in unclaimed if _is(d, call)), None)
                    if found is None:
                        return self._turn(index, step, call)
                    unclaimed.remove(found)
                    fact = found.fact(step)
                self.facts.append(fact)
                following = (self.analysis.following if analyses else self.chooser.again)(
                    step, fact
                )
                if following is None:
                    break
                call = following
        if todos := self._todos(len(self.steps)):
            return NextTurn(calls=(todos,), number=self.talk.turn)
        return NextTurn(text=answer(self), number=self.talk.turn)

    def _first(self, step: str) -> Call | str:
        """The call of a step that asks no frame: what it writes has to be there."""
        if step not in self.sources:
            if not literal(step) and (given := self._given(step)):
                self.text = given
            call = self.chooser.first(step)
            # It only asks for words, of what was found; and nothing was.
            return call or (
                "" if self._has_answers() else "there is nothing yet that tells me that"
            )
        self.text = self._compose(step)
        if isinstance(self.text, Unwritten):
            return self.text.why
        return self.chooser.first(step.replace("`", ""))

    def _has_answers(self) -> bool:
        """Whether a call so far answers what it was for; a look at a frame does not."""
        steps = {fact.step for fact in self.facts}
        return any(
            step not in self.of_frames or not self.analysis.unanswered(step, self.facts_of(step))
            for step in steps
        )

    def _turn(self, index: int, step: str, call: Call) -> NextTurn:
        todos = self._todos(index)
        first = not self.talk.done and not self.talk.todos
        if first and len(self.steps) > 1:
            steps = "; ".join(as_asked(step.rstrip("?.!")) for step in self.steps)
            outline = f"I will do this in {len(self.steps)} steps: {steps}."
            return NextTurn(self._thoughts(), outline, (todos or call,), self.talk.turn)
        if todos:
            return NextTurn(calls=(todos,), number=self.talk.turn)
        thought = f"Step {index + 1} of {len(self.steps)}, “{step}”: `{call[0]}` fits."
        return NextTurn(thought, "", (call,), self.talk.turn)

    def _known(self, step: str, call: Call) -> Fact | None:
        """The fact of this turn that makes a call needless: it failed, or was answered, already.

        What an earlier turn found may have changed since.
        """
        for fact in self.facts:
            if (fact.name, fact.asked) == call and (
                fact.status != "ok" or step in self.of_frames or self.chooser.says(step)
            ):
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

    def _compose(self, step: str) -> str | Unwritten:
        """What a step writes: what its sources found, in the format that its path asks for."""
        sources, ending = self.sources[step], format_of(step)
        if isinstance(sources, str):
            return Unwritten(sources)
        of_frames = [source for source in sources if source in self.of_frames]
        facts = [f for f in self.facts if self.chooser.is_data(f) and f.step in sources]
        if not sources:
            facts = [f for f in self.talk.earlier if self.chooser.is_data(f)][-3:]
        if failed := [s for s in of_frames if self.analysis.unanswered(s, self.facts_of(s))]:
            return Unwritten(f"there is no answer to “{failed[0].rstrip('?')}” that it could hold")
        if ending in TABLES:
            return self._table(of_frames, facts, ending)
        if ending == "py":
            codes = [str(f.arguments["code"]) for f in facts if "code" in f.arguments]
            return "\n\n".join(codes) + "\n" if codes else Unwritten("no code was run for it")
        if of_frames:
            return self._report_on_frames(of_frames)
        if self.analysis.available and not sources:
            answer = [p for p in self.talk.answered.split("\n\n") if not _NO_FINDING.match(p)]
            found = "\n\n".join(["# Report", *answer]) + "\n"
            if answer:
                return found
            lately = any(not _NO_FINDING.match(p) for t in self.talk.told for p in t.split("\n\n"))
            return Unwritten(
                "my last answer has nothing that it could hold; name what it is to hold"
                if lately
                else "I have found nothing yet that it could hold"
            )
        if not any(fact.status == "ok" for fact in facts):
            return Unwritten("I have found nothing that it could hold")
        title = next(iter(self.questions), "") or heading(facts[0])
        return report([(fact, self.asked(fact)) for fact in facts], title)

    def _table(self, steps: Sequence[str], facts: Sequence[Fact], ending: str) -> str | Unwritten:
        """What one step or one call found, as rows."""
        tables = [self.analysis.table(step, self.facts_of(step)) for step in steps]
        tables = tables or [fact.rows or "that is no table" for fact in facts]
        if len(tables) != 1:
            several = "it holds one table, and I found several"
            none = "ask for the numbers and for the file in one message"
            return Unwritten(several if tables else none)
        (found,) = tables
        return Unwritten(found) if isinstance(found, str) else table_text(found, ending)

    def _report_on_frames(self, steps: Sequence[str]) -> str:
        """A report of what was asked of frames: a section for each question after the first."""
        sections = [f"# {self.analysis.title(steps[0])}"]
        for step in steps:
            if step != steps[0]:
                sections.append(f"## {self.analysis.title(step)}")
            sections.append(self.analysis.report(step, self.facts_of(step)))
        return "\n\n".join(sections) + "\n"

    def facts_of(self, step: str) -> list[Fact]:
        """What the calls of a step came to."""
        return [fact for fact in self.facts if fact.step == step]

    def _todos(self, current: int) -> Call | None:
        """The call that brings the to-do list up to date; None if it is, or there is none."""
        if self.todo_offer is None:
            return None
        if any(done.status != "ok" for done in self.talk.todos):
            return None  # it does not work, or a person does not want it
        shown = {i["id"]: i for done in self.talk.todos for i in _items(done)}
        if not shown and len(self.steps) < 2:  # a list of one item is none
            return None
        worked = {f.step for f in self.facts if f.status == "ok"}
        failed = {f.step for f in self.facts} - worked
        failed |= {s for s in self.of_frames if self.analysis.unanswered(s, self.facts_of(s))}
        items = []
        for index, step in enumerate(self.steps):
            status = "pending" if index > current else "in_progress"
            if index < current:
                status = "cancelled" if step in failed or index in self.unable else "completed"
            text = (step[:1].upper() + step[1:]).replace("`", "")[:1000]  # it is shown as it is
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
            if step in self.of_frames:
                call = self.analysis.first(step)
                lines.append(
                    f"{number}. {step}: " + ("no tool" if isinstance(call, str) else f"`{call[0]}`")
                )
                continue
            fitting = self.chooser.fitting(step)
            lines.append(f"{number}. {step}: " + (f"`{fitting[0].name}`" if fitting else "no tool"))
        return "\n".join(lines)


def _is(done: Done, call: Call) -> bool:
    return (done.call.name, done.call.arguments) == call


def _items(done: Done) -> list[dict[str, Any]]:
    items = done.call.arguments.get("todos")
    items = items if isinstance(items, list) else []
    return [item for item in items if isinstance(item, dict) and isinstance(item.get("id"), int)]


# What it says at the end of a task, and where it has no tools


def answer(plan: Plan) -> str:
    """The end of a task: what was found and done, and what was not and why."""
    said: list[str] = []
    for step in dict.fromkeys(plan.steps):
        facts = plan.facts_of(step)
        said += [plan.analysis.reply(step, facts)] if step in plan.of_frames else _of(facts, plan)
    said += plan.refused
    unable = {i: why for i, why in plan.unable.items() if plan.steps[i] not in plan.of_frames}
    for index, reason in unable.items():
        said.append(f"I cannot do “{as_asked(plan.steps[index].rstrip('?:'))}”: {reason}.")
    ran = {s: plan.facts_of(s) for s in plan.steps if s in plan.of_frames}
    ran = {s: facts for s, facts in ran.items() if all(f.status == "ok" for f in facts)}
    refused = any(plan.analysis.unanswered(s, facts) for s, facts in ran.items())
    if unable and not plan.analysis.available:
        said.append(_tools(plan))
    elif (unable or refused) and not any(ABLE in text for text in plan.talk.told):
        said.append(f"Offline, {ABLE}.")  # once in a conversation
    if plan.left_out:
        left = "; ".join(map(as_asked, plan.left_out))
        said.append(f"I stopped after {len(plan.steps)} steps. Left: {left}.")
    said = list(dict.fromkeys(s for s in said if s))
    if said:
        return "\n\n".join(said)
    if plan.talk.done and not plan.steps:
        return "I stopped. " + " ".join(f"`{d.call.name}` had run." for d in plan.talk.done[-3:])
    return _introduction(plan)


def _of(facts: Sequence[Fact], plan: Plan) -> list[str]:
    """What the calls of a step came to: the last that worked, and whatever was not run."""
    said: list[str] = []
    worked = [fact for fact in facts if fact.status == "ok"]
    told = worked[-1:]
    if len(worked) > 1 and folder_of(worked[0].step):
        told = worked[1:] if len(files_in(worked[0].text)) <= MOST_FILES else worked
    for fact in facts:
        if fact.status == "ok":
            if fact in told:
                said.append(_outcome(fact, plan))
        elif fact.status == "rejected":
            said.append(rejection(fact))
        elif not worked:
            said.append(f"`{fact.name}` failed: {spanned(_short(fact.text))}")
    return said


def _outcome(fact: Fact, plan: Plan) -> str:
    offer = plan.chooser.offer(fact.name)
    does = offer.groups if offer else set()
    path = path_of(fact.arguments)
    if "write" in does and path:
        title = _heading(fact)
        adds = not _ADDS.isdisjoint(words(fact.step))  # which is written over it, too
        over = any(value is True for value in fact.arguments.values())
        did = "replaced" if over and not adds else "wrote"
        return f"I {did} {path}{f' (“{as_asked(title)}”)' if title else ''}."
    if fact.edited:
        return of_edited(fact)
    if "list" in does:
        return _listing(fact)
    if "delegate" in does:
        return f"The helper says: {_short(fact.text)}"
    if found := finding(fact, plan.asked(fact)):
        return found
    if "read" in does and path:
        lines = [re.sub(r"^\s*\d+\t", "", line) for line in fact.text.split("\n")]
        text = _short("\n".join(lines))
        return f"{path} says:\n\n{text if path.endswith('.md') else _as_it_is(text)}"
    if "edit" in does and path and (lines := _NUMBERED.findall(fact.text)):
        return _edited(fact, path, lines)
    if fact.text.strip():
        return _as_it_is(_short(fact.text))
    if fact.pictures:
        several = "pictures are" if fact.pictures > 1 else "picture is"
        return f"The {several} above, from `{fact.name}`."
    return f"`{fact.name}` ran and returned nothing."


def _edited(fact: Fact, path: str, lines: Sequence[str]) -> str:
    """What was changed in a file, and how the lines there read now."""
    sentence, _, rest = fact.text.strip().partition("\n")
    said = f"I changed {path}: {sentence}"
    if re.match(r"[A-Z][a-z]+ed ", sentence):
        said = f"I {sentence[:1].lower()}{sentence[1:]}"
    texts = {k: v for k, v in fact.arguments.items() if isinstance(v, str) and v != path}
    old, new = (next((texts[k] for k in texts if k.startswith(w)), "") for w in ("old", "new"))
    if old and "\n" not in old + new and len(old + new) <= _QUOTED:
        what = (
            f"replaced “{spanned(old)}” with “{spanned(new)}” in"
            if new
            else f"removed “{spanned(old)}” from"
        )
        times = re.search(r"(\d+) occurrences", sentence)
        said = f"I {what} {path}{f', {times[1]} times' if times else ''}."
    where = rest.partition(":\n")[0] if rest.startswith("Lines ") else ""
    how = f"{where} read now" if where else "It reads now"
    return f"{said} {how}:\n\n{fenced(_short(chr(10).join(lines)))}"


def _heading(fact: Fact) -> str:
    for value in fact.arguments.values():
        if isinstance(value, str) and (match := re.match(r"# (.+)", value)):
            return match[1]
    return ""


def _listing(fact: Fact) -> str:
    try:
        entries = json.loads(fact.text)
    except ValueError:
        return _as_it_is(_short(fact.text))
    names = [
        spanned(str(e.get("path", e)) if isinstance(e, dict) else str(e))
        for e in (entries if isinstance(entries, list) else [entries])
        if not (isinstance(e, dict) and e.get("type") == "directory")
    ]
    count = "1 file" if len(names) == 1 else f"{len(names)} files"
    more = ", …" if len(names) > 20 else ""
    return f"There {'is' if len(names) == 1 else 'are'} {count}: {', '.join(names[:20])}{more}."


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONG else text[:_LONG].rstrip() + " …"


def _as_it_is(text: str) -> str:
    """What a tool gave, without its being read as markup."""
    lines = text.split("\n")
    if all(spanned(line) == one_line(line) for line in lines):
        return text
    return fenced(text) if lines[1:] else spanned(text)


def _tools(plan: Plan) -> str:
    names = [f"`{offer.name}`" for offer in plan.chooser.offers]
    if not names:
        return "I have no tools here, and as the demo model I know nothing by myself."
    return f"What I have are these tools: {', '.join(names)}."


def _introduction(plan: Plan) -> str:
    if plan.talk.pasted and not plan.talk.task.strip():
        return "I take a code block as context and do nothing of it: say beside it what you want."
    if THANKS.match(plan.talk.task.strip()):
        return "You are welcome."
    greets = re.match(r"(?:hi|hello|hey|good)\b", plan.talk.task.strip(), re.IGNORECASE)
    greeting = "Hello. " if greets else ""
    able = f"{ABLE}." if plan.analysis.available else _tools(plan)
    return (
        f"{greeting}I am the demo model: I work offline, and I plan, call tools and write files "
        f"as I am told in plain sentences. {able}"
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
