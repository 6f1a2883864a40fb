"""How the demo model makes a call of a step: which tool it takes, and with which arguments."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .data_words import NUMBERS
from .documents import literal, refers_to_pasted
from .history import GROUPS, Fact, Talk, columns_of, path_of
from .tools import TOOLS, Offer, Parameter, best, conforms
from .words import (
    ACTS,
    ARITHMETIC,
    DELEGATES,
    IDENTIFIER,
    NUMBER,
    PATH,
    QUOTED,
    clauses,
    first_verb,
    groups,
    is_question,
    own_verb,
    quoted,
    stem,
    stems,
    superlative,
    unquoted,
    word_set,
    words,
)

Call = tuple[str, dict[str, Any]]

_REWRITE = re.compile(r"^(?:update|refresh|rewrite|extend|redo|add)\b", re.IGNORECASE)
# One word for another needs no quotes, if it is no word for what was found.
_REPLACE = re.compile(
    r"^(?:replace|change)\s+(?!(?:it|this|that|them|all|everything|anything)\b)(?P<old>\w+)\s+"
    r"(?:by|with|to)\s+(?!(?:it|this|that|them)\b)(?P<new>\w+)\s+in\s+\S+$",
    re.IGNORECASE,
)
_APPEND = re.compile(r"^(?:add|append)\b", re.IGNORECASE)
_INTO = re.compile(r"\b(?:in|into|to|as|at)\s+(?:the\s+file\s+)?$", re.IGNORECASE)
# "And pack the lamp": a verb and what it is about; the nouns of a list have no article.
_AND_DOES = re.compile(
    r"(?:,\s*(?:and\s+)?|\sand\s+)(?:then\s+)?([a-z]+)"
    r"(?=\s+(?:the|an?|my|all|it|them|this|that|_{2,})(?:\s|$))",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"^(?:by|per|for|in|on|across|only|with|what about|how about|which)\b|\b(?:same|instead)\b",
    re.I,
)
_NEAR = 80  # characters before a quote that may say what it is
_SAYS = ("tell", "give", "explain", "answer", "report")

PATHS = ("path", "file", "filename", "filepath", "directory", "dir", "folder")
CONTENTS = ("content", "contents", "text", "body", "message", "markdown", "note")
CODES = ("code", "expression", "formula", "sql", "command", "script")
COLUMNS = ("column", "columns", "field", "variable", "measure", "metric", "feature")
FREE = ("pattern", "query", "question", "prompt", "instructions", "topic", "term", "request")
_BY = re.compile(
    r"\b(?:by|per|for (?:each|every)|in (?:each|every)|of each|across|between|grouped by)\s+"
    r"(?:the\s+)?([A-Za-z]\w*)",
    re.IGNORECASE,
)
_OF = re.compile(
    r"\b(?:compare|describe|average|mean|median|mode|sum|total|of|about|plot|analy[sz]e|"
    r"summari[sz]e)\s+(?:the\s+)?([A-Za-z]\w*)",
    re.IGNORECASE,
)
_PROPER = re.compile(
    r"\b(?:in|for|of|to|at|from|about|on|near|with)\s+((?:[A-Z][\w-]*)(?:\s+[A-Z][\w-]*)*)"
)
_QUOTES = re.compile(r"[`“”\"]")
# "What does /a.md say", "let me see /a.md".
_LOOKS = re.compile(
    r"^(?:let\s+me\s+)?(?:show|display|print|see|look|view|head|preview|open|peek)\b|"
    r"^what(?:'s|’s|\s+is|\s+does|\s+do|\s+are)?\b.*\b(?:in|inside|says?|contains?|contents?|of)\b",
    re.IGNORECASE,
)
# "What files are there?", "show me my files", "ls".
_LISTS = re.compile(
    r"(?:(?:what|which)\s+(?:files|documents)\b(?:(?:\s+(?:are|is|do|have|has|exist|there|we|you|i|"
    r"got|here|so\s+far|now|already))*)|(?:show|print|see|view)\s+(?:me\s+|us\s+)?(?:all\s+)?"
    r"(?:(?:the|my|your|our)\s+)?(?:files|documents)|ls|dir)\W*",
    re.IGNORECASE,
)
_HOLDS = re.compile(
    r"(?:what|which)\s+(?:of\s+)?(?:the\s+|my\s+)?(?:files?|documents?)\s+"
    r"(?:mention|contain|say|hold)s?\s+(\S.*)",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(
    rf"\b(?:an?\s+)?({'|'.join([*NUMBERS, 'dozen'])})\b|"
    r"(?<!which )(?<!that )(?<!this )(?<!the )(?<!any )(?<!no )\bone(?=\s+[a-z])",
    re.IGNORECASE,
)
# "The 3 species" says how many there are, and asks for no number of them.
_COUNTED = re.compile(r"\b(?:the|all|these|those|both|my|our)\s+(-?\d+(?:\.\d+)?)\b", re.IGNORECASE)
_GIVES = re.compile(r"([A-Za-z]+)\s*(?:=|:|of|is)?\s*-?\d+(?:\.\d+)?", re.IGNORECASE)
# A name with digits, or in capitals, is no number: "the invoice A-12".
_LABEL = r"(?=[\w-]*[A-Za-z])[\w-]*(?:\d|[A-Z]{2})"
_YEAR = re.compile(r"(?:19|20)\d\d")
_AMOUNTS = word_set(
    "count number num quantity qty amount limit n k top times max units pieces copies items"
)
# What a verb is about, up to whom or where it is for.
_OBJECT = re.compile(
    r"^\W*(?:please\s+)?[a-z]+\s+(?:(?:me|us)\s+)?(?:(?:the|an?|my|some|of)\s+)*"
    r"(.+?)(?=\s+(?:for|to|from|with|at|by|on|in|into|and)\b|[,.:;?!]|$)",
    re.IGNORECASE,
)
_WHOM = ("to", "recipient", "customer", "person", "who", "whom", "user", "city", "place", "where")
_TAIL = re.compile(r"\s+(?:in|to|into|from|as|of)\s+(?:the\s+|all\s+)?(?:files?|\x00)\s*$")
_OF_TEXTS = frozenset({"write", "read", "list", "search", "edit", "delegate", "plan", "run"})
_VAGUE = word_set("it them that this these those all data everything file files rows row")


# The files of a folder: "all files in notes", "the files of the /notes folder".
_FOLDER = re.compile(
    r"\b(?:files?|documents?|texts?|notes|everything|all)\s+(?:in|from|inside|under|within|of)\s+"
    r"(?:the\s+|my\s+)?(?:(?:folder|directory)\s+)?(/?[\w-]+(?:/[\w-]+)*)/?"
    r"(?:\s+(?:folder|directory))?$",
    re.IGNORECASE,
)
MOST_FILES = 8
"""So many files of a folder are read."""


def folder_of(step: str) -> str:
    """The folder whose files a step wants to be read, "" without one.

    >>> folder_of("Read all the files in the notes folder"), folder_of("read the file /a.md")
    ('/notes', '')
    """
    match = _FOLDER.search(step.rstrip(" .?!/"))
    if match is None or "read" not in groups([stem(first_verb(step))]):
        return ""
    return "/" + match[1].strip("/") if match[1].lower() not in _VAGUE else ""


def files_in(listing: str) -> list[str]:
    """The paths that a listing tells, as JSON or a line each; of directories none."""
    try:
        told = json.loads(listing)
    except ValueError:
        return PATH.findall(listing)
    entries = told if isinstance(told, list) else []
    found = [e if isinstance(e, dict) else {"path": e} for e in entries]
    return [str(e["path"]) for e in found if "path" in e and e.get("type") != "directory"]


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

    def apart(self, clause: str) -> list[str]:
        """A clause as one for each verb that only a tool knows: "ship the lamp and pack it"."""
        paths = list(dict.fromkeys(PATH.findall(clause)))
        if len(paths) > 1 and _LOOKS.match(clause) and not words(PATH.sub(" ", clause))[4:]:
            return [f"read {path}" for path in paths]  # "show me /a.md and /b.md"
        bare = QUOTED.sub(lambda match: "_" * len(match[0]), clause)
        found, begin = [], 0
        for match in _AND_DOES.finditer(bare):
            verb = own_verb(match[1])
            if verb and any(offer.is_meant_by(verb) for offer in self.offers):
                found.append(clause[begin : match.start()])
                begin = match.start(1)
        return [*found, clause[begin:]]

    def joined(self, clauses: Sequence[str]) -> list[str]:
        """The clauses, where one only gives a number of the call before it: "count 7"."""
        found: list[str] = []
        for clause in clauses:
            match = _GIVES.fullmatch(clause)
            fitting = self.fitting(found[-1])[:1] if match and found else []
            if match and any(p.is_number and p.called(match[1].lower()) for p in _all(fitting)):
                found[-1] = f"{found[-1]}, {clause}"
            else:
                found.append(clause)
        return found

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
        if call := self._list_first(step):
            return call
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
            reason = reason or arguments
        if not self.says(step):
            return reason or "none of my tools does that"
        return "" if self.facts else reason or "none of my tools tells me that"

    def again(self, step: str, last: Fact) -> Call | None:
        """A second call for a step: after reading what is added to, or to avoid an error."""
        offer = self.offer(last.name)
        if offer is None or last.status == "rejected":
            return None
        if last.status == "ok" and folder_of(step):
            return self._read_next(step)
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
        for offer in self.offers:
            step = step.replace(f"`{offer.name}`", offer.name)
        if _LISTS.fullmatch(step):
            return "list the files", False
        if asked := _HOLDS.fullmatch(step):
            return f"search for {asked[1]}", False
        path = PATH.search(unquoted(step))
        noun = path or {"report", "file", "summary", "notes"} & set(words(step))
        if noun and not quoted(step) and _REWRITE.match(step):
            return f"write {step}", True
        if PATH.search(step) and _LOOKS.match(step):
            bare = all(PATH.fullmatch(text) for text in quoted(step))
            return f"read {_QUOTES.sub('', step) if bare else step}", False
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
            pasted=self._pasted(clause),
        )

    def _pasted(self, clause: str) -> str:
        """The one block beside a step that it is about: "run this code", "" without one."""
        alone = len(clauses(self.talk.task)) == 1
        meant = refers_to_pasted(" ".join(words(clause)[1:]), alone)
        return self.talk.pasted[0] if meant and len(self.talk.pasted) == 1 else ""

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

    def _list_first(self, step: str) -> Call | None:
        """The call that tells which files there are, where those of a folder are to be read."""
        folder, lister = folder_of(step), self._of_files("list")
        if not folder or lister is None or self._of_files("read") is None:
            return None
        where = next((p for p in lister.parameters if p.called("pattern", "glob", *PATHS)), None)
        if where is None:
            return None
        named = f"{folder}/**" if where.called("pattern", "glob") else folder
        return lister.name, {where.name: named}

    def _read_next(self, step: str) -> Call | None:
        """The call that reads the next of the files that a listing has told."""
        facts, reader = [f for f in self.facts if f.step == step], self._of_files("read")
        if not facts or reader is None:
            return None
        read = {path_of(fact.arguments) for fact in facts[1:]}
        for path in files_in(facts[0].text)[:MOST_FILES]:
            if path not in read:
                arguments = Filler(f"read `{path}`").fill(reader)
                return (reader.name, arguments) if isinstance(arguments, dict) else None
        return None

    def _of_files(self, does: str) -> Offer | None:
        """The tool that lists or reads files."""
        return next(
            (
                offer
                for offer in self.offers
                if does in offer.groups
                and any(p.called("pattern", "glob", *PATHS) for p in offer.parameters)
            ),
            None,
        )

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
        """A refused file again: over our own that its step names, and beside any other."""
        ours = [f for f in self.talk.earlier if f.status == "ok" and path_of(f.arguments) == path]
        own = ours and PATH.search(last.step) and all(f.name == last.name for f in ours)
        if own or re.match(r"\W*(?:\w+\W+){0,2}overwrite\b", last.step, re.IGNORECASE):
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


def _all(offers: Sequence[Offer]) -> list[Parameter]:
    return [parameter for offer in offers for parameter in offer.parameters]


def _with_digits(text: str) -> str:
    """A text with its numbers in digits: "two lamps" has 2 of them, and "a dozen" is 12."""
    return _NUMBER_WORD.sub(lambda m: str(NUMBERS.get(m[1].lower(), 12) if m[1] else 1), text)


def _as(p: Parameter, text: str) -> int | float | None:
    """A number as a parameter takes it, None where it takes whole ones only."""
    number = float(text)
    if p.type != "integer":
        return number
    return int(number) if number.is_integer() else None


def _names(p: Parameter) -> str:
    return "|".join(re.escape(word.removesuffix("s")) for word in p.words if len(word) > 2) or "$^"


def _number_at(p: Parameter, text: str) -> str:
    """The number that stands beside the name of a parameter, "" without one."""
    names = _names(p)
    near = re.search(rf"\b(?:{names})s?\s*(?:=|:|of|is)?\s*(-?\d+(?:\.\d+)?)", text, re.I)
    near = near or re.search(rf"(-?\d+(?:\.\d+)?)\s*(?:{names})s?\b", text, re.I)
    return near[1] if near else ""


class Filler:
    """Fills in the arguments of one step.

    ``wider`` is the text of the whole request, where a step leaves something out;
    ``columns`` are names seen in results; ``before`` the arguments that a follow-up question
    takes over; ``path`` the last path that was used and ``written`` the last that was
    written; ``compose`` writes the content of a file; ``pasted`` is the code of a block that is
    meant, "" without one.
    """

    def __init__(
        self,
        clause: str,
        *,
        wider: str = "",
        columns: Sequence[str] = (),
        before: Mapping[str, Any] | None = None,
        path: str | None = None,
        written: str | None = None,
        compose: Callable[[], str] = str,
        pasted: str = "",
    ) -> None:
        self.clause = clause
        self.wider = wider
        self.columns = list(columns)
        self.before = before or {}
        self.path = path
        self.written = written
        self.compose = compose
        self.pasted = pasted
        self.bare = unquoted(clause)
        self.paths: list[str] = PATH.findall(self.bare) or [
            q for q in quoted(clause) if PATH.fullmatch(q)
        ]
        self.quotes = [q for q in quoted(clause) if q not in self.paths]
        self.counts = _with_digits(PATH.sub(" ", self.bare))
        self.numbers = NUMBER.findall(self.counts)
        self.used: set[str] = set()  # quotes that are an argument already

    def fill(self, offer: Offer) -> dict[str, Any] | str:
        """The arguments, or why there are none, as the end of a sentence."""
        self.known = list(dict.fromkeys([*offer.columns, *self.columns]))
        self.offer = offer
        arguments: dict[str, Any] = {}
        missing = []
        labelled = {p.name: t for p in offer.parameters if (t := self._labelled(p)) is not None}
        self.used |= set(labelled.values())
        self.quotes = [q for q in self.quotes if q not in self.used]
        self.paths = [path for path in self.paths if path not in self.used]
        # What splits into groups comes first: what is left is what they are compared by.
        for p in sorted(offer.parameters, key=lambda p: not p.called(*GROUPS)):
            value = labelled[p.name] if p.name in labelled else self._value(p, arguments)
            if value is None and p.required and "default" in p.schema:
                value = p.schema["default"]
            if value is not None and conforms(value, p.schema, offer.schema):
                arguments[p.name] = value
            elif p.required:
                missing.append(p.name)
        if missing:
            return f"`{offer.name}` needs {_listed(missing)}, which I cannot tell"
        if left := self._place_numbers(arguments) or self._unplaced_name(arguments):
            return f"I cannot tell what “{left}” is for `{offer.name}`"
        arguments = {p.name: arguments[p.name] for p in offer.parameters if p.name in arguments}
        if not conforms(arguments, offer.schema, offer.schema):
            return f"`{offer.name}` needs {_listed(['arguments'])}, which I cannot tell"
        return arguments

    def _place_numbers(self, arguments: dict[str, Any]) -> str:
        """Put a number that was said in the one place that is left for one.

        Returns a number that has no place, "" if each has one.
        """
        held = " ".join(map(str, arguments.values()))
        used = {float(n) for n in NUMBER.findall(_with_digits(held))}
        used |= {float(v) for v in arguments.values() if isinstance(v, int | float)}
        left = [n for n in NUMBER.findall(self.counts) if float(n) not in used]
        places = [p for p in self.offer.parameters if p.is_number and p.name not in arguments]
        years = all(_YEAR.fullmatch(number) for number in left)
        places = [p for p in places if p.called("year") and years] or [
            p for p in places if p.called(*_AMOUNTS)
        ]
        if len(left) == len(places) == 1:
            value = _as(places[0], left[0])
            if value is not None and conforms(value, places[0].schema, self.offer.schema):
                arguments[places[0].name] = value
                return ""
        left = [n for n in left if n not in {"1", *_COUNTED.findall(self.counts)}]
        return left[0] if left and not self.offer.groups & _OF_TEXTS else ""

    def _unplaced_name(self, arguments: Mapping[str, Any]) -> str:
        """A name behind a preposition that no argument holds, "" if there is none."""
        if self.offer.name in TOOLS or self.offer.groups & _OF_TEXTS:
            return ""
        held = json.dumps(list(arguments.values()), ensure_ascii=False, default=str).casefold()
        names = (match[1] for match in _PROPER.finditer(self.bare))
        return next((n for n in names if n.casefold() not in held and not self._is_own(n)), "")

    def _is_own(self, name: str) -> bool:
        """Whether words only name the tool and what it takes: "in the Weather tool"."""
        taken = {stem(word) for p in self.offer.parameters for word in p.words}
        return stems(name) <= self.offer.name_stems | taken | {"tool"}

    def _labelled(self, p: Parameter) -> str | None:
        """What is quoted right behind the name of a parameter: the note "fragile"."""
        if p.type != "string" or p.choices:
            return None
        names = r"\s+".join(map(re.escape, p.words))
        named = re.compile(rf"\b{names}\s*(?:=|:|is|called|named|of)?\s*$", re.I)
        for match in QUOTED.finditer(self.clause):
            before = self.clause[max(0, match.start() - _NEAR) : match.start()]
            if named.search(before):
                return quoted(match[0])[0]
        return None

    def _value(self, p: Parameter, arguments: Mapping[str, Any]) -> Any:
        found = self._found(p, arguments)
        if found is None and p.name in self.before:
            return self.before[p.name]
        if found is None and p.choices and p.required:
            return next((c for c in p.choices if "general" in str(c)), p.choices[0])
        return found

    def _found(self, p: Parameter, arguments: Mapping[str, Any]) -> Any:
        if p.choices:
            text = f" {self.clause.lower()} "
            return next(
                (c for c in p.choices if re.search(rf"\b{re.escape(str(c).lower())}\b", text)), None
            )
        if p.type == "boolean":
            return self._switch(p)
        if p.type in ("integer", "number"):
            return self._number(p)
        if p.type == "array":
            return self._several(p, arguments)
        if p.type != "string":
            return None
        if p.called(*PATHS):
            return self._path(p)
        if p.called(*GROUPS):
            return self._group()
        if p.called(*COLUMNS):
            return self._column(arguments)
        if p.called(*CODES):
            match = ARITHMETIC.search(self.bare)
            return self._quote() or self.pasted or (match[0].strip() if match else None)
        if p.called("old", "new", *CONTENTS):
            return self._content(p)
        if p.called(*FREE):
            return self._free(p)
        return self._named(p)

    def _switch(self, p: Parameter) -> bool | None:
        if not {stem(word) for word in p.words} <= {stem(word) for word in words(self.bare)}:
            return False if p.required else None
        return not re.search(rf"\b(?:no|not|without|don't)\s+{p.words[0]}", self.bare, re.I)

    def _number(self, p: Parameter) -> int | float | None:
        text = self.counts
        span = re.search(r"(\d+)\s*(?:to|-|–|and|until|through)\s*(\d+)", text)
        if span and p.called("start", "end", "first", "last", "from", "to", "until"):
            return int(span[1] if p.called("start", "first", "from") else span[2])
        if near := _number_at(p, text):
            return _as(p, near)
        if not p.required or re.search(rf"\b(?i:{_names(p)})s?\s+{_LABEL}", text):
            return None  # "the invoice A-12" has no number, whatever else there is
        others = (other for other in self.offer.parameters if other.is_number and other != p)
        claimed = {_number_at(other, text) for other in others}
        free = [number for number in self.numbers if number not in claimed]
        if not free:
            return None
        self.numbers.remove(free[0])
        return _as(p, free[0])

    def _several(self, p: Parameter, arguments: Mapping[str, Any]) -> list[Any] | None:
        items = p.schema.get("items", {})
        if not isinstance(items, Mapping) or items.get("type", "string") != "string":
            numbers = [float(n) if "." in n else int(n) for n in self.numbers]
            return numbers or ([] if p.required else None)
        taken = set(map(str, arguments.values()))
        found = [name for name in self._mentioned() or self.quotes if name not in taken]
        if not found and p.required:
            one = self._column(arguments) if p.called(*COLUMNS) else None
            found = [one] if one else []
        return found if found or p.required else None

    def _path(self, p: Parameter) -> str | None:
        if self.paths:
            return self.paths.pop(0)
        refers = re.search(
            r"\b(?:it|that|this|the (?:file|report|summary|notes?))\b", self.bare, re.I
        )
        if "write" not in self.offer.groups:
            return self.path if refers and p.required else None
        if refers and refers[0].lower().startswith("the ") and self.written:
            return self.written
        said = stems(self.bare)
        name = next(
            (n for n in ("report", "summary", "notes", "plan") if stem(n) in said), "result"
        )
        return f"/{name}.md" if p.required else None

    def _group(self) -> str | None:
        if match := _BY.search(self.bare):
            return self._as_column(match[1])
        for text in (self.bare, unquoted(self.wider)):
            match = re.search(
                r"\bwhich\s+(?!is\b|are\b|was\b|has\b|have\b|one|of\b)([a-z]\w+)\b", text, re.I
            )
            if match and superlative(text):
                return self._as_column(match[1])
        return None

    def _as_column(self, word: str) -> str:
        """The known column of that name, in singular or plural."""
        return next((c for c in self.known if stem(c) == stem(word)), word)

    def _mentioned(self) -> list[str]:
        found = [name for name in IDENTIFIER.findall(self.bare) if name != self.offer.name]
        said = stems(self.bare)
        for column in self.known:
            parts = {stem(w) for w in column.split("_") if len(w) > 2}
            if column not in found and parts and parts <= said:
                found.append(column)
        return found

    def _column(self, arguments: Mapping[str, Any]) -> str | None:
        taken = set(map(str, arguments.values()))
        for candidate in (*self._mentioned(), *self.quotes):
            if candidate not in taken:
                return candidate
        quantity = superlative(self.clause) or (
            superlative(self.wider) if not self.before else None
        )
        for word in quantity[2] if quantity else ():
            for column in self.known:
                if word in column.lower().split("_"):
                    return column
        for match in _OF.finditer(self.bare):
            word = match[1]
            if word.lower() not in _VAGUE and self._as_column(word) not in taken:
                return self._as_column(word)
        if self.wider and not self.before:
            return Filler(self.wider, columns=self.known)._wider_column(self.offer, taken)
        return None

    def _wider_column(self, offer: Offer, taken: set[str]) -> str | None:
        self.known, self.offer = self.columns, offer
        return next((c for c in self._mentioned() if c not in taken), None)

    def _quote(self) -> str | None:
        if not self.quotes:
            return None
        self.used.add(self.quotes[0])
        return self.quotes.pop(0)

    def _content(self, p: Parameter) -> str | None:
        if p.called("old", "new") or not self.offer.groups & {"write"}:
            text = self._quote()
            if text is None and (said := _REPLACE.match(self.clause)):
                text = said["old" if p.called("old") else "new"]
            if text is not None or p.called("old", "new"):
                return text
        if (text := literal(self.clause)) and (p.required or text not in self.used):
            return text
        if self.offer.groups & {"write", "send"} or p.required:
            return self.compose() or None
        return None

    def _free(self, p: Parameter) -> str | None:
        delegates = "delegate" in self.offer.groups
        if delegates and not p.required:
            return None
        if not delegates and (text := self._quote()) is not None:
            return text
        if glob := next((path for path in self.paths if "*" in path), None):
            self.paths.remove(glob)
            return glob
        if not p.required or p.name in self.before:
            return None
        rest = _TAIL.sub("", PATH.sub("\x00", self.bare).strip().rstrip("?"))
        rest = re.sub(r"\x00", "", rest)
        if delegates or p.called("instructions", "prompt", "request"):
            asked = DELEGATES.match(self.clause)
            told = self.clause[asked.end() :] if asked and asked[0] != "delegate" else ""
            match = re.search(r":\s+(.+)$", self.clause, re.S) or re.search(
                r"^\W*(?:to\s+)?(\w.+)$" if told else r"\bto\s+(.+)$", told or self.clause, re.S
            )
            text = match[1].strip() if match else self.clause
            return text[:1].upper() + text[1:]
        verbs = r"^(?:search|look up|look|find|grep|ask|query|get|fetch|tell)\b"
        rest = re.sub(
            verbs + r"(?:\s+(?:me|for|the web|online|about|up|lines?|with))*"
            r"(?:\s*(?:(?:in|through)\s+)?(?:(?:all|the|my|our|these)\s+)*(?:files|documents)\s+for\b)?"
            r"(?:\s+the\s+(?:word|text|name|phrase)\b)?",
            "",
            rest,
            flags=re.I,
        )
        if "ask" in self.offer.groups:  # "ask me which I like" → "Which you like?"
            rest = re.sub(r"^(?:me|the user|whether|if)\s+", "", rest.strip(), flags=re.I)
            rest = re.sub(r"\bI\b", "you", re.sub(r"\bmy\b", "your", rest))
            return f"{rest[:1].upper()}{rest[1:]}?"
        return rest.strip() or None

    def _named(self, p: Parameter) -> str | None:
        names = r"\s+".join(map(re.escape, p.words))
        match = re.search(
            rf"\b{names}\s*(?:=|:|is|called|named|of)?\s+([\w-]+)",
            QUOTED.sub('"', self.clause),
            re.I,
        )
        if match and not p.called("name") and (stems(match[1]) or match[1][0].isdigit()):
            return match[1]
        if not p.required and not self.quotes:
            return None
        if (text := self._quote()) is not None:
            return text
        if (text := self._object(p)) is not None:
            return text
        if match := _PROPER.search(self.bare):
            return match[1]
        if found := self._mentioned():
            return found[0]
        capital = re.search(r"(?<=\s)([A-Z][\w-]*(?:\s+[A-Z][\w-]*)*)", self.bare)
        if capital:
            return capital[1]
        own = self._own(p)
        rest = [w for w in re.findall(r"[\w-]+", self.bare) if stem(w) not in own]
        rest = [w for w in rest if w.lower() not in _VAGUE and not groups([stem(w)]) and len(w) > 2]
        rest = [w for w in rest if stem(w) in stems(w) and not superlative(w)]
        return rest[-1] if rest else None

    def _own(self, p: Parameter) -> set[str]:
        """The stems that name the tool and its parameter, and so are no value."""
        return self.offer.name_stems | {stem(word) for word in p.words}

    def _object(self, p: Parameter) -> str | None:
        """What a verb that only this tool knows is about: "cups" of "order cups for Anna"."""
        verb = own_verb(self.bare)
        if not verb or not self.offer.is_meant_by(verb) or p.called(*_WHOM):
            return None
        match = _OBJECT.match(NUMBER.sub(" ", self.counts))
        own = self._own(p) | {"x"}
        own |= {stem(w) for other in self.offer.parameters if other.is_number for w in other.words}
        text = " ".join(w for w in match[1].split() if stem(w) not in own) if match else ""
        if not text or not stems(text) or text.lower() in _VAGUE or text in self.used:
            return None
        self.used.add(text)
        return text
