"""Every public name says what it takes and what it raises, and shows how it is used.

The names are those of ``sagents_nb.__all__``; of a class also its methods, and those it has of our
base classes. What a class says of a parameter holds for its methods too, and what a method says
for those that override it. That the examples run is seen by pytest, which runs all doctests.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_type_hints

import sagents_nb as sa
from sagents_nb import errors
from sagents_nb.tools import description_of

# A run, a session or a filesystem calls the methods of these: shown is one that is given to an
# agent or a mount.
PLUGGED_IN = (sa.ChatModel, sa.FileStorage, sa.Middleware)

# By why they need no example: names that nobody writes.
WITHOUT_EXAMPLE = {
    "%load_ext and %unload_ext call them": "load_ipython_extension unload_ipython_extension",
    "a session makes its runs with it": "Agent.loop",
    "a session, a magic or a panel calls them": """
        Run.ahead Run.awaited Run.awaited_in_cell Run.begin
        Run.interrupt_all Run.interrupt_check Run.never_began Run.read Run.received
        Run.refuse_inside Run.refused Run.resolve Run.stand Run.wait_in_line Run.waited
        RunResult.take_answer
        Session.by_policy Session.check_open Session.close_if_unneeded Session.follow Session.hand
        Session.when_kept
    """,
    "a session calls them, of whatever keeps it": """
        ConversationStore.creation_of ConversationStore.history ConversationStore.load_state
        ConversationStore.record_decision ConversationStore.resolve_tool_result
        ConversationStore.save_message ConversationStore.save_row ConversationStore.save_state
        ConversationStore.update_tool_status ConversationStore.work_of
    """,
    "a run counts with it": "RunContext.spend",
    "a registry, a delegation or a function's model calls them": """
        AgentRegistry.agent_for AgentRegistry.agent_named AgentRegistry.delegable AgentRegistry.find
        AgentRegistry.is_function AgentRegistry.known AgentRegistry.start Task.ask Task.emit Task.go
        Task.opened Task.progress Task.publish Task.returned Task.say Task.stop_after Task.stopped
    """,
    "it is publish, but later": "RunContext.publish_kept",
    "they need a server; LocalBus shows them": """
        NatsBus.client NatsBus.close NatsBus.publish NatsBus.request NatsBus.subscribe
    """,
}


class Public(NamedTuple):
    """A public function, class or method."""

    name: str
    value: Callable[..., Any]
    text: str
    """What it says, with what holds for it as well."""

    @property
    def said(self) -> str:
        """The text without its examples."""
        return re.sub(r"(?ms)^>>> .*?(?=\n\n|\Z)", "", self.text)

    @property
    def parameters(self) -> list[str]:
        """Those that have to be described; what a model is told of a tool is."""
        if hasattr(self.value, "__struct_fields__"):
            return list(self.value.__struct_fields__)
        if isinstance(self.value, type) and not own(self.value, "__init__"):
            return []
        told = told_to_models(self.value)
        names = inspect.signature(self.value).parameters
        return [name for name in names if name not in ("self", "cls", *told)]

    @property
    def raised(self) -> set[str]:
        """The errors that its own code makes and raises."""
        made = [self.value]
        if isinstance(self.value, type):
            made = [*own(self.value, "__init__")[:1], *own(self.value, "__post_init__")[:1]]
        trees = [ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(f)))) for f in made]
        return {
            node.exc.func.id
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
            and node.exc.func.id[:1].isupper()  # else a function that makes one
        }


def told_to_models(function: Callable[..., Any]) -> list[str]:
    """The parameters of a tool whose annotations describe them."""
    try:
        hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    except NameError:  # imported for type checkers alone, as no tool's are
        return []
    return [name for name, hint in hints.items() if description_of(hint)]


def ours(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "sagents_nb"]


def own(cls: type, name: str) -> list[types.FunctionType]:
    """That method as our classes define it, from the class itself upwards."""
    found = [getattr(m, "__func__", m) for m in (vars(base).get(name) for base in ours(cls))]
    functions = [inspect.unwrap(member) for member in found if callable(member)]
    return [
        function
        for function in functions
        if isinstance(function, types.FunctionType) and function.__module__ != "typing"
    ]


def described(cls: type, name: str = "") -> str:
    """What our classes say of one, or of a method of it."""
    above = [*ours(cls), *(each for each in PLUGGED_IN if issubclass(cls, each))]
    said = [function for each in above for function in own(each, name)] if name else []
    return "\n\n".join(inspect.cleandoc(each.__doc__ or "") for each in (*said, *above))


def public() -> Iterator[Public]:
    """Each once, by the first of its names."""
    seen: set[Any] = set()
    for name in sorted(sa.__all__):
        value = getattr(sa, name)
        if isinstance(value, types.FunctionType):
            yield Public(name, value, inspect.getdoc(value) or "")
            continue
        cls = value if isinstance(value, type) else type(value)
        if cls is value and ours(cls):
            yield Public(name, cls, described(cls))
        for method in sorted({method for base in ours(cls) for method in vars(base)}):
            functions = [each for each in own(cls, method) if not method.startswith("_")]
            if functions and functions[0] not in seen:
                seen.add(functions[0])
                yield Public(f"{name}.{method}", functions[0], described(cls, method))


EVERY = list(public())


def fails(check: Callable[[Public], Any]) -> list[str]:
    return [f"{item.name}: {found}" for item in EVERY if (found := check(item))]


def is_shown_elsewhere(item: Public) -> bool:
    """An error is in docs/guides/errors.md; what is plugged in, in the example of its class."""
    if isinstance(item.value, type):
        return issubclass(item.value, BaseException)
    owner, dot, _ = item.name.partition(".")
    value = getattr(sa, owner) if dot else None
    return isinstance(value, type) and issubclass(value, PLUGGED_IN)


def has_no_example(item: Public) -> str:
    shown = ">>> " in (item.value.__doc__ or "") or is_shown_elsewhere(item)
    return "" if shown else "it has no example"


def undescribed(item: Public) -> list[str]:
    return [name for name in item.parameters if not re.search(rf"\b{name}\b", item.said)]


def unsaid(item: Public) -> list[str]:
    return sorted(name for name in item.raised if not any(n in item.said for n in _or_above(name)))


def _or_above(name: str) -> list[str]:
    """An error's name, and those of the errors that it is one of."""
    error = getattr(errors, name, None)
    above = getattr(error, "__mro__", ())
    is_one = [c for c in above if issubclass(c, sa.SagentsError) and c is not sa.SagentsError]
    return [name, *(cls.__name__ for cls in is_one)]


def test_every_public_name_has_an_example() -> None:
    excepted = {name for names in WITHOUT_EXAMPLE.values() for name in names.split()}
    without = {item.name for item in EVERY if has_no_example(item)}
    assert sorted(without - excepted) == []
    assert sorted(excepted - without) == [], "they have one, or are gone: take them from the list"


def test_every_parameter_is_described() -> None:
    assert fails(undescribed) == []


def test_every_error_that_is_raised_is_named() -> None:
    assert fails(unsaid) == []


def test_what_is_checked_is_the_whole_face() -> None:
    names = {item.name for item in EVERY}
    assert {"Agent", "Agent.run", "Session.send", "Run.result", "tool", "sessions.start"} <= names
    assert {"State.merge", "VirtualFilesystem.read", "ConversationStore.backup"} <= names
    assert len(names) > 350


def new(value: Callable[..., Any]) -> Public:
    return Public("new", value, inspect.getdoc(value) or "")


def test_what_is_missing_is_found() -> None:
    def bare(prompt: str, wait: bool = False) -> None:
        """Say a prompt."""
        raise ValueError(prompt)

    def whole(prompt: str, wait: bool = False) -> None:
        """Say a ``prompt``, and ``wait``; raises ValueError.

        >>> whole("hi")
        """
        raise ValueError(prompt)

    checks = (has_no_example, undescribed, unsaid)
    assert [check(new(bare)) for check in checks] == ["it has no example", ["wait"], ["ValueError"]]
    assert not any(check(new(whole)) for check in checks)


def test_an_example_describes_no_parameter() -> None:
    def shown(prompt: str) -> None:
        """Say it.

        >>> shown(prompt="hi")
        """

    assert undescribed(new(shown)) == ["prompt"]
