"""Tab in ``%%agent`` and ``%agent`` cells: options, commands, names; in prompts also files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, get_args

from IPython.core.completer import CompletionContext, SimpleCompletion, completion_matcher

from ..agent import Agent
from ..frames import OF_CONVERSATIONS
from ..models.base import ChatModel
from ..models.named import default_spec
from ..models.providers import PROVIDERS
from ..models.recorded import Mode
from ..session import Session, sessions
from ..tools import Tool
from .cell_options import OPTIONS
from .conversations import YES, Conversations
from .magics import COMMANDS, EXPORTS

_VARIABLE = re.compile(r"\{([A-Za-z_]\w*)?$")
_FILE = re.compile(r"(?<!\S)/\S*$")
_WORD = re.compile(r"[^\s,]*$")

Found = tuple[str, Iterable[str]]  # what stands there, and what it could become


class Completion:
    """What Tab offers in the cells of one notebook that talk to an agent."""

    def __init__(self, shell: Any, conversations: Conversations) -> None:
        self.shell = shell
        self.conversations = conversations

        @completion_matcher(identifier="sagents_nb.agent", api_version=2)
        def matcher(context: CompletionContext) -> dict[str, Any]:
            lines = context.full_text.split("\n")
            before = lines[context.cursor_line][: context.cursor_position]
            typed, known = self.found(lines[: context.cursor_line], before)
            fitting = sorted({name for name in known if name.startswith(typed) and name != typed})
            found = [SimpleCompletion(name, type="agent") for name in fitting]
            ours = bool(found) or before.split()[:1] == ["%agent"]  # no word of it is Python
            return {"completions": found, "matched_fragment": typed, "suppress": ours}

        self._matcher = matcher

    def install(self) -> None:
        """Be asked before IPython's own, which then stay silent."""
        self.shell.Completer.custom_matchers.append(self._matcher)

    def remove(self) -> None:
        """Be asked no more."""
        matchers = self.shell.Completer.custom_matchers
        if self._matcher in matchers:
            matchers.remove(self._matcher)

    def found(self, above: list[str], line: str) -> Found:
        """What ends the line up to the cursor, and what it could become; nothing in other cells."""
        first = next((text for text in [*above, line] if text.strip()), "")
        words = line.split()
        if first.lstrip().startswith("%%agent") and first.split()[0] == "%%agent":
            begun = any(text.strip() for text in above)
            return self._in_prompt(line) if begun else self._option(line, words)
        if words[:1] == ["%agent"] and line != words[0]:
            return self._command(line, words)
        return "", ()

    def _in_prompt(self, line: str) -> Found:
        if variable := _VARIABLE.search(line):
            return variable[1] or "", self._variables(object)
        if file := _FILE.search(line):
            return file[0], self._files()
        return "", ()

    def _option(self, line: str, words: list[str]) -> Found:
        """Behind ``%%agent``: an option, or what the one before the cursor takes."""
        if line == words[0]:
            return "", ()
        typed = _last(line)
        before = words[:-1] if line.rstrip() == line else words
        takes: dict[str, Callable[[], Iterable[str]]] = {
            "--model": self._models,
            "--name": sessions.list,
            "--tools": self._functions,
            "--approve": self._tools,
        }
        if before[-1] in takes:
            return typed, takes[before[-1]]()
        return typed, OPTIONS if typed.startswith("-") or not typed else ()

    def _command(self, line: str, words: list[str]) -> Found:
        typed = _last(line)
        before = tuple(words[1:-1] if line.rstrip() == line else words[1:])
        takes: Mapping[tuple[str, ...], Callable[[], Iterable[str]]] = {
            (): lambda: COMMANDS,
            ("use",): lambda: self._variables(Agent, Session),
            ("model",): self._models,
            ("tools",): lambda: ("add", "remove"),
            ("tools", "add"): self._functions,
            ("tools", "remove"): self._own_tools,
            ("load",): self._conversations,
            ("frame",): lambda: OF_CONVERSATIONS,
            ("export",): self._exports,
            ("replay",): lambda: get_args(Mode),
            ("approve",): self._waiting,
            ("ask",): self._always_allowed,
            ("reset",): lambda: (YES,),
            ("serve",): lambda: ("off",),
        }
        found = takes.get(before[:2] if before[:1] == ("tools",) else before[:1])
        return typed, found() if found else ()

    def _variables(self, *kinds: type) -> list[str]:
        hidden = self.shell.user_ns_hidden
        return [
            name
            for name, value in self.shell.user_ns.items()
            if isinstance(value, kinds) and not name.startswith("_") and name not in hidden
        ]

    def _functions(self) -> list[str]:
        names = self.shell.user_ns
        return [n for n in self._variables(object) if isinstance(names[n], Tool | FunctionType)]

    def _models(self) -> list[str]:
        known = [f"{p.name}:{p.default}" for p in PROVIDERS.values()]
        return [*known, "demo", default_spec()[0], *self._variables(ChatModel)]

    def _tools(self) -> list[str]:
        agent = self._agent()
        return [] if agent is None else [tool.name for tool in agent.tools]

    def _own_tools(self) -> list[str]:
        agent = self._agent()
        return [] if agent is None else [tool.name for tool in agent.own_tools]

    def _agent(self) -> Agent | None:
        session = self.conversations.current
        return None if session is None else session.agent

    def _files(self) -> list[str]:
        session = self.conversations.current
        return [] if session is None else [entry.path for entry in session.files.entries()]

    def _conversations(self) -> list[str]:
        store = self.conversations.storage.store
        kept = [] if store is None else [c.id for c in store.list_conversations()]
        return [*sessions.list(), *kept]

    def _exports(self) -> list[str]:
        session = self.conversations.current
        return [] if session is None else [f"{session.id}{ending}" for ending in EXPORTS]

    def _always_allowed(self) -> list[str]:
        session = self.conversations.current
        return [] if session is None else session.always_allowed

    def _waiting(self) -> list[str]:
        session = self.conversations.current
        interrupt = None if session is None else session.interrupt
        return [] if interrupt is None else list(interrupt.tool_call_ids)


def _last(line: str) -> str:
    word = _WORD.search(line)
    assert word is not None  # it may be empty
    return word[0]
