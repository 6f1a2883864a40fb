"""Every public callable, with every wrong value in the place of every argument.

The callables are those of the public face, the values those below. For each argument in turn a
call gets good values for all the others and one of the values for it. What comes of it is fine

- if the value is of the argument's annotation, and the call works;
- if an error of ours says in one sentence what is wrong.

Any other exception comes raw from inside, and a value that is not of the annotation and works
all the same was taken in silence: both are failures, outside the reviewed lists here.
"""

from __future__ import annotations

import ast
import collections.abc
import contextlib
import enum
import functools
import gc
import importlib
import inspect
import itertools
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy
import pandas
import pytest

import sagents_nb as sa
from sagents_nb import events, kinds
from sagents_nb.files import FileSystem
from sagents_nb.files.changes import Changes
from sagents_nb.session.options import SessionOptions
from tests.public_face import exposed
from tests.talking import agent_of, call, run, until

# the values


class Word(str):
    """A str that is none of the builtin type."""


def refusing(base: type, *names: str) -> Any:
    """A class that raises whatever it is asked."""

    def refuse(*args: Any, **given: Any) -> Any:
        raise RuntimeError("odd")

    return type("Odd", (base,), dict.fromkeys(names, refuse))


ASKED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__")
ASKED += ("__str__", "__repr__", "__format__", "__int__", "__float__", "__index__", "__add__")
OF_TEXT = ("__len__", "__iter__", "__contains__", "__getitem__", "strip", "startswith", "encode")
OddText, OddNumber = refusing(str, *ASKED, *OF_TEXT), refusing(int, *ASKED)


class Colour(enum.Enum):
    RED = "red"


class Thing:
    """Nothing that anybody could want."""


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "False": lambda: False,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "1.5": lambda: 1.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "10**30": lambda: 10**30,
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "text": lambda: "x",
    "half a character": lambda: "\ud800",
    "NUL": lambda: "\0",
    "newline": lambda: "x\ny",
    "long text": lambda: "x" * 100_000,
    "a str of another class": lambda: Word("x"),
    "no bytes": lambda: b"",
    "bytes": lambda: b"\xff",
    "empty list": list,
    "list of None": lambda: [None],
    "list of numbers": lambda: [1, 2],
    "list of itself": lambda: _endless(),
    "empty dict": dict,
    "dict of numbers": lambda: {1: 2},
    "dict of nothing": lambda: {"x": None},
    "empty tuple": lambda: (),
    "set": lambda: {1},
    "object": Thing,
    "class": lambda: Thing,
    "function": lambda: lambda: None,
    "generator": lambda: (None for _ in range(2)),
    "exception": lambda: ValueError("x"),
    "enum": lambda: Colour.RED,
    "range": lambda: range(2),
    "path": lambda: Path("x"),
    "message": lambda: sa.Message.user("hi"),
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,  # which Python does not write
    "array": lambda: numpy.zeros(3),  # which is neither true nor false
    "array of text": lambda: numpy.array(["x", "y"]),
    "frame": lambda: pandas.DataFrame({"x": [1, 2]}),
    "series": lambda: pandas.Series(["x", "y"]),
    "100,000 levels": lambda: _deep(),
    "a str that raises": lambda: OddText("x"),
    "an int that raises": lambda: OddNumber(3),
}


@functools.cache  # to make and to free it takes longer than most calls
def _deep() -> list[Any]:
    items: list[Any] = []
    gc.disable()  # which would look for garbage a hundred times while nothing but this is made
    for _ in range(100_000):
        items = [items]
    gc.enable()
    return items


def _endless() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


# the callables


class Public(NamedTuple):
    """One of the public face: its path, what it is, and the class it is a method of."""

    path: str
    function: Callable[..., Any]
    owner: type | None


def of_the_public_face() -> Iterator[Public]:
    seen: set[Any] = set()
    for module, names in exposed().items():
        for name in names:
            value = getattr(importlib.import_module(module), name)
            path = f"{module}.{name}".removeprefix("sagents_nb.")
            if isinstance(value, type):
                if value not in seen:
                    seen.add(value)
                    yield Public(path, value, None)
                    yield from _methods(path, value, seen)
            elif inspect.isfunction(value) and value not in seen:
                seen.add(value)
                yield Public(path, value, None)


def _methods(path: str, cls: type, seen: set[Any]) -> Iterator[Public]:
    for base in cls.__mro__:
        if not base.__module__.startswith("sagents_nb"):
            continue
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if name.startswith("_") or not isinstance(function, types.FunctionType):
                continue
            if function not in seen:
                seen.add(function)
                yield Public(f"{path}.{name}", function, cls)


class Argument(NamedTuple):
    name: str
    kind: Any
    annotation: Any
    required: bool


# Arguments that may be left out, but not all of them.
NEEDED = {
    *("CallbackStorage.on_read", "Mount.storage", "Mount.default", "cli.main.arguments"),
    *("Agent.extract.output_type", "Agent.aextract.output_type", "Limited.concurrent"),
    *("Agent.as_tool.name", "Agent.as_tool.description", "to_frame.sources"),
}


def arguments_of(public: Public) -> list[Argument]:
    function: Any = public.function
    if hasattr(function, "__struct_fields__"):
        hints = hints_of(function)
        first = len(function.__struct_fields__) - len(function.__struct_defaults__)
        return [
            Argument(name, inspect.Parameter.KEYWORD_ONLY, hints[name], number < first)
            for number, name in enumerate(function.__struct_fields__)
        ]
    if isinstance(function, type):
        if not any("__init__" in vars(base) for base in ours(function)):
            return []
        function = function.__init__  # type: ignore[misc]
    hints = hints_of(function)
    parameters = inspect.signature(function).parameters.values()
    found = [
        Argument(
            p.name,
            p.kind,
            hints.get(p.name, Any),
            (p.default is p.empty and p.kind is not p.VAR_POSITIONAL)
            or f"{public.path}.{p.name}" in NEEDED,
        )
        for p in parameters
        if p.name not in ("self", "cls") and p.kind is not p.VAR_KEYWORD
    ]
    further = FURTHER.get(public.path, {})
    return found + [
        Argument(n, inspect.Parameter.KEYWORD_ONLY, a, False) for n, a in further.items()
    ]


def ours(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.startswith("sagents_nb")]


def hints_of(thing: Any) -> dict[str, Any]:
    """Its annotations as types, also those that only type checkers see."""
    hints: dict[str, Any] = {}
    for each in reversed(ours(thing)) if isinstance(thing, type) else [inspect.unwrap(thing)]:
        names = names_of(each.__module__)
        for name, annotation in inspect.get_annotations(each).items():
            hints[name] = _told(annotation, names)
    return hints


def _told(annotation: Any, names: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    return eval(annotation, names)


@functools.cache
def names_of(module: str) -> dict[str, Any]:
    loaded = importlib.import_module(module)
    names = dict(vars(loaded))
    for node in ast.parse(inspect.getsource(loaded)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            package = module if hasattr(loaded, "__path__") else module.rpartition(".")[0]
            for statement in node.body:
                names |= _imported(statement, package)
    return names


def _imported(statement: ast.stmt, package: str) -> dict[str, Any]:
    match statement:
        case ast.Import(names=aliases):
            return {a.asname or a.name: importlib.import_module(a.name) for a in aliases}
        case ast.ImportFrom(module=name, names=aliases, level=level):
            where = importlib.import_module("." * level + (name or ""), package)
            return {a.asname or a.name: getattr(where, a.name) for a in aliases}
    return {}


# whether a value is of an annotation


def fits(value: Any, annotation: Any, depth: int = 0) -> bool:
    """Whether a type checker would take it; not looking far into what is nested."""
    if annotation in (Any, object, inspect.Parameter.empty) or depth > 3:
        return True
    if annotation is None or annotation is type(None):
        return value is None
    if isinstance(annotation, typing.TypeVar):
        return annotation.__bound__ is None or fits(value, annotation.__bound__, depth)
    if isinstance(annotation, str):
        return any(base.__name__ == annotation for base in type(value).__mro__)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return fits(value, parts[0], depth)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part, depth) for part in parts)
    if origin is typing.Literal:
        value = kinds.plain(value)
        return any(type(value) is type(part) and value == part for part in parts)
    if origin is collections.abc.Callable or annotation is collections.abc.Callable:
        return callable(value)
    if origin is type or annotation is type:
        return isinstance(value, type)
    if annotation is float:
        value = kinds.plain(value)
        return isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is not None:
        return _fits_generic(value, origin, parts, depth)
    if is_protocol(annotation):
        wanted = [n for n in vars(annotation) if not n.startswith("_")]
        return not isinstance(value, type) and all(hasattr(value, name) for name in wanted)
    return isinstance(value, annotation)


def is_protocol(cls: Any) -> bool:
    return typing.Protocol in getattr(cls, "__bases__", ())


def _fits_generic(value: Any, origin: Any, parts: Any, depth: int) -> bool:
    if origin.__name__ in ("FrozenList", "list", "tuple", "Sequence"):
        origin = collections.abc.Iterable if origin.__name__ == "Sequence" else (list, tuple)
    elif issubclass(origin, collections.abc.Mapping):
        return isinstance(value, collections.abc.Mapping) and all(
            fits(k, parts[0], depth + 1) and fits(v, parts[1], depth + 1) for k, v in value.items()
        )
    if not isinstance(value, origin):
        return False
    if isinstance(value, str | bytes | collections.abc.Mapping):
        return False  # a list of letters is never meant
    if isinstance(value, list | tuple | set | range) and parts and parts[0] is not ...:
        return all(fits(item, parts[0], depth + 1) for item in value)
    return True


# what is called


def look(at: str = "") -> str:
    """Look."""
    return at


GATED: dict[str, Any] = {"tools": [look], "interrupt_on": {"look": True}}


class World:
    """What good values are made of: fresh for each callable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waits: sa.Session | None = None
        self.asks: Any = None
        self.numbers = itertools.count()

    @functools.cached_property
    def agent(self) -> sa.Agent:
        return agent_of(*["hi"] * 9)

    @functools.cached_property
    def agents(self) -> sa.AgentRegistry:
        def work(text: str) -> str:
            return text

        async def ask(text: str, ctx: sa.TaskContext) -> Any:
            return await ctx.request_input("Which?")

        agents = sa.AgentRegistry()
        agents.add(work, name="look")
        agents.add(ask)
        return agents

    def added(self) -> str:
        """The name of an agent that was registered for this."""
        self.agents.add(self.agent.with_(name="other"))
        return "other"

    @functools.cached_property
    def store(self) -> sa.ConversationStore:
        store = sa.ConversationStore("sqlite://")
        store.create_conversation(id="c1")
        store.append_display_message(
            "c1",
            {
                "message_type": "tool",
                "content_type": "tool_call",
                "content": {"call_id": "t1", "name": "x", "arguments": {}},
                "status": "pending",
            },
        )
        store.save_agent_state("c1", STATE.export())
        return store

    def session(self) -> sa.Session:
        return sa.Session(agent_of("hi"))

    @functools.cached_property
    def queueing(self) -> sa.Session:
        session = self.session()
        session.steer("Go on.")
        return session

    def branched(self) -> sa.Session:
        session = sa.Session(agent_of("hi", "hello", "hey"))
        session.send("a").result()
        for said in ("b", "c"):
            session.send(said, instead_of=0).result()
        return session

    def waiting(self) -> sa.Session:
        session = sa.Session(agent_of(call("look"), "done", "done", **GATED))
        session.send("go").result()
        return session

    def asked(self) -> sa.Interrupt:
        """What waits in the session that is asked next."""
        if self.waits is None:
            self.waits = self.waiting()
        assert self.waits.interrupt is not None
        return self.waits.interrupt

    def told(self) -> sa.Session:
        waits, self.waits = self.waits, None
        return waits or self.waiting()

    def interrupted(self) -> sa.RunResult:
        return agent_of(call("look"), **GATED).run("go")

    def interrupting(self) -> sa.ConversationStore:
        result = {"tool_call_id": "t1", "name": "look", "content": "", "is_interrupt": True}
        row = {"message_type": "tool", "content_type": "tool_result", "content": result}
        self.store.append_display_message("c1", row)
        return self.store

    @functools.cached_property
    def files(self) -> Any:
        from sagents_nb.files import FileSystem

        files = FileSystem(("test", 1))
        files.write("/a.md", "x")
        return files

    @functools.cached_property
    def entry(self) -> Any:
        return self.files.read("/a.md")

    @functools.cached_property
    def recording(self) -> Any:
        from sagents_nb.models.cache import Recording

        return Recording("k", msgspec.Raw(b"{}"), sa.Message.assistant("hi"))

    def emitter(self) -> Any:
        return events.Emitter(lambda event: None)

    def context(self) -> sa.RunContext:
        return sa.RunContext(emitter=self.emitter(), agent=self.agent)

    @functools.cached_property
    def hub(self) -> Any:
        from sagents_nb.hub import Hub

        return Hub(self.system, "sqlite://")

    @property
    def system(self) -> Any:
        from sagents_nb.hub import AgentSystem

        def answer(request: sa.ModelRequest) -> Any:
            return call("look") if request.messages[-1].role == "user" else "hi"

        system = AgentSystem(sa.ScriptedModel([answer] * 999)).add_tool(look)
        return system.add_agent(self.blueprint)

    @property
    def blueprint(self) -> Any:
        from sagents_nb.hub import Blueprint

        return Blueprint("guide", "Be brief.", config={"hitl": {"tools": ["look"]}})

    @functools.cached_property
    def agency(self) -> Any:
        return self.hub.create_agency()[0]

    def thread(self) -> Any:
        return self.hub.create_thread(self.agency, "guide")

    @functools.cached_property
    def shown(self) -> tuple[Any, str]:
        """The agency of a notebook, and the id of a conversation of it that was shown."""
        thread = self.hub.show("kept.ipynb", sa.Session(self.agent, store=self.hub.store))
        return self.hub.agency(thread.record.agency_id), thread.record.id

    def asking(self) -> Any:
        """A thread that waits for people."""
        if self.asks is None or self.asks.status != "paused":
            self.asks = thread = self.thread()
            thread.invoke([MESSAGE])
            until(lambda: thread.status == "paused")
        return self.asks

    @functools.cached_property
    def penguins(self) -> Any:
        from sagents_nb.tour import load_penguins

        return load_penguins()


MESSAGE = sa.Message.user("hi")
STATE = sa.State(messages=[MESSAGE])  # type: ignore[arg-type]
RESULT = sa.ToolResult("t1", "look", "seen")
SCHEMA = {"type": "object", "properties": {}}
REQUEST = sa.ModelRequest([MESSAGE])
GATE = sa.Interrupt("hitl", (sa.ActionRequest("c1", "look"),), id="i1")

# Good values, by the end of the path with the argument, the most telling first; else by name.
GOOD: dict[str, Callable[[World], Any]] = {
    "Session.decide.decisions": lambda w: {"c1": sa.Approve()},
    "DocumentIndex.path": lambda w: w.folder / f"index{next(w.numbers)}.db",
    "DocumentIndex.add.source": lambda w: {"tides": "High tide is at six."},
    "DocumentIndex.add.text": lambda w: None,
    "DocumentIndex.add.id": lambda w: None,
    "DocumentIndex.add.files": lambda w: None,
    "DocumentIndex.remove.document": lambda w: "tides",
    "AgentRegistry.add.agent": lambda w: look,
    "AgentRegistry.add.name": lambda w: None,
    "AgentRegistry.card.name": lambda w: "look",
    "AgentRegistry.remove.name": lambda w: w.added(),
    "AgentRegistry.delegate.prompt": lambda w: "look at it",
    "AgentRegistry.delegate.to": lambda w: "look",
    "AgentRegistry.task.id": lambda w: w.agents.delegate("x", to="look").wait().id,
    "AgentRegistry.route.capability": lambda w: "look",
    "Delegation.agents": lambda w: w.agents,
    "Passage.location": lambda w: sa.Location("a.md"),
    "Retrieval.index": lambda w: _documents(),
    "Session.decide.interrupt_id": lambda w: w.asked().id,
    "Session.decide.digests": lambda w: {"c1": w.asked().action_requests[0].digest},
    "Session.resume.decisions": lambda w: sa.Approve(),
    "Session.hand.interrupt": lambda w: GATE,
    "Session.id": lambda w: None,
    "Session.open.id": lambda w: "c1",
    "Session.restore.exported": lambda w: STATE.export(),
    "decision_data.decision": lambda w: sa.Approve(),
    "Session.withdraw.message": lambda w: w.queueing.queued[0].message,
    "Session.switch_branch.position": lambda w: 0,
    "Session.switch_branch.branch": lambda w: 1,
    "Session.cancel_run.run": lambda w: w.session().send("go"),
    "Session.publish.event": lambda w: events.Frozen(),
    "Session.follow.stream": lambda w: _stream(),
    "save_agent_state.exported": lambda w: STATE.export(),
    "save_state.exported": lambda w: STATE.export(),
    "State.restore.exported": lambda w: STATE.export(),
    "State.update.changes": lambda w: {"metadata": {}},
    "Agent.resume.result": lambda w: w.interrupted(),
    "Agent.aresume.result": lambda w: w.interrupted(),
    "Agent.resume.decisions": lambda w: sa.Approve(),
    "Agent.aresume.decisions": lambda w: sa.Approve(),
    "Agent.extract.output_type": lambda w: str,
    "Agent.aextract.output_type": lambda w: str,
    "map.inputs": lambda w: ["a"],
    "amap.inputs": lambda w: ["a"],
    "decisions_for.given": lambda w: sa.Approve(),
    "checked.given": lambda w: sa.Approve(),
    "Mount.storage": lambda w: sa.DiskStorage(w.folder / "disk"),
    "CallbackStorage.on_read": lambda w: lambda *path: "x",
    "Mount.default": lambda w: True,
    "BlobStore.storage": lambda w: sa.DiskStorage(w.folder / "disk"),
    "BlobStore.put.name": lambda w: f"n{next(w.numbers)}",
    "BlobStore.put.data": lambda w: b"x",
    "NatsStorage.bus": lambda w: sa.NatsBus(),
    "add_tool_feedback.queries": lambda w: {"tides": ["high tide"]},
    "embed.texts": lambda w: ["x"],
    "aembed.texts": lambda w: ["x"],
    "Mount.is_like.other": lambda w: sa.Mount("Notes", sa.DiskStorage(w.folder / "other")),
    "VirtualFilesystem.mount.mount": lambda w: sa.Mount("Notes", w.folder),
    "VirtualFilesystem.mkdir.path": lambda w: f"/new{next(w.numbers)}",
    "VirtualFilesystem.diff.a": lambda w: w.files.snapshot(),
    "Mount.outside.path": lambda w: "a.md",
    "replace_text.new": lambda w: "y",
    "VirtualFilesystem.edit.change": lambda w: lambda entry: "y",
    "VirtualFilesystem.subscribe.callback": lambda w: lambda *event: None,
    "VirtualFilesystem.track.changes": lambda w: Changes(),
    "VirtualFilesystem.read_lines.path": lambda w: "/a.md",
    "VirtualFilesystem.restore.id": lambda w: w.files.snapshot(),
    "VirtualFilesystem.scope": lambda w: ("test", 2),
    "open_filesystem.scope": lambda w: ("test", 3),
    "Filesystems.*.scope": lambda w: ("test", 4),
    "FallbackModel.models": lambda w: [sa.ScriptedModel(["hi"])],
    "RecordedModel.cache": lambda w: str(w.folder / "cassette.jsonl"),
    "ResponseCache.path": lambda w: w.folder / "cache",
    "Cassette.path": lambda w: w.folder / "cassette.jsonl",
    "Cassette.at.path": lambda w: w.folder / "cassette.jsonl",
    "Cassette.keep_of.old": lambda w: _cassette(w.folder / "old.jsonl"),
    "DiskStorage.path": lambda w: w.folder / "disk",
    "FsspecStorage.url": lambda w: "memory://x",
    "SQLStorage.url": lambda w: "sqlite://",
    "ConversationStore.url": lambda w: "sqlite://",
    "ConversationStore.scoped.scope": lambda w: sa.Scope(user=1),
    "ConversationStore.backup.path": lambda w: _store_file(w),
    "ConversationStore.backup.to": lambda w: w.folder / f"copy{next(w.numbers)}.db",
    "append_display_message.row": lambda w: {
        "message_type": "assistant",
        "content_type": "text",
        "content": {"text": "x"},
    },
    "save_row.row": lambda w: _row(),
    "append_text_message.message_type": lambda w: "assistant",
    "update_tool_status.status": lambda w: "executing",
    "record_decision.decision": lambda w: "approved",
    "record_hitl_decision.decision": lambda w: "approved",
    "save_state.context": lambda w: "on_completion",
    "ConversationStore.to_frame.kind": lambda w: "messages",
    "frames.frame_of.conversations": lambda w: [],
    "frames.conformed.columns": lambda w: {},
    "frames.conformed.frame": lambda w: w.penguins,
    "frames.framed.columns": lambda w: {},
    "frames.framed.values": lambda w: {},
    "to_frame.sources": lambda w: w.session(),
    "plot_timeline.source": lambda w: w.waiting(),
    "plot_usage.source": lambda w: w.waiting(),
    "save_frame.frame": lambda w: w.session().to_frame("messages"),
    "save_frame.path": lambda w: w.folder / "frame.csv",
    "load_frame.path": lambda w: _saved(w),
    "HumanInTheLoop.interrupt_on": lambda w: {"look": True},
    "DebugLog.directory": lambda w: w.folder / "logs",
    "Sessions.start.id": lambda w: "s1",
    "Sessions.*.id": lambda w: "s1",
    "Interrupt.type": lambda w: "hitl",
    "Todo.content": lambda w: "greet",
    "put_todo.todo": lambda w: sa.Todo("greet"),
    "ImagePart.data": lambda w: "aGk=",
    "ImagePart.of.value": lambda w: "https://x.no/a.png",
    "as_tool.name": lambda w: "ask_it",
    "as_tool.description": lambda w: "Knows it.",
    "to_frame.kind": lambda w: "messages",
    "Scope.user": lambda w: "ann",
    "Message.tool.results": lambda w: [RESULT],
    "Message.of.value": lambda w: MESSAGE,
    "ToolResult.content": lambda w: "x",
    "Respond.answer": lambda w: "x",
    "resolve_model.spec": lambda w: "demo",
    "Tool.from_schema.schema": lambda w: SCHEMA,
    "Tool.display.arguments": lambda w: {},
    "Tool.refusal.ctx": lambda w: sa.ToolContext(w.context(), STATE, "t1", lambda *said: None),
    "SubAgentConfig.tools": lambda w: [look],
    "CompiledSubAgent.agent": lambda w: w.agent,
    "headless.execute.path": lambda w: Path("x.ipynb"),
    "headless.main.arguments": lambda w: ["x.ipynb"],
    "cli.main.arguments": lambda w: ["version"],
    "project.Options.folder": lambda w: w.folder / "project",
    "project.Options.package": lambda w: "shop",
    "project.existing.folder": lambda w: w.folder,
    "project.write.folder": lambda w: w.folder / "written",
    "project.existing.paths": lambda w: [Path("a.py")],
    "project.write.files": lambda w: {Path("a.py"): "x"},
    "project.rendered.options": lambda w: _project(w.folder / "project"),
    "messages.parts_text.parts": lambda w: [sa.TextPart("x")],
    "tools.as_tool.value": lambda w: look,
    "tour.*.penguins": lambda w: w.penguins,
    "replace_lines.new": lambda w: ["y"],
    "replace_lines.start": lambda w: 1,
    "replace_lines.end": lambda w: 1,
    "replace_text.old": lambda w: "x",
    "Expression.lines_found.lines": lambda w: ["x"],
    "mapping.Row.messages": lambda w: (MESSAGE,),
    "map_rows.progress": lambda w: False,
    "amap_rows.progress": lambda w: False,
    "run_row.row": lambda w: _map_row(),
    "run_row.asker": lambda w: w.agent,
    "map_rows.inputs": lambda w: ["a"],
    "Panel.session": lambda w: w.session(),
    "AgentSystem.add_tool.tool": lambda w: look,
    "AgentSystem.use.middleware": lambda w: sa.AskUser,
    "AgentSystem.agent.blueprint": lambda w: w.blueprint,
    "AgentSystem.check.blueprint": lambda w: w.blueprint,
    "AgentSystem.add_agent.blueprint": lambda w: w.blueprint,
    "hub.Blueprint.name": lambda w: "guide",
    "hub.Hub.system": lambda w: w.system,
    "hub.Hub.store": lambda w: "sqlite://",
    "hub.Hub.agency.id": lambda w: w.agency.id,
    "hub.Hub.agency_of.id": lambda w: w.agency.id,
    "hub.Hub.agency_of.thread_id": lambda w: w.thread().record.id,
    "AgentCard.from_a2a.data": lambda w: w.agents.card("look").to_a2a("https://example.org/a2a"),
    "Session.retry.run_id": lambda w: "",
    "Hub.kept.agency": lambda w: w.shown[0],
    "Hub.kept.id": lambda w: w.shown[1],
    "Hub.*.agency": lambda w: w.agency,
    "Hub.*.type": lambda w: "guide",
    "Hub.*.thread": lambda w: w.thread(),
    "Hub.*.limits": lambda w: importlib.import_module("sagents_nb.hub.limits").Limits(),
    "Hub.show.notebook": lambda w: "trip.ipynb",
    "Hub.show.session": lambda w: sa.Session(w.agent, store=w.hub.store),
    "Hub.*.id": lambda w: w.thread().record.id,
    "Hub.blueprint_versions.name": lambda w: "guide",
    "Hub.delete_blueprint.name": lambda w: _own(w),
    "Hub.save_blueprint.changes": lambda w: {"name": "guide", "prompt": "Be kind."},
    "Hub.set_variables.variables": lambda w: {"x": 1},
    "Hub.save_variables.changes": lambda w: {"x": 1},
    "Hub.delete_variable.name": lambda w: _variable(w),
    "Thread.approve.approved": lambda w: True,
    "Recording.request": lambda w: msgspec.Raw(b"{}"),
    "load_ipython_extension.shell": lambda w: None,
}
BY_NAME: dict[str, Callable[[World], Any]] = {
    "agent": lambda w: w.agent,
    "session": lambda w: w.session(),
    "store": lambda w: w.store,
    "model": lambda w: sa.ScriptedModel(["hi"]),
    "state": lambda w: STATE,
    "other": lambda w: STATE,
    "message": lambda w: MESSAGE,
    "messages": lambda w: [MESSAGE],
    "request": lambda w: REQUEST,
    "interrupt": lambda w: GATE,
    "result": lambda w: RESULT,
    "entry": lambda w: w.entry,
    "entries": lambda w: [],
    "recording": lambda w: w.recording,
    "mounts": lambda w: [],
    "prompt": lambda w: "hi",
    "content": lambda w: "hi",
    "path": lambda w: "/a.md",
    "a": lambda w: "/a.md",
    "old": lambda w: "/a.md",
    "scope": lambda w: None,
    "function": lambda w: look,
    "handler": lambda w: look,
    "callback": lambda w: lambda event: None,
    "turns": lambda w: ["hi"],
    "todos": lambda w: [],
    "status": lambda w: "pending",
    "arguments": lambda w: {},
    "data": lambda w: {},
    "custom": lambda w: {},
    "metadata": lambda w: {},
    "info": lambda w: {},
    "said": lambda w: {},
    "schema": lambda w: SCHEMA,
    "id": lambda w: "c1",
    "conversation_id": lambda w: "c1",
    "tool_call_id": lambda w: "t1",
    "interrupt_id": lambda w: "i1",
    "emitter": lambda w: w.emitter(),
    "ctx": lambda w: w.context(),
    "context": lambda w: sa.AgentContext(),
    "config": lambda w: sa.AgentLoopConfig(sa.ScriptedModel(["hi"])),
    "kind": lambda w: "messages",
    "epoch": lambda w: 1,
    "index": lambda w: 0,
    "usage": lambda w: sa.Usage(),
}


@functools.cache
def maker_of(where: str) -> Callable[[World], Any] | None:
    for end, make in GOOD.items():
        pattern = re.escape(end).replace(r"\*", r"\w+")
        if re.search(rf"(^|\.){pattern}$", where):
            return make
    return None


def good(world: World, path: str, argument: Argument) -> Any:
    where = f"{path}.{argument.name}"
    if make := maker_of(where):
        return make(world)
    if argument.name in BY_NAME:
        return BY_NAME[argument.name](world)
    for value in ("x", 1, None, [], {}, lambda: None):
        if fits(value, argument.annotation):
            return value
    raise LookupError(f"no good value for {where}: {argument.annotation}")


def _stream() -> Any:
    from sagents_nb.runtime.event_stream import EventStream

    return EventStream()


class Embeds(sa.ScriptedModel):
    """A model that gives a vector for each text."""

    def __init__(self) -> None:
        super().__init__([])

    async def vectors(self, texts: Any, dimensions: int | None) -> Any:
        return [[1.0]] * len(texts)


def _blobs(world: World) -> sa.BlobStore:
    blobs = sa.BlobStore(sa.DiskStorage(world.folder / "disk"))
    if not blobs.list():
        blobs.put("x", b"x")
    return blobs


def _documents() -> sa.DocumentIndex:
    index = sa.DocumentIndex()
    index.add({"tides": "High tide is at six."})
    return index


def _cassette(path: Path) -> Any:
    from sagents_nb.models.cache import Cassette

    return Cassette(path)


def _row() -> Any:
    from sagents_nb.store import Row

    return Row("assistant", "text", {"text": "x"})


def _map_row() -> Any:
    from sagents_nb.mapping import Row

    return Row("k", (MESSAGE,))


def _saved(world: World) -> Path:
    path = world.folder / "saved.csv"
    if not path.exists():
        sa.save_frame(world.session().to_frame("messages"), path)
    return path


def _store_file(world: World) -> Path:
    path = world.folder / "agents.db"
    if not path.exists():
        sa.ConversationStore(path).close()
    return path


def _project(folder: Path) -> Any:
    from sagents_nb.project import Options

    return Options(folder=folder, package="shop")


def _own(world: World) -> str:
    world.hub.save_blueprint(world.agency, {"name": "guide", "prompt": "Be kind."})
    return "guide"


def _variable(world: World) -> str:
    world.hub.save_variables(world.agency, {"x": 1})
    return "x"


# Of what a method is called.
OBJECTS: dict[str, Callable[[World], Any]] = {
    "Limited": lambda w: sa.Limited(sa.ScriptedModel(["hi"] * 99), concurrent=9),
    "Priced": lambda w: sa.Priced(sa.ScriptedModel(["hi"] * 99), input=1.0, output=2.0),
    "AnthropicModel": lambda w: sa.ScriptedModel(["hi"] * 99),
    "AnthropicModel.embed": lambda w: Embeds(),
    "AnthropicModel.aembed": lambda w: Embeds(),
    "BlobStore": lambda w: _blobs(w),
    "LocalBus": lambda w: sa.LocalBus(),
    "DocumentIndex": lambda w: _documents(),
    "AgentRegistry": lambda w: w.agents,
    "AgentCard": lambda w: w.agents.card("look"),
    "Task": lambda w: w.agents.delegate("x", to="look"),
    "Task.respond": lambda w: w.agents.delegate("x", to="ask").wait(),
    "Agent": lambda w: w.agent,
    "Agent.resume": lambda w: agent_of("done", **GATED),
    "Agent.aresume": lambda w: agent_of("done", **GATED),
    "Agent.extract": lambda w: agent_of(call("submit", value="x")),
    "Agent.aextract": lambda w: agent_of(call("submit", value="x")),
    "Session": lambda w: w.session(),
    "Session.resume": lambda w: w.waiting(),
    "Session.approve": lambda w: w.waiting(),
    "Session.reject": lambda w: w.waiting(),
    "Session.decide": lambda w: w.told(),
    "Session.withdraw": lambda w: w.queueing,
    "Session.retry": lambda w: _failed(),
    "Session.switch_branch": lambda w: w.branched(),
    "State": lambda w: STATE,
    "Summarization": lambda w: sa.Summarization(),
    "Run": lambda w: _ended(w),
    "RunContext": lambda w: w.context(),
    "ToolContext": lambda w: sa.ToolContext(w.context(), STATE, "t1", lambda *said: None),
    "Tool": lambda w: sa.tool(look),
    "Mount": lambda w: sa.Mount("Notes", sa.DiskStorage(w.folder / "disk")),
    "ConversationStore": lambda w: w.store,
    "ScopedStore": lambda w: w.store,
    "ConversationStore.resolve_interrupted_tool_result": lambda w: w.interrupting(),
    "ResponseCache": lambda w: sa.ResponseCache(w.folder / "cache"),
    "Cassette": lambda w: _cassette(w.folder / "cassette.jsonl"),
    "CallbackStorage": lambda w: sa.CallbackStorage(
        on_read=lambda path, *rest: "x",
        on_write=lambda *rest: None,
        on_delete=lambda *rest: None,
        on_list=lambda *rest: [],
    ),
    "DiskStorage": lambda w: sa.DiskStorage(w.folder / "disk"),
    "FsspecStorage": lambda w: sa.FsspecStorage("memory://x"),
    "SQLStorage": lambda w: sa.SQLStorage("sqlite://"),
    "DebugLog": lambda w: sa.DebugLog(w.folder / "logs"),
    "VirtualFilesystem": lambda w: w.files,
    "files.Filesystems": lambda w: sa.filesystems,
    "files.Expression": lambda w: importlib.import_module("sagents_nb.files").Expression("x"),
    "session.Sessions": lambda w: sa.sessions,
    "session.Sessions.get": lambda w: _with_s1(w),
    "session.Sessions.stop": lambda w: _with_s1(w),
    "events.Emitter": lambda w: w.emitter(),
    "hub.AgentSystem": lambda w: w.system,
    "hub.Hub": lambda w: w.hub,
    "hub.Thread": lambda w: w.thread(),
    "hub.Thread.approve": lambda w: w.asking(),
    "notebook.Panel": lambda w: importlib.import_module("sagents_nb.notebook").Panel(w.session()),
}


def _with_s1(world: World) -> Any:
    sa.sessions.start(world.agent, id="s1")
    return sa.sessions


def _failed() -> sa.Session:
    """A session whose last run failed."""
    session = sa.Session(agent_of(sa.ModelError("down", kind="auth"), "done"))
    with contextlib.suppress(sa.ModelError):
        session.send("go").result()
    return session


def _ended(world: World) -> sa.Run:
    run = world.session().send("go")
    run.result()
    return run


def bound(world: World, public: Public) -> Callable[..., Any]:
    if public.owner is None:
        return public.function
    name = public.path.rpartition(".")[2]
    member = inspect.getattr_static(public.owner, name)
    if isinstance(member, classmethod | staticmethod):
        return getattr(public.owner, name)  # type: ignore[no-any-return]
    make = OBJECTS.get(public.path) or OBJECTS[public.path.rpartition(".")[0]]
    return getattr(make(world), name)  # type: ignore[no-any-return]


# What is behind ``**``: the names, with what they should be.
AROUND = {
    name: annotation
    for name, annotation in hints_of(SessionOptions).items()
    if name not in ("store", "inactivity_timeout", "message_preprocessor")
}
OVERRIDES = {
    name: hints_of(sa.Agent.__init__)[name]
    for name in (
        "model",
        "system_prompt",
        "options",
        "tool_context",
        "max_runs",
        "until_tool",
        "until_tool_success",
        "tool_timeout",
        "max_parallel_tools",
        "budget",
    )
}
LIMITS = dict.fromkeys(("max_file_size", "max_total_size", "max_entries", "max_depth"), int)
FURTHER: dict[str, dict[str, Any]] = {
    "Session": {"presence_timeout": float | None},
    "Session.open": AROUND,
    "session.Sessions.start": AROUND,
    "Agent.run": OVERRIDES,
    "Agent.with_": OVERRIDES,
    "Session.send": OVERRIDES,
    "open_filesystem": LIMITS,
    "files.Filesystems.open": LIMITS,
    "ConversationStore.update_conversation": {"title": str | None, "metadata": dict[str, Any]},
    "tool": {
        n: a
        for n, a in hints_of(sa.Tool.__init__).items()
        if n not in ("function", "arguments", "return")
    },
}

# the reviewed lists

# What is not called here, and why.
LEFT_OUT = {
    r"events\..*|\w*Delta": "what happens, made for each piece of an answer by the loop alone",
    r"(TextPart|ThinkingPart|ProviderPart|ImagePart|FilePart|JsonPart|Message|Usage)"
    r"|ToolCall|ToolResult|ActionRequest|ModelRequest|tools\.ToolSpec": (
        "a record that each turn makes: looked at where it comes in from people"
    ),
    r"RunResult|Asked|store\.(DisplayMessage|Row)|files\.(Blob|FileStats|Snapshot|FileEntry)"
    r"|mapping\.(Answer|Row)|frames\.(Column|Conversation)|models\.cache\.(Asked|Recording)"
    r"|store\.schema\.Tables": "what we give, and nobody else makes",
    r"Run|RunContext|ToolContext|store\.scoped\.ScopedStore": "made by the loop, session or store",
    r"Run\.(read|stand|received|resolve|never_began|refused|refuse_inside)|RunContext\.\w+"
    r"|Agent\.(new_run|overridden|checked)|Session\.(by_policy|follow|when_kept)|errors\.pass_on": (
        "how the parts of a run speak with each other"
    ),
    r"AgentRegistry\.(find|start|known|agent_for|agent_named|is_function)": (
        "how the parts of delegation speak with each other"
    ),
    r"Task\.(go|publish|stop_after|returned|ask|emit|say|progress)": (
        "how a task and whoever works on it speak with each other"
    ),
    r"TaskContext\.\w+": "of a function that works on a task: tests/registry tries them",
    r"AgentCard|Artifact|Task|TaskContext|TaskRecord": (
        "what a registry or a store gives, and nobody else makes"
    ),
    r"\w+\.(before_\w+|after_\w+|on_event|on_answer|on_session_start|handle_\w+|check_agent|repeats"
    r"|check_decisions)": "a hook, which the loop calls in each turn",
    r"(\w+Model|Limited|Priced)\.(stream|body|encoded_body|reader|secrets|where|identity"
    r"|vectors|finds_tools)": ("of a model, which the loop calls"),
    r"models\.cache\.(asked|Cassette\.(get|put|keep_of))": (
        "of a recording, which its model calls"
    ),
    r"FileSystem\.\w+|SubAgents\.start_subagent|Delegation\.\w+": (
        "a tool: its schema checks what a model says"
    ),
    r"messages\.(Field|names_in|filled|message_of|fields_of|brief_of)": (
        "of a prompt with names in braces, which the notebook fills"
    ),
    r"\w+Storage\.\w+": "of a storage, which a filesystem calls: its conformance is tested",
    r"(store\.)?\w*(Store|Persistence)\.(save_state|load_state|save_message|save_row"
    r"|update_tool_status|record_decision|resolve_tool_result|work_of)|store\.rows_of"
    r"|mapping\.Engine\.run": (
        "of a place where conversations are kept, which a session calls at each message"
    ),
    r"tools\.(\w*Arguments.*|converted|described|description_of|is_\w+|own_names|plain|read_arguments"
    r"|readable|short_description|type_name)|files\.Expression\.\w+|messages\.(image_(of|type)|figure_of|told_usage)|interrupts\.is_decision"
    r"|notebook\.headless\.retry_start": "a helper of ours that its module does not hide",
    r"mapping\.a?map_rows": "what Agent.map hands its arguments on to",
    r"(files\.conformance|notebook\.testing\.plugin)\..*": "called by pytest",
    r"hub\.(Agency|Thread|ThreadRecord)": "what a hub gives, and nobody else makes",
    r"hub\.Schedule(\.next_after)?": "fields that belong together: test_schedules tries them",
    r"hub\.Thread\.(replace_agent|close|tell|report|decide)": "how the parts of a hub speak",
    r"NatsBus\.\w+|LocalBus\.request": "of those who listen to a bus: tests/bus tries them",
    r"cli\.run_demo": "a program for a terminal, which takes seconds",
}
# What is taken though it is not of the annotation, or of one that says nothing, and why.
TAKEN = {
    r"Agent\.(map|amap)\.inputs|mapping\.\w+\.inputs": "anything that can be iterated",
    r".*\.(scope|owner)": "a scope is anything of an application's own",
    r"NotebookTools\.shell|unload_ipython_extension\.shell": "one that is none has nothing of ours",
    r"(Session|State)\.restore_or_new\.exported": "its purpose: what cannot be read is logged",
    r"(Respond|Task\.respond)\.answer|ToolOutput\.(content|artifact)|State\.(put|get)_metadata\.(value|default)"
    r"|Session\.notify_middleware\.message|interrupts\.(canonical_json|digest_of)\.\w+": (
        "a value of people's own, kept or passed on as it is"
    ),
    r"Session\.send\.\w+|Agent\.run\.\w+": "None leaves the agent's own, as documented",
    r"project\.existing\.paths": "a dict is the list of its keys, and an empty one of none",
    r"ConversationStore\.create_conversation\.metadata": "what is no JSON is kept as what it says",
    r"Todo\.status": "an unknown word becomes 'pending', as documented",
    r"State\.todos": "None says nothing of todos, as documented",
    r"(open_filesystem|files\.Filesystems\.open)\.max_\w+": (
        "limits are for one that is not open yet, as documented"
    ),
    r"notebook\.Panel\.send\.\w+": "ipywidgets' own: without a kernel it sends nothing",
    r"notebook\.Panel\.set_state\.\w+": "its purpose: a page changes nothing",
    r"State\.metadata": "made anew in each turn, so its keys are not looked at",
}
# What comes raw, and why.
RAW = {
    r"VirtualFilesystem\.edit\.change|\w+\.a?complete\.on_text": (
        "what a function of people's raises is passed on"
    ),
    r"notebook\.headless\.execute\.\w+": "a notebook that is not there is Python's own OSError",
    r"(VirtualFilesystem\.register\.entries|frames\.frame_of\.conversations"
    r"|project\.existing\.paths|files\.replace_lines\.new|notebook\.headless\.main\.arguments)": (
        "what a generator gives is known once it is used up"
    ),
}


def is_left_out(public: Public) -> bool:
    """Also every protocol, which others write, and exception: it carries what it is given."""
    if isinstance(public.function, type) and issubclass(public.function, BaseException):
        return True
    if is_protocol(public.owner or public.function):
        return True
    return reason_in(LEFT_OUT, public.path) is not None


def reason_in(table: dict[str, str], path: str) -> str | None:
    return next((why for pattern, why in table.items() if re.fullmatch(pattern, path)), None)


PUBLIC = {
    public.path: public
    for public in of_the_public_face()
    if not is_left_out(public) and arguments_of(public)
}


# what comes of a call


def outcome(
    world: World, public: Public, arguments: list[Argument], put: Argument, value: Any
) -> str:
    """ "" if all is well, else what is wrong."""
    try:
        called(world, public, arguments, {put.name: value})
    except sa.SagentsError as error:
        text = str(error)
        if not re.fullmatch(r"[^\n]{10,2200}", text) or not text.strip():
            return f"unclear: {text[:200]!r}"
        return "clear"
    except SystemExit:
        return "clear" if public.path.endswith("main") else "raw: SystemExit"
    except TimeoutError:
        return "clear"  # of Run.result, as documented
    except Exception as error:
        if reason_in(RAW, f"{public.path}.{put.name}"):
            return ""
        return f"raw: {type(error).__name__}: {str(error)[:100]}"
    annotation = put.annotation
    if (annotation is Any and not isinstance(value, Thing)) or (
        annotation is not Any and fits(value, annotation)
    ):
        return ""
    return "" if reason_in(TAKEN, f"{public.path}.{put.name}") else "silent"


BY_PLACE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)


def called(world: World, public: Public, arguments: list[Argument], given: dict[str, Any]) -> None:
    """Call it with what is given, and good values for whatever else is required."""
    required = {a.name: good(world, public.path, a) for a in arguments if a.required}
    given = {**required, **given}
    positional: list[Any] = []
    for argument in arguments:
        if argument.kind in BY_PLACE and argument.name in given:
            positional.append(given.pop(argument.name))
    made = bound(world, public)(*positional, **given)
    if isinstance(public.function, type) and public.path != "Respond":  # which shows any answer
        repr(made)  # as a cell does that ends with it
    driven(made, public)


def driven(value: Any, public: Public) -> None:
    """Have what is lazy happen."""
    if public.path in ("tool",) and callable(value) and not isinstance(value, sa.Tool):
        value(look)
    elif inspect.iscoroutine(value):
        run(value)
    elif hasattr(value, "__aiter__") and public.path != "Session.events":  # which has no end
        run(_some(value))
    elif isinstance(value, collections.abc.Iterator):
        for _, _ in zip(range(9), value, strict=False):
            pass
    elif isinstance(value, sa.Session | FileSystem) and public.path != "Session":
        value.close()
    elif isinstance(value, sa.Run) and public.path.startswith("Session."):
        with contextlib.suppress(sa.AgentError):
            value.result(30)


async def _some(stream: Any) -> None:
    count = 0
    async with (
        contextlib.aclosing(stream) if hasattr(stream, "aclose") else contextlib.nullcontext()
    ):
        async for _ in stream:
            count += 1
            if count > 50:
                return


# the tests


@pytest.fixture(autouse=True)
def nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a value makes on the disk is made here, no key is found, no figure stays open."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SAGENTS_MODEL", "SAGENTS_REPLAY"):
        monkeypatch.delenv(name, raising=False)
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", PUBLIC)
def test_whatever_is_given_is_taken_or_refused_in_a_sentence(path: str, tmp_path: Path) -> None:
    public, world = PUBLIC[path], World(tmp_path)
    arguments = arguments_of(public)
    wrong = [
        f"{argument.name}={name}: {said}"
        for argument in arguments
        for name, make in VALUES.items()
        if (said := outcome(world, public, arguments, argument, make())) not in ("", "clear")
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_of_them() -> None:
    assert len(VALUES) >= 27
    assert len(PUBLIC) > 180


@pytest.mark.parametrize("table", [LEFT_OUT, TAKEN, RAW])
def test_every_line_of_a_reviewed_list_is_about_something(table: dict[str, str]) -> None:
    everything = list(of_the_public_face())
    names = [public.path for public in everything]
    if table is not LEFT_OUT:
        names = [f"{p.path}.{a.name}" for p in PUBLIC.values() for a in arguments_of(p)]
    idle = [pattern for pattern in table if not any(re.fullmatch(pattern, n) for n in names)]
    assert not idle


NOT_HERE = {"load_ipython_extension", "notebook.headless.execute", "notebook.headless.main"}
"""What works in a kernel, or starts one."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted(PUBLIC.keys() - NOT_HERE))
def test_a_call_with_good_values_works(path: str, tmp_path: Path) -> None:
    """Else the matrix would prove little: all would be refused for something else."""
    public, world = PUBLIC[path], World(tmp_path)
    called(world, public, arguments_of(public), {})
