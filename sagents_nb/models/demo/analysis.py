"""How the demo model answers questions about the data frames of a notebook.

It asks the tools of the notebook: ``inspect_variables`` where no frame is known, ``show_frame``
where not every row was seen, and ``run_python``, which people approve, for what only code on
all the rows can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from .frames import WHOLE, Frame, frames_in, shown_frame
from .history import Fact, Talk, rejection
from .queries import Query, code, evaluate, result
from .questions import ABLE, names_frame, read
from .replies import growth_of_years, head, overview, plotted, reply, shape
from .tools import Offer, best
from .words import PATH, clauses, first_verb, is_question, is_talk, superlative, word_set, words

INSPECT, SHOW, RUN = "inspect_variables", "show_frame", "run_python"
TOOLS = (INSPECT, SHOW, RUN)

# What a clause that says only this adds to the one before.
_RANKS = re.compile(
    r"^(?:(?:show|give|list|print|display|take|keep|return)\s+(?:me\s+)?)?(?:only\s+|just\s+)?(?:the\s+)?"
    r"(?:top|first|bottom|last|best|highest|lowest|largest|smallest)\s+(?:\d+|[a-z]+)"
    r"(?:\s+(?:rows?|ones|of them|entries|results))?$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^(?:in|for|from|using|with|of|take|use|look at|consider|here is|given|about)?\s*"
    r"(?:the\s+)?(?:data(?:\s*frame)?\s+)?`[\w.]+`\s*:?$",
    re.IGNORECASE,
)
_LEANS = re.compile(r"^(?:and|by|per|for|in|what about|how about|only|now)\b", re.IGNORECASE)
_DATA = word_set(
    "frame dataframe dataset data rows row column columns average mean median sum total count plot "
    "chart graph histogram scatter missing unique distinct correlation percentage share per summarise "
    "summarize describe sort top highest lowest largest smallest most least how which"
)


class Analysis:
    """The frames that a conversation is about, and what its steps ask of them."""

    def __init__(self, talk: Talk, offers: Sequence[Offer]) -> None:
        self.offers = {offer.name: offer for offer in offers if offer.name in TOOLS}
        self._others = [offer for offer in offers if offer.name not in TOOLS]
        self._talk = talk
        self._frames: dict[str, Frame] = {}
        self._named: list[str] = []  # of this task, in the order of naming
        self._earlier: list[str] = []
        if SHOW not in self.offers:
            return
        for text in reversed(talk.before):
            self._earlier += self._learn(frames_in(text))
        for fact in talk.earlier:
            if fact.name == SHOW and fact.status == "ok":
                self._earlier.append(str(fact.arguments.get("name")))
            if fact.name == INSPECT and fact.status == "ok":
                self._learn(frames_in(fact.text))
        self._named = self._learn(frames_in(talk.asked))

    @property
    def available(self) -> bool:
        """Whether there are tools that see frames."""
        return SHOW in self.offers

    def _learn(self, frames: Iterable[Frame]) -> list[str]:
        found = list(frames)
        self._frames |= {frame.name: frame for frame in found}
        return [frame.name for frame in found]

    def learn(self, fact: Fact) -> None:
        """Take in what a tool of the notebook says."""
        if fact.status != "ok":
            return
        if fact.name == INSPECT:
            self._learn(frames_in(fact.text))
        elif fact.name == SHOW:
            frame = shown_frame(str(fact.arguments.get("name")), fact.text)
            self._learn([frame] if frame else [])

    # The steps

    def steps(self, parts: Sequence[str]) -> list[str]:
        """The clauses of a task, where one only names a frame or ranks, put with its neighbour."""
        if not self.available:
            return list(parts)
        found: list[str] = []
        waiting = ""
        for part in parts:
            if _BARE.match(part) and len(parts) > 1:
                if found and self.takes(found[-1]) and waiting == "":
                    found[-1] = f"{found[-1]} {part}"
                else:
                    waiting = part
            elif found and _RANKS.match(part) and self.takes(found[-1]):
                found[-1] = f"{found[-1]} and {part}"
            else:
                found.append(f"{waiting} {part}".strip())
                waiting = ""
        if waiting and found:
            found[-1] = f"{found[-1]} {waiting}"
        found = found or [waiting]
        if self._named and not any(self.takes(step) for step in found):
            # "Write a report about `sales` to /report.md": of what it holds.
            found = [f"summarise `{self._named[0]}`", *found]
        return found

    def takes(self, step: str) -> bool:
        """Whether a step asks something of a frame."""
        if not self.available or is_talk(step) or not step:
            return False
        if PATH.search(step) or first_verb(step) in (
            "write",
            "save",
            "delete",
            "move",
            "run",
            "edit",
        ):
            return False
        if any(names_frame(step, name) for name in self._frames):
            return True
        others = best(self._others, step)
        if others and not self._named:
            return False
        if re.search(r"`[^`]*`|\"", step):
            return False
        if name := self._frame_of(step):
            if self._named or not isinstance(self.query(step, self._frames[name]), str):
                return not others
            return bool(_DATA & set(words(step)))
        looked = any(f.name == INSPECT for f in self._talk.earlier)
        asks = is_question(step) or superlative(step) or first_verb(step) in _DATA
        return bool(asks and _DATA & set(words(step))) and INSPECT in self.offers and not looked

    def _frame_of(self, step: str) -> str:
        """The frame that a step is about: the one it names, else the last that was named."""
        named = [name for name in self._frames if names_frame(step, name)]
        if named:
            return max(named, key=len)
        if self._named:
            return self._named[0]
        text = self._talk.task
        named = [name for name in self._frames if names_frame(text, name)]
        if named:
            return named[0]
        if self._earlier:
            return self._earlier[-1]
        return next(iter(self._frames)) if len(self._frames) == 1 else ""

    def query(self, step: str, frame: Frame) -> Query | str:
        """What a step asks of a frame, by itself or as a change of what was asked before."""
        found = read(step, frame)
        follows = _LEANS.match(step) and len(words(step)) <= 8
        if not follows or not self._talk.before:
            return found
        for text in self._talk.before[:5]:
            for part in reversed(
                clauses(re.sub(r"\n\n`[\w.]+` is a DataFrame.*", "", text, flags=re.S))
            ):
                if PATH.search(part):
                    continue
                earlier = read(part, frame)
                if isinstance(earlier, Query):
                    changed = read(f"{part} {step}", frame) if isinstance(found, str) else found
                    return followed(earlier, step, frame, changed)
        return found

    def first(self, step: str) -> tuple[str, dict[str, Any]] | str:
        """The first call for a step; "" if none is needed, else why there is none."""
        name = self._frame_of(step)
        if not name:
            if INSPECT in self.offers and not self._frames:
                return INSPECT, {}
            return self._no_frame()
        return self._next(step, self._frames[name], shown=False)

    def following(self, step: str, fact: Fact) -> tuple[str, dict[str, Any]] | None:
        """The call that a result makes needed."""
        self.learn(fact)
        if fact.status != "ok" or fact.name == RUN:
            return None
        name = self._frame_of(step)
        if not name:
            return None
        call = self._next(step, self._frames[name], shown=fact.name == SHOW)
        return None if isinstance(call, str) else call

    def _next(self, step: str, frame: Frame, shown: bool) -> tuple[str, dict[str, Any]] | str:
        query = self.query(step, frame)
        shows = isinstance(query, Query) and query.kind in ("show", "summary")
        needed = shows or (not isinstance(query, Query) or evaluate(query, frame) is None)
        if not frame.shown and not shown and needed and not (frame.whole and not shows):
            count = frame.size if frame.size <= WHOLE else 5
            if isinstance(query, Query) and query.top and query.kind == "show":
                count = min(query.top, WHOLE)
            return SHOW, {"name": frame.name, "rows": max(count, 1)}
        if isinstance(query, str) or shows or query.kind == "shape" or not needed:
            return query if isinstance(query, str) else ""
        if RUN not in self.offers:
            return "it takes code on all the rows, and I have no tool to run any"
        return RUN, {"code": code(query, frame)}

    def _no_frame(self) -> str:
        if self._frames:
            names = ", ".join(f"`{name}`" for name in self._frames)
            return f"the notebook has {names}; say which is meant"
        return "the notebook has no data frame that I could ask"

    # What they came to

    def reply(self, step: str, facts: Sequence[Fact]) -> str:
        """What a step came to, in Markdown: the answer, else why there is none."""
        failed = [fact for fact in facts if fact.status != "ok"]
        ran = [fact for fact in facts if fact.name == RUN]
        if failed:
            return _failed(failed[-1])
        name = self._frame_of(step)
        if not name:
            return _unable(step, self._no_frame())
        frame = self._frames[name]
        query = self.query(step, frame)
        if isinstance(query, str):
            return _unable(step, query)
        if query.kind in ("show", "summary"):
            return self._shown(query, frame)
        if query.kind == "shape":
            return shape(frame)
        if query.kind == "plot" and ran:
            return plotted(query, frame)
        rows = result(query, ran[-1].text) if ran else evaluate(query, frame)
        if rows is None:
            return _unable(step, "it takes code on all the rows, and I have no tool to run any")
        return reply(query, rows, frame)

    def _shown(self, query: Query, frame: Frame) -> str:
        if query.kind == "summary":
            said = [overview(frame, query.measures)]
        else:
            said = [head(frame, query.top)]
        growth = growth_of_years(frame)
        if growth and not query.measures and (rows := evaluate(growth, frame)):
            text = reply(growth, rows, frame).split(": ", 1)[1]
            said.append(text[:1].upper() + text[1:])
        return "\n\n".join(said)

    def report(self, step: str, facts: Sequence[Fact]) -> str:
        """A section of a report: what a step came to, and the code that it is from."""
        said = self.reply(step, facts)
        ran = [f for f in facts if f.name == RUN and f.status == "ok"]
        source = f"\n\n```python\n{ran[-1].arguments.get('code', '')}\n```" if ran else ""
        return said + source

    def title(self, step: str) -> str:
        """The title of a report on a step."""
        name = self._frame_of(step)
        frame = self._frames.get(name)
        query = self.query(step, frame) if frame else ""
        if isinstance(query, Query) and query.kind in ("show", "summary"):
            return f"Report on {name}"
        text = re.sub(r"\s*\b(?:in|of|from|for)?\s*`[\w.]+`\s*", " ", step).strip(" :?.")
        return f"{text[:1].upper()}{text[1:]}"


def followed(earlier: Query, step: str, frame: Frame, found: Query | str) -> Query | str:
    """What a step such as "and by island?" makes of what was asked before."""
    from msgspec.structs import replace

    alone = read(f"average {step}", frame)
    change = alone if isinstance(alone, Query) else found
    if isinstance(change, str):
        return found
    if change.kind == "values" and not change.by:
        return found
    by = change.by or earlier.by
    measures = change.measures or earlier.measures
    where = change.where or earlier.where
    if earlier.kind not in ("aggregate", "plot"):
        return found
    return replace(earlier, by=by, measures=measures, where=where)


def _failed(fact: Fact) -> str:
    if fact.status == "rejected":
        return rejection(fact)
    if "No module named 'matplotlib'" in fact.text:
        return (
            "There is no plot, as matplotlib is not installed; `%pip install matplotlib` brings it."
        )
    line = (fact.text.strip().splitlines() or ["it ended without a word"])[-1]
    return f"`{fact.name}` failed: {line[:300]}"


def _unable(step: str, reason: str) -> str:
    return f"I cannot answer “{step.rstrip('?')}”, as {reason}. Offline, {ABLE}."
