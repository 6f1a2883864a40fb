"""The call that a step of the demo model's plan comes to."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .data import Fact
from .fill import Filler
from .talk import Talk, columns_of, path_of
from .tools import Offer, best, conforms
from .words import (
    ACTS,
    PATH,
    first_verb,
    is_question,
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
