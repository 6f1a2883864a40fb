"""How the demo model answers questions about the data frames of a notebook.

It asks the tools of the notebook: ``inspect_variables`` where no frame is known, ``show_frame``
where not every row was seen, and ``run_python``, which people approve, for what only code on
all the rows can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from ...transcript import spanned
from .data_words import CHANGES, DOWN, EXTREMES, GROWTH, RELATION, ROWS, SHARE, SORT, SUMMARY, UP
from .data_words import SHOW as SHOWS
from .evaluation import evaluate
from .frames import (
    WHOLE,
    Frame,
    Row,
    described_apart,
    frames_in,
    same_columns,
    shown_frame,
    words_of,
)
from .growth import growth_of_years
from .history import Fact, Talk, as_asked, listed, of_edited, rejection
from .overviews import head, overview, shape
from .pandas_code import code, result
from .plots import change_of_drawn, chart_of_that, drawn
from .queries import SHOWN, Key, Query
from .questions import names_frame, read, statistic_of
from .reading import parts_of
from .replies import plotted, reply
from .tools import TOOLS, Offer, best, of_other_files
from .words import (
    ACTS,
    DELEGATES,
    PATH,
    QUANTITIES,
    clauses,
    first_verb,
    groups,
    is_question,
    is_talk,
    quoted,
    stem,
    superlative,
    word_set,
    words,
)

INSPECT, SHOW, RUN = "inspect_variables", "show_frame", "run_python"

# What a clause that says only this adds to the one before.
_RANKS = re.compile(
    r"^(?:(?:show|give|list|print|display|take|keep|return)\s+(?:me\s+)?)?(?:only\s+|just\s+)?(?:the\s+)?"
    r"(?:top|first|bottom|last|best|highest|lowest|largest|smallest)\s+(?:\d+|[a-z]+)"
    r"(?:\s+(?:rows?|ones|of them|entries|results))?$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^(?:in|for|from|using|with|of|take|use|look at|consider|here is|there is|given|about|"
    r"you (?:are given|get|have|can use))?\s*(?:the\s+|an?\s+)?(?:(?:pandas\s+)?"
    r"(?:data(?:\s*frame|\s*set)?|table|frame)\s+)?`[\w.]+`"
    r"(?:\s+in (?:the|this) notebook)?\s*:?$",
    re.IGNORECASE,
)
_LEANS = re.compile(r"^(?:and|by|per|for|in|what about|how about|only|now)\b", re.IGNORECASE)
_HAS_MOST = re.compile(
    rf"\b(?:has|have|had|with) (?:the )?(?:{'|'.join(sorted(UP | DOWN))}) [a-z]", re.IGNORECASE
)
# "How many women" and "how many men recovered" ask for the same of both.
_COUNTED = re.compile(r"^how many \w+$", re.IGNORECASE)
_AND_HOW_MANY = re.compile(
    r"^how many(?: (?:(?:are|is|were|was) (?:there|missing|they|it|that)|of them|rows?|values?))?"
    r"(?: in each)?(?: (?:in|of) `[\w.]+`)?\W*$",
    re.IGNORECASE,
)
_HOW_MANY_OF_EACH = re.compile(
    r"^how many(?: \w+)?(?: (?:(?:are|is) there )?(?:of|in|for|per) each(?: of them)?"
    r"| (?:does|did) (?:it|that) have)?(?: (?:in|of) `[\w.]+`)?\W*$",
    re.IGNORECASE,
)
_COUNTS_ALSO = re.compile(
    r"^how many \w+ (?!(?:(?:are|is|were|was) )?(?:there\b|in (?:`|the\b)|`))", re.IGNORECASE
)
# "What was the lowest fare, and which class paid it" asks for the class of that row.
_OF_THAT = re.compile(
    r"^(?:which|what|who|when)\b[^`?]*\b(?:it|that)(?: (?:in|of|from))?\W*(?:`[\w.]+`\W*)?$",
    re.IGNORECASE,
)
# "Which site has the most, and what is its average?" asks for the average of that site.
_OF_FOUND = re.compile(
    r"\b(?:its|their|then)\b|(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b"
    r"|\b(?:in|of|for|at|on|from) (?:it|that)\b",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"^(?P<which>which|what|who)\b(?P<group>(?: \w+){0,3}?)"
    r"(?P<verb> (?:has|had|have|is|was|were|are|got|did|does|do|sold|made|shows?|showed))?"
    r" (?P<superlative>(?:the )?(?:most|fewest|least|highest|lowest|largest|smallest|biggest))\b"
    r"(?P<about>[^`?]*?),?(?P<frame> (?:in|of|from|for) `[\w.]+`)?[?.! ]*$",
    re.IGNORECASE,
)
_DATA = (
    word_set(
        "list change growth trend increase decrease grow deep old heavy tall than different "
        "frame dataframe dataset data rows row column columns average mean median sum total count "
        "plot chart graph histogram scatter missing unique distinct correlation percentage share "
        "per summarise summarize describe top highest lowest largest smallest most least how which"
    )
    | (SORT - {"order"})
    | SHARE
    | QUANTITIES
)
_ASKS_FOR = word_set("find compute calculate evaluate get give")
# Nouns that ask for what is said of them: "share of women", "top 3 lakes by depth".
_BEGINS = (
    GROWTH | SORT | SHARE | RELATION | EXTREMES.keys() | word_set("top bottom number range missing")
)
_TICKED = re.compile(r"`[A-Za-z_]\w*`")
_SEVERAL = re.compile(r"`[\w.]+`(?:(?:,\s*|\s+)(?:and\s+)?`[\w.]+`)+")
_CUT = "there are more rows than I see, so that the file would lack some"
_TABLE = word_set("row rows column columns value values duplicates")
_ASKS_ALL = SHOWS | SUMMARY  # of a frame as a whole, whatever was asked before


class Analysis:
    """The frames that a conversation is about, and what its steps ask of them."""

    def __init__(self, talk: Talk, offers: Sequence[Offer]) -> None:
        self.offers = {offer.name: offer for offer in offers if offer.name in TOOLS}
        self._others = [offer for offer in offers if offer.name not in TOOLS]
        self._talk = talk
        self._frames: dict[str, Frame] = {}
        self._named: list[str] = []  # of this task, in the order of naming
        self._earlier: list[str] = []  # of turns before, the last is the latest
        self._looked = False
        # The frames that there are, as far as all looks of this turn told, and whether others may
        # be: they say whether a tool of one's own is meant, before the steps are played.
        self._seen: list[Frame] = []
        self._unseen = False
        self._read: dict[tuple[str, str, int], Query | str] = {}
        self._of_found: set[str] = set()  # steps that ask on of what the one before them found
        if SHOW not in self.offers:
            return
        for text, facts in talk.turns:
            self._earlier += self._recall(frames_in(text))
            for fact in (fact for fact in facts if fact.status == "ok"):
                if fact.name == SHOW:
                    name = str(fact.arguments.get("name"))
                    shown = shown_frame(name, fact.text)
                    self._earlier += self._recall([shown] if shown else [])
                if fact.name == INSPECT:
                    self._recall(frames_in(fact.text))
        self._named = self._learn(frames_in(talk.asked))
        self._seen = list(self._frames.values())
        looks = [done.fact("") for done in talk.done if done.call.name == INSPECT]
        for fact in looks:
            named = {frame.name: frame for frame in [*self._seen, *frames_in(fact.text)]}
            self._seen = list(named.values())
        self._unseen = not all(frame.columns for frame in self._seen) if looks else not self._seen

    @property
    def available(self) -> bool:
        """Whether there are tools that see frames."""
        return SHOW in self.offers

    def knows(self, text: str) -> bool:
        """Whether a text is the name of a frame."""
        return text.removeprefix("the ").strip("` ") in self._frames

    def _learn(self, frames: Iterable[Frame]) -> list[str]:
        found = list(frames)
        for frame in found:
            known = self._frames.get(frame.name)
            # A list of variables says less than what was shown of one in this turn.
            told = known is not None and not known.recalled and known.columns
            if not told or frame.shown or (frame.columns and not cast(Frame, known).shown):
                self._frames[frame.name] = frame
        return [frame.name for frame in found]

    def _recall(self, frames: Iterable[Frame]) -> list[str]:
        """Learn what was seen in an earlier turn: it helps to understand, but no longer answers."""
        found = list(frames)
        for frame in found:
            known = self._frames.get(frame.name)
            if known is None or frame.shown or not known.columns or not same_columns(known, frame):
                self._frames[frame.name] = replace(frame, rows=(), shown=False, recalled=True)
        return [frame.name for frame in found]

    def learn(self, fact: Fact) -> None:
        """Take in what a tool of the notebook says."""
        if fact.status != "ok":
            return
        if fact.name == INSPECT:
            self._looked = True
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
        for part in chain.from_iterable(map(_apart, parts)):
            if _BARE.match(part) and len(parts) > 1:
                if found and self.takes(found[-1]) and waiting == "":
                    found[-1] = f"{found[-1]} {part}"
                else:
                    waiting = "".join(re.findall(r"`[\w.]+`", part))
            elif found and _AND_HOW_MANY.match(part) and self._tells_how_many(found[-1]):
                continue
            elif found and self._goes_on(found[-1], part):
                found[-1] = f"{found[-1]} and {part}"
            else:
                before = found[-1] if found else described_apart("".join(self._talk.before[:1]))[0]
                part = _completed(part, found[-1] if found else "")
                found.append(f"{part.rstrip('?')} in {waiting}" if waiting else part)
                if _OF_FOUND.search(part) and superlative(before):
                    self._of_found.add(found[-1])
                waiting = ""
        return found or [waiting]

    def _tells_how_many(self, before: str) -> bool:
        """Whether the answer to a clause says how many there are anyway."""
        gaps = bool({"missing", "null", "nulls", "nan", "nans", "empty"} & set(words(before)))
        most = bool(re.search(r"\b(?:most|fewest|least)\b", before, re.IGNORECASE))
        return (gaps or most) and self.takes(before)

    def _goes_on(self, before: str, part: str) -> bool:
        """Whether a clause only says more of the one before it."""
        if _COUNTED.match(before) and _COUNTS_ALSO.match(part):
            return True
        if _HOW_MANY_OF_EACH.match(part) and words(before)[:1] in (["which"], ["what"]):
            return self.takes(before)  # "which methods are there, and how many samples of each"
        if _OF_THAT.match(part) and superlative(before) and self.takes(before):
            return True
        return _RANKS.match(part) is not None and self.takes(before)

    def asked_before(self) -> list[str]:
        """What was asked last of a frame in an earlier turn, as steps."""
        for text in self._talk.before[:5]:
            parts = self.steps(clauses(described_apart(text)[0]))
            if found := [part for part in parts if self.takes(part)]:
                return found[-1:]
        return []

    def asks(self, text: str) -> bool:
        """Whether a text says something that can be asked of a frame, as far as that is known."""
        if not self.takes(text):
            return False
        name = self._frame_of(text)
        if not name or not self._frames[name].columns or self._answers(text, name):
            return True
        looks = INSPECT in self.offers and not self._looked and f"`{name}`" not in text
        return looks and bool(_DATA & set(words(text)))

    def takes(self, step: str) -> bool:
        """Whether a step asks something of a frame."""
        if not self.available or is_talk(step) or not step or PATH.search(step):
            return False
        if DELEGATES.match(step) and any("delegate" in o.groups for o in self._others):
            return False  # whoever it is for sees the frames, too
        verb = first_verb(step)
        changes = verb in CHANGES and words(step)[:1] == [verb]
        if verb in ("write", "save", "move", "run") or (changes and not self._of_rows(step)):
            return False
        names = {*self._frames, *(frame.name for frame in self._seen)}
        if any(names_frame(step, name) for name in names):
            return not self._is_rather_of_tool(step)
        asks_all = self._says_data(step) or verb in SUMMARY | SHOWS
        if self._unseen and asks_all and _TICKED.search(step) and INSPECT in self.offers:
            return True  # a frame that no description tells of, as where a sub-agent works
        fitting = best([*self._others, *self.offers.values()], step)
        others = self._own(step)
        if fitting and fitting[0].name == SHOW and not quoted(step):
            return True
        if others and not self._named:
            return False
        if re.search(r"`[^`]*`|\"", step):
            return False
        asks = is_question(step) or superlative(step) or verb in _DATA or changes
        asks = (
            asks or verb in _ASKS_FOR or "than" in words(step) or bool({*words(step)[:1]} & _BEGINS)
        )
        asks = asks or statistic_of(step.partition(" ")[0]) is not None
        if name := self._frame_of(step):
            if self._named or not isinstance(self.query(step, self._frames[name]), str):
                return not others
            said = set(re.findall(r"\w+", step))
            named = any(c.name in said for c in self._frames[name].columns if "_" in c.name)
            return self._says_data(step) or (named and not others)
        return bool(asks and self._says_data(step)) and INSPECT in self.offers and not self._looked

    def _is_rather_of_tool(self, step: str) -> bool:
        """Whether a tool has the name of a frame that cannot answer: "orders of Anna"."""
        frames = [frame for frame in self._seen if names_frame(step, frame.name)]
        if any(f"`{frame.name}`" in step or not frame.columns for frame in frames):
            return False
        named = [offer for offer in best(self._others, step) if offer.is_named_in(step)]
        return bool(frames and named) and not any(self._asked_of(step, f) for f in frames)

    def _asked_of(self, step: str, frame: Frame) -> bool:
        return not isinstance(self.query(step, frame), str)

    def _own(self, step: str) -> list[Offer]:
        """The tools beside those of the notebook that a step names.

        A word of a frame names none: ``lake_area`` is not what "which lake is deepest" asks for
        where there are lakes in a frame. Where frames were not looked at, such a question waits.
        """
        found = best(self._others, step)
        if self._seen and self._says_data(step):
            found = [offer for offer in found if not of_other_files(offer, step)]
        if not found or found[0].is_said_in(step):
            return found
        verb = groups([stem(first_verb(step))])
        does = verb & (ACTS - {"run"}) or verb & (found[0].groups - {"search"})
        if self._unseen and INSPECT in self.offers and self._says_data(step) and not does:
            return []
        if any(self._tells(step, frame) for frame in self._seen):
            return []
        known = frozenset().union(*map(words_of, self._seen))
        first, *rest = re.split(r"(?<=\w)\b", step, maxsplit=1)
        bare = re.sub(r"[A-Za-z]+", lambda m: " " if stem(m[0]) in known else m[0], "".join(rest))
        return [offer for offer in best(self._others, first + bare) if offer in found]

    def _says_data(self, step: str) -> bool:
        """Whether a step has a word that is said of data, whichever there is."""
        return bool(superlative(step) or _DATA & set(words(step)))

    def _tells(self, step: str, frame: Frame) -> bool:
        """Whether a frame has all that a step asks for, by the names of its columns."""
        query = self.query(step, frame) if frame.columns else ""
        if isinstance(query, str) or query.assumed:
            return False
        return bool(query.measures or query.by or query.conditions)

    def _of_rows(self, step: str) -> bool:
        """Whether a step that changes something is about data and no file."""
        named = any(names_frame(step, name) for name in self._frames)
        return named or bool(_TABLE & set(words(step)))

    def _frame_of(self, step: str) -> str:
        """The frame that a step is about.

        The one that it names; else the first that it can be asked of: of those that the task
        names, then of those that were asked before, the latest first; else the only one of all.
        """
        ticked = [name for name in self._frames if f"`{name}`" in step]
        if ticked:
            return max(ticked, key=len)
        worded = [name for name in self._frames if names_frame(step, name)]
        text = self._talk.task
        there = [name for name in self._frames if names_frame(text, name)]
        likely = list(dict.fromkeys([*worded, *self._named, *there, *reversed(self._earlier)]))
        rest = [name for name in self._frames if name not in likely]
        for certain in (True, False):
            for name in likely:
                if self._answers(step, name, certain):
                    return name
            fitting = [name for name in rest if self._answers(step, name, certain)]
            if len(fitting) == 1:
                return fitting[0]
        if likely and not fitting:
            return likely[0]
        return next(iter(self._frames)) if len(self._frames) == 1 else ""

    def _answers(self, step: str, name: str, certain: bool = False) -> bool:
        """Whether a step makes a question for that frame; a certain one assumes nothing."""
        frame = self._frames[name]
        query = self.query(step, frame) if frame.columns else ""
        return isinstance(query, Query) and not (certain and query.assumed)

    def _settled(self, step: str, name: str) -> bool:
        """Whether no other frame has to be looked at to know which one is meant."""
        return bool(name) and (f"`{name}`" in step or self._answers(step, name, certain=True))

    def query(self, step: str, frame: Frame) -> Query | str:
        """What a step asks of a frame, by itself or as a change of what was asked before."""
        if step in self._of_found:
            return "I do not go on from what I found: name it in the question"
        key = (step, frame.name, id(frame))
        if key not in self._read:
            self._read[key] = self._query(step, frame, self._talk.before[:5])
        return self._read[key]

    def _query(self, step: str, frame: Frame, before: Sequence[str]) -> Query | str:
        if before and (change := change_of_drawn(step)) and not names_frame(step, frame.name):
            return drawn(self._query(change, frame, before), "", frame)
        found = read(step, frame)
        chart = chart_of_that(step)
        vague = (
            chart is not None
            or isinstance(found, str)
            or (found.kind in ("values", "summary") and not _ASKS_ALL & set(words(step)))
            or _names_alone(found, step)
        )
        if not before or not (vague or _LEANS.match(step)) or len(words(step)) > 8:
            return found
        if names_frame(step, frame.name):
            return found
        text, described = described_apart(before[0])
        others = [*frames_in(described), *(self._frames[n] for n in self._frames)]
        named = {other.name for other in others if names_frame(text, other.name)}
        if named and frame.name not in named:
            return found  # that was about another one
        for part in reversed(self.steps(clauses(text))):
            if not PATH.search(part):
                earlier = self._query(part, frame, before[1:])
                if chart is not None:
                    return drawn(earlier, chart, frame)
                return followed(earlier, step, frame, found)
        return self._query(step, frame, before[1:])

    def first(self, step: str) -> tuple[str, dict[str, Any]] | str:
        """The first call for a step; "" if none is needed, else why there is none."""
        name = self._frame_of(step)
        if not self._settled(step, name):
            look = self._look()
            if look or not name:
                return look or self._no_frame(step)
        return self._next(step, self._frames[name], shown=False)

    def following(self, step: str, fact: Fact) -> tuple[str, dict[str, Any]] | None:
        """The call that a result makes needed."""
        self.learn(fact)
        if fact.status != "ok" or fact.name == RUN:
            return None
        name = self._frame_of(step)
        if not self._settled(step, name):
            look = self._look()
            if look or not name:
                return look
        shown = fact.name == SHOW and fact.arguments.get("name") == name
        call = self._next(step, self._frames[name], shown=shown)
        return None if isinstance(call, str) else call

    def _next(self, step: str, frame: Frame, shown: bool) -> tuple[str, dict[str, Any]] | str:
        query = self.query(step, frame)
        shows = isinstance(query, Query) and query.kind in ("show", "summary")
        if not frame.shown and not shown and (shows or not frame.whole):
            count = frame.size if frame.size <= WHOLE else 5
            if isinstance(query, Query) and query.kind == "show" and query.top:
                count = min(query.top, WHOLE)
            return SHOW, {"name": frame.name, "rows": max(count, 1)}
        needed = not isinstance(query, Query) or evaluate(query, frame) is None
        if isinstance(query, str) or shows or query.kind == "shape" or not needed:
            return query if isinstance(query, str) else ""
        if RUN not in self.offers:
            return "it takes code on all the rows, and I have no tool to run any"
        return RUN, {"code": code(query, frame)}

    def _look(self) -> tuple[str, dict[str, Any]] | None:
        """The call that tells which frames there are, and then what is in them."""
        if INSPECT not in self.offers:
            return None
        if not self._looked:
            return (INSPECT, {})
        unknown = [name for name, frame in self._frames.items() if not frame.columns]
        return (INSPECT, {"names": unknown}) if unknown else None

    def _no_frame(self, step: str) -> str:
        said = {stem(word) for word in words(step)}
        named = [
            frame
            for frame in self._frames.values()
            if any(stem(part) in said for c in frame.columns for part in parts_of(c.name))
        ]
        if len(named) == 1 and isinstance(why := self.query(step, named[0]), str):
            return why
        if self._frames:
            names = listed([f"`{name}`" for name in self._frames])
            return f"the notebook has {names}, and I cannot tell which is meant"
        return "the notebook has no data frame that I could ask"

    # What they came to

    def unanswered(self, step: str, facts: Sequence[Fact]) -> str:
        """Why a step has no answer, as the end of a sentence; "" if it has one."""
        if any(fact.status != "ok" for fact in facts):
            return "what it takes did not run"
        name = self._frame_of(step)
        if not name:
            return self._no_frame(step)
        frame = self._frames[name]
        query = self.query(step, frame)
        if isinstance(query, str):
            return query
        ran = any(fact.name == RUN for fact in facts)
        if ran or query.kind in ("show", "summary", "shape") or evaluate(query, frame) is not None:
            return ""
        return "it takes code on all the rows, and I have no tool to run any"

    def table(self, step: str, facts: Sequence[Fact]) -> list[Row] | str:
        """What a step came to as rows; else why they are none, or not all of them."""
        frame = self._frames[self._frame_of(step)]
        query, ran = self.query(step, frame), [fact for fact in facts if fact.name == RUN]
        if ran and ran[-1].edited:
            return "you changed the code that was to find its rows"
        if isinstance(query, str) or query.kind in ("plot", "summary", "shape"):
            return "that is no table of numbers"
        if query.kind == "show":
            top = query.top or frame.size
            return list(frame.rows[:top]) if len(frame.rows) >= top else _CUT
        if query.rank > 1:
            return "I write a ranking from its first place on"
        rows = result(query, ran[-1].text, frame) if ran else evaluate(query, frame) or []
        wanted = query.top or (1 if query.wants == "first" and query.kind == "rows" else None)
        if wanted is None and ran and len(rows) >= SHOWN and query.order:
            return _CUT
        if query.subjects:
            rows = [row for row in rows if str(row[query.by[0].label]) in query.subjects]
        return rows[:wanted] or "there is no row to write"

    def reply(self, step: str, facts: Sequence[Fact]) -> str:
        """What a step came to, in Markdown: the answer, else why there is none."""
        failed = [fact for fact in facts if fact.status != "ok"]
        ran = [fact for fact in facts if fact.name == RUN]
        if failed:
            return _failed(failed[-1])
        if why := self.unanswered(step, facts):
            return _unable(step, why)
        if ran and ran[-1].edited:
            return of_edited(ran[-1])
        frame = self._frames[self._frame_of(step)]
        query = cast(Query, self.query(step, frame))
        if query.kind in ("show", "summary"):
            return self._shown(query, frame)
        if query.kind == "shape":
            return shape(frame)
        if query.kind == "plot" and ran:
            return plotted(query, frame)
        rows = result(query, ran[-1].text, frame) if ran else evaluate(query, frame)
        return reply(query, rows or [], frame)

    def _shown(self, query: Query, frame: Frame) -> str:
        if query.kind == "summary":
            said = [overview(frame, query.measures)]
        else:
            said = [head(frame, query.top)]
        growth = growth_of_years(frame)
        if growth and not query.measures and (rows := evaluate(growth, frame)):
            said.append(reply(growth, rows, frame))
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
        named = r"\s*\b(?:in|of|from|for)?\s*`[\w.]+`\s*"
        text = re.sub(named, " ", step, flags=re.IGNORECASE).strip(" ,:?.")
        return f"{text[:1].upper()}{text[1:]}"


def _completed(step: str, before: str) -> str:
    """A question that leaves out what the one before it asks for, with it put in.

    >>> _completed("which product has the fewest?", "Which city has the most returned orders")
    'which product has the fewest returned orders'
    """
    asked, left = _LEFT_OUT.match(before), _LEFT_OUT.match(step)
    if asked is None or left is None or left["about"] or not asked["about"]:
        return step
    group = left["group"] or asked["group"]
    verb = left["verb"] or asked["verb"]
    frame = left["frame"] or asked["frame"]
    said = (left["which"], group, verb, left["superlative"], asked["about"], frame)
    return " ".join(word.strip(" ,") for word in said if word and word.strip(" ,"))


def _apart(step: str) -> list[str]:
    """A step that wants to see several frames, as one for each of them."""
    several = _SEVERAL.search(step)
    if several is None or not _ASKS_ALL & set(words(step)):
        return [step]
    names = re.findall(r"`[\w.]+`", several[0])
    return [step[: several.start()] + name + step[several.end() :] for name in names]


def followed(earlier: Query | str, step: str, frame: Frame, found: Query | str) -> Query | str:
    """What a step such as "and by island?" makes of what was asked before."""
    if isinstance(earlier, str) or earlier.kind not in ("aggregate", "plot"):
        return found
    if isinstance(found, Query) and found.order:
        return found  # a ranking of its own
    said = [word for word in words(step) if word in EXTREMES]
    if len(said) > 1:
        return found
    rest = re.sub(rf"\b(?:{'|'.join(said)})\b", " ", step, flags=re.IGNORECASE) if said else step
    measures = " and ".join(f"`{measure}`" for measure in earlier.measures)
    trials = [f"average {rest}", f"count {rest}", f"{rest} of {measures}"]
    change = next((c for c in (read(t, frame) for t in trials) if isinstance(c, Query)), None)
    if change is None:
        return found
    if not change.measures and _HAS_MOST.search(step):
        return found  # of something that is no measure, so not of the one before
    statistic = EXTREMES[said[0]] if said else statistic_of(step)
    turned = change.order if superlative(rest) and earlier.wants == "first" else ""
    if not (statistic or turned or change.by or change.measures or change.conditions):
        return "I cannot tell what that asks for" if isinstance(found, Query) else found
    if subject := _other_subject(earlier, change):
        return replace(earlier, subjects=(subject,))
    columns = {condition.column for condition in change.conditions}
    kept = [c for c in earlier.where if c.column not in columns]
    that = [c for c in earlier.that if c.column not in columns]
    # Which rows a share is of is asked of a share; else "both" is of the rows alone.
    where, of_share = (change.where, change.that) if earlier.that else (change.conditions, ())
    return replace(
        earlier,
        statistic=statistic or earlier.statistic,
        by=change.by or earlier.by,
        measures=change.measures or earlier.measures,
        where=(*kept, *where),
        that=(*that, *of_share),
        order=turned or earlier.order,
        subjects=() if change.by else earlier.subjects,
        word="" if change.measures or turned else earlier.word,
        chart=_chart(earlier, change, frame),
        assumed=change.assumed,
    )


def _names_alone(found: Query, step: str) -> bool:
    """Whether a step only says of which rows it is: "South?" and "in 2025?"."""
    bare = found.kind == "rows" and not (found.measures or found.order or found.told)
    return bare and len(step.split()) <= 3 and not (_ASKS_ALL | ROWS) & set(words(step))


def _other_subject(earlier: Query, change: Query) -> str:
    """The value that "and South?" asks for after the share of another one; "" without it."""
    if earlier.wants != "share" or len(earlier.subjects) != 1 or len(change.conditions) != 1:
        return ""
    (condition,) = change.conditions
    is_other = condition.operator == "==" and (Key(condition.column),) == earlier.by
    return str(condition.value) if is_other and not condition.part else ""


def _chart(earlier: Query, change: Query, frame: Frame) -> str:
    """The chart as it was, but bars where groups take the place of dates."""
    lines = earlier.kind == "plot" and not earlier.chart and change.by
    return "bar" if lines and not frame.column(change.by[0].column).dated else earlier.chart


def _failed(fact: Fact) -> str:
    if fact.status == "rejected":
        return rejection(fact)
    if "ModuleNotFoundError" in fact.text and "matplotlib" in fact.text:
        return "There is no plot: matplotlib is not installed; `%pip install matplotlib` does it."
    line = (fact.text.strip().splitlines() or ["it ended without a word"])[-1]
    return f"`{fact.name}` failed: {spanned(line[:300])}"


def _unable(step: str, reason: str) -> str:
    return f"I cannot answer “{as_asked(step.rstrip('?'))}”, as {reason}."
