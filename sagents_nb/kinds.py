"""What arguments may be: checked where people call us, by the signature, in one sentence.

:func:`checked` is for functions and constructors, :func:`check_fields` for records. Both read
the annotations, when they are first needed, and refuse what is not of them. What annotations
cannot say, a range or a choice, is given beside them as a :class:`Kind`. Neither belongs where a
turn, an event or a piece of an answer passes: what comes from inside is right already.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from .errors import ConfigurationError, UnknownArgument

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """``what`` a value has to be, as the end of "is …", and whether one ``fits``."""

    what: str
    fits: Callable[[Any], bool]
    shows: bool = False
    """Whether an error may show the value: no key or text of people's can be meant."""


ANYTHING = Kind("anything", lambda value: True)
"""For an argument that its function checks itself."""


def is_array(value: Any) -> bool:
    """Whether it is an array, a series or a frame: of no truth, and a frame gives its columns.

    >>> is_array([1, 2]), is_array("x")
    (False, False)
    """
    return hasattr(type(value), "__array__")


def _is_list(value: Any) -> bool:
    if type(value) in (list, tuple):
        return True
    is_other = isinstance(value, str | bytes | Mapping) or is_array(value)
    return isinstance(value, Iterable) and not is_other


LIST = Kind("a list", _is_list)
"""For one whose items its function checks itself."""


def whole(least: int) -> Kind:
    """A whole number from ``least``.

    >>> whole(1).what, whole(1).fits(True)
    ('a whole number from 1', False)
    """
    return Kind(f"a whole number from {least}", lambda value: _is_whole(value) and value >= least)


MOST_ROWS = 2**63 - 1
"""What a database can count: to want more of it is to want all."""


def number(least: float, of: str = "", *, over: bool = False, finite: bool = False) -> Kind:
    """A number, ``of`` seconds say, from ``least``, or ``over`` it; never NaN.

    >>> number(0, "seconds", over=True).what, number(0).fits(math.nan)
    ('a number of seconds over 0', False)
    """
    highest = _MOST if finite else math.inf

    def fits(value: Any) -> bool:
        return _is_number(value) and least <= value <= highest and not (over and value == least)

    what = f"a {'finite ' * finite}number{' of ' * bool(of)}{of}"
    return Kind(f"{what} {'over' if over else 'from'} {least:g}", fits)


def one_of(*choices: Any) -> Kind:
    """One of these values.

    >>> one_of("queue", "steer").what
    "'queue' or 'steer'"
    """
    return Kind(_or([repr(choice) for choice in choices]), functools.partial(_is_in, choices), True)


def of(annotation: Any) -> Kind:
    """What a type annotation asks for: of what is behind ``**``, say."""
    return _kind_of(annotation, {}) or ANYTHING


def either(what: str, *kinds: Kind) -> Kind:
    """One of these kinds, together called ``what``."""
    return Kind(what, lambda value: any(kind.fits(value) for kind in kinds))


def _is_path(value: Any) -> bool:
    try:
        return isinstance(os.fspath(value), str) and b"\0" not in os.fsencode(value)
    except (TypeError, UnicodeEncodeError):
        return False


PATH = Kind("a path: text without NUL and half characters, or a Path", _is_path)
"""A path on a disk, that any operating system could have."""


def having(what: str, *names: str) -> Kind:
    """An object with these attributes, where there are several classes to be had."""
    return Kind(
        what, lambda value: not isinstance(value, type) and all(hasattr(value, n) for n in names)
    )


def or_none(kind: Kind, meaning: str = "") -> Kind:
    """That, or None, which has a ``meaning``."""
    what = f"{kind.what}, or None {meaning}".rstrip()
    return Kind(what, lambda value: value is None or kind.fits(value), shows=kind.shows)


_MOST = sys.float_info.max  # of which Python writes each digit, as it does not of 10**5000


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value <= _MOST


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return value == value
    return _is_whole(value)


def _is_in(choices: Sequence[Any], value: Any) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in choices)


_BUILTIN: frozenset[type] = frozenset({str, int, float, bool, types.NoneType})
_SCALARS = (str, int, float)


HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""A surrogate, which no file, database or wire takes."""


def plain(value: Any) -> Any:
    """A str, an int or a float of a class of somebody's own as one of the builtin type.

    Theirs may compare, hash and count as it likes, and raise. Anything else is given back.
    """
    if type(value) in _BUILTIN or not issubclass(type(value), _SCALARS):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def _is(kind: Kind, value: Any) -> bool:
    try:
        return kind.fits(value)
    except Exception:  # of a class of somebody's own, that does not let itself be looked at
        return False


# checking


@overload
def checked(function: Function, /) -> Function: ...
@overload
def checked(
    *, load: Callable[[], Any] | None = None, **kinds: Kind
) -> Callable[[Function], Function]: ...
def checked(
    function: Any = None, /, *, load: Callable[[], Any] | None = None, **kinds: Kind
) -> Any:
    """Have a call refuse arguments that are not what the signature says.

    A text or a number of a class of somebody's own becomes one of the builtin type.
    ``kinds`` are of arguments of which the annotation says too little. ``load`` is called before
    the annotations are read, for a module whose names come with the first use. Raises
    :class:`~sagents_nb.errors.ConfigurationError`.

    >>> @checked(attempts=whole(1))
    ... def ask(question: str, attempts: int = 1) -> None: ...
    >>> ask("why?", attempts=0)
    Traceback (most recent call last):
    sagents_nb.errors.ConfigurationError: ask(attempts=…) is a whole number from 1; not 0.
    """
    if function is None:
        return functools.partial(_checked, load=load, kinds=kinds)
    return _checked(function, load, kinds)


def _checked(
    function: Callable[..., Any], load: Callable[[], Any] | None, kinds: Mapping[str, Kind]
) -> Callable[..., Any]:
    tests: list[Callable[[Any], bool] | None] = []  # of the arguments by place
    by_name: dict[str, Kind] = {}
    rest: tuple[str, Kind] | None = None
    is_read = False

    def read() -> None:
        nonlocal by_name, rest, tests, is_read
        if load is not None:
            load()
        by_name, by_place, rest = _parameters(function, kinds)
        tests = [kind and kind.fits for _, kind in by_place]
        is_read = True

    def kinds_of(args: tuple[Any, ...], given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The name and the kind of each argument, those by place first."""
        _, by_place, _ = _parameters(function, kinds)
        further = rest or ("", None)
        yield from by_place[: len(args)]
        yield from [further] * (len(args) - len(by_place))
        yield from ((name, by_name.get(name)) for name in given)

    def made_plain(
        args: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = [
            value if kind is None else plain(value)
            for (_, kind), value in zip(kinds_of(args, given), _values(args, given), strict=True)
        ]
        return tuple(values[: len(args)]), dict(zip(given, values[len(args) :], strict=True))

    def refuse(args: tuple[Any, ...], given: dict[str, Any]) -> None:
        for (name, kind), value in zip(kinds_of(args, given), _values(args, given), strict=True):
            if kind is not None and not _is(kind, value):
                raise _refusal(_called(function), name, kind, value)

    def check(
        args: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as they are taken."""
        if not is_read:
            read()
        for value in _values(args, given) if given else args:
            if type(value) not in _BUILTIN and issubclass(type(value), _SCALARS):
                args, given = made_plain(args, given)
                break
        try:
            for test, value in zip(tests, args):  # noqa: B905  # as fast as it can be
                if test is not None and not test(value):
                    refuse(args, given)
            for name in given:
                kind = by_name.get(name)
                if kind is not None and not kind.fits(given[name]):
                    refuse(args, given)
            if rest is not None:
                for value in args[len(tests) :]:
                    if not rest[1].fits(value):
                        refuse(args, given)
        except ConfigurationError:
            raise
        except Exception:
            refuse(args, given)
            raise
        return args, given

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call(*args: Any, **given: Any) -> Any:
            try:
                args, given = check(args, given)
                return await function(*args, **given)
            except BaseException as error:
                unknown = _unknown(function, given, error)
                args, given = (), {}  # a traceback with locals shows no key
                if unknown:
                    raise UnknownArgument(unknown) from None
                raise
    else:

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            try:
                args, given = check(args, given)
                return function(*args, **given)
            except BaseException as error:
                unknown = _unknown(function, given, error)
                args, given = (), {}
                if unknown:
                    raise UnknownArgument(unknown) from None
                raise

    return call


def check_fields(record: Any, **kinds: Kind) -> None:
    """Refuse a record, of msgspec, with fields that are not what their annotations say.

    A text or a number of a class of somebody's own becomes one of the builtin type.
    For its ``__post_init__``; ``kinds`` are as for :func:`checked`.
    """
    cls: Any = type(record)
    for name, kind in _fields(cls).items():
        wanted = kinds.get(name, kind)
        value = getattr(record, name)
        if wanted is None:
            continue
        if type(value) not in _BUILTIN and issubclass(type(value), _SCALARS):
            value = plain(value)
            msgspec.structs.force_setattr(record, name, value)
        if not _is(wanted, value):
            raise _refusal(cls.__name__, name, wanted, value)


# What users of openai-agents, Pydantic AI, LangChain, chatlas and the SDKs call it.
_ARGUMENTS = {
    "instructions": "system_prompt",
    "system": "system_prompt",
    "prompt": "system_prompt",
    "deps": "tool_context",
    "context": "tool_context",
    "model_settings": "options",
    "settings": "options",
    "handoffs": "subagents",
    "agents": "subagents",
    "max_turns": "max_runs",
    "max_steps": "max_runs",
    "usage_limits": "budget",
    "result_type": "output_type",
    "response_format": "output_type",
    "toolsets": "tools",
    "functions": "tools",
    "read_only": "readonly",
    "requires_approval": "needs_approval",
    "session_id": "id",
    "conversation_id": "id",
    "request_limit": "model_calls",
    "total_tokens_limit": "tokens",
}
_HOOKS = {
    "on_agent_start": "before_run",
    "on_agent_end": "after_run",
    "on_llm_start": "before_model",
    "on_llm_end": "after_model",
    "on_tool_start": "before_tool",
    "on_tool_end": "after_tool",
    "wrap_model_call": "before_model_request",
    "wrap_tool_call": "before_tool",
    "before_tool_call": "before_tool",
    "after_tool_call": "after_tool",
    "before_model_call": "before_model",
    "after_model_call": "after_model",
}
# Of agents, results and sessions: the one of them that the object has.
_ATTRIBUTES = {
    **dict.fromkeys(("run_sync", "invoke", "kickoff", "chat", "ask"), ("run", "send")),
    **dict.fromkeys(("ainvoke", "run_async"), ("arun", "send")),
    **dict.fromkeys(("astream", "run_stream", "run_streamed", "iter"), ("stream", "send")),
    **dict.fromkeys(("stream_events", "run_stream_events"), ("stream", "send")),
    **dict.fromkeys(("run", "arun", "stream"), ("send",)),
    **dict.fromkeys(("clone", "override", "bind_tools"), ("with_",)),
    **dict.fromkeys(("final_output", "data", "structured_response"), ("output",)),
    **dict.fromkeys(("content", "output_text", "response"), ("text",)),
    **dict.fromkeys(("history", "new_messages", "new_items", "get_items"), ("messages",)),
    **dict.fromkeys(("all_messages", "to_input_list"), ("state.messages",)),
    "batch": ("map",),
    "abatch": ("amap",),
    "clear": ("reset",),
    "clear_session": ("reset",),
    "interruptions": ("interrupt",),
    "cost": ("usage.cost_usd",),
    "total_tokens": ("usage.total_tokens",),
}


def nearest(word: str, known: Iterable[str], alike: float = 0.75) -> str:
    """The one of ``known`` that is most ``alike``, and at least so much (to 1); "" if none is.

    >>> nearest("baseurl", ["api_key", "base_url"]), nearest("colour", ["api_key", "base_url"])
    ('base_url', '')
    """
    from difflib import get_close_matches  # 3 ms

    return next(iter(get_close_matches(word, sorted(known), 1, alike)), "")


def meant(name: str, known: Collection[str], alike: float = 0.75) -> str:
    """The one of ``known`` that somebody meant who wrote ``name``; "" if there is none.

    It is what users of other packages call so, else the :func:`nearest`.

    >>> meant("max_turns", ["max_runs", "tools"]), meant("tool", ["max_runs", "tools"])
    ('max_runs', 'tools')
    """
    for here in (_ARGUMENTS.get(name), _HOOKS.get(name)):
        if here in known:
            return here or ""
    return nearest(name, known, alike)


def no_such(where: str, name: str, known: Collection[str]) -> str:
    """The sentence that refuses an argument of that name.

    >>> no_such("Agent", "instructions", ["system_prompt", "tools"])
    'Agent(…) has no instructions=…; did you mean system_prompt=…?'
    >>> no_such("Agent", "colour", ["system_prompt", "tools"])
    'Agent(…) has no colour=…; it has system_prompt, tools.'
    """
    near = meant(name, known)
    hint = f"did you mean {near}=…?" if near else f"it has {', '.join(known)}."
    return f"{where}(…) has no {name}=…; {hint}"


def refuse_unknown(where: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise UnknownArgument for the first of ``given`` that is none of ``known``."""
    for name in given:
        if name not in known:
            raise UnknownArgument(no_such(where, name, known))


def no_attribute(of: object, name: str) -> Any:
    """For a ``__getattr__``: raises the AttributeError, which knows what others call so.

    What is misspelt Python says itself. A property that failed is asked again, for its own error.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> Agent(ScriptedModel(["Hello!"])).run_sync("hi")
    Traceback (most recent call last):
    AttributeError: 'Agent' object has no attribute 'run_sync'; did you mean 'run'?
    """
    known = dir(of)
    if name not in known:
        for here in (*_ATTRIBUTES.get(name, ()), _ARGUMENTS.get(name, "")):
            if here.partition(".")[0] in known:
                # Without the object, in which Python would look for what is spelled alike.
                said = f"{type(of).__name__!r} object has no attribute {name!r}"
                raise AttributeError(f"{said}; did you mean {here!r}?", name=name, obj=None)
    return object.__getattribute__(of, name)


class Record(msgspec.StructMeta):
    """The class of records that people make by hand, and seldom: it refuses as functions do.

    What is read from data is not made by a call, and costs nothing.

    >>> from sagents_nb import Budget
    >>> Budget(model_call=5)
    Traceback (most recent call last):
    sagents_nb.errors.UnknownArgument: Budget(…) has no model_call=…; did you mean model_calls=…?
    """

    def __call__(cls, *args: Any, **given: Any) -> Any:  # noqa: D102, N805  # one of a class
        try:
            return super().__call__(*args, **given)
        except TypeError:
            names, count = [*given], len(args)
            args, given = (), {}  # a traceback with locals shows no key
            refuse_unknown(cls.__name__, names, cls.__struct_fields__)
            _refuse_further(cls, count)
            _refuse_fewer(cls, names, count)
            raise


def _refuse_fewer(cls: Any, names: Collection[str], count: int) -> None:
    """Raise TypeError if a record was made without what it needs."""
    fields = msgspec.structs.fields(cls)
    given = {*cls.__struct_fields__[:count], *names}
    if missing := [f.name for f in fields if f.required and f.name not in given]:
        where, needed = cls.__name__, " and ".join(f"{name}=…" for name in missing)
        raise TypeError(f"{where}(…) needs {needed} too.") from None


def _refuse_further(cls: Any, count: int) -> None:
    """Raise UnknownArgument if a record was given more values without a name than it takes."""
    parameters = inspect.signature(cls).parameters.values()
    by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if count > len(by_place):
        where, first = cls.__name__, cls.__struct_fields__[0]
        known = f"they are {', '.join(by_place)}" if by_place else f"write {where}({first}=…)"
        most = f"{where}(…) takes {len(by_place) or 'no'} arguments without a name"
        raise UnknownArgument(f"{most}, not {count}; {known}.")


def _unknown(function: Callable[..., Any], given: Iterable[str], error: BaseException) -> str:
    """What to say instead where a call failed for an argument of an unknown name, else ""."""
    if not isinstance(error, TypeError):
        return ""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return ""
    names = [name for name in parameters if name not in ("self", "cls")]
    return next((no_such(_called(function), n, names) for n in given if n not in names), "")


def _values(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
    return (*args, *given.values())


def _parameters(
    function: Callable[..., Any], kinds: Mapping[str, Kind]
) -> tuple[dict[str, Kind], list[tuple[str, Kind | None]], tuple[str, Kind] | None]:
    """The kinds of a function's parameters by name and by place, and that of its ``*rest``."""
    by_name: dict[str, Kind] = dict(kinds)  # also of what is behind a ``**``
    by_place: list[tuple[str, Kind | None]] = []
    rest = None
    names = _Names(getattr(function, "__globals__", {}))
    for parameter in inspect.signature(function).parameters.values():
        kind = kinds.get(parameter.name) or _kind_of(parameter.annotation, names)
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = (parameter.name, kind) if kind is not None else None
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            by_place.append((parameter.name, kind))
        if kind is not None and parameter.kind not in (
            parameter.POSITIONAL_ONLY,
            parameter.VAR_KEYWORD,
        ):
            by_name[parameter.name] = kind
    return by_name, by_place, rest


@functools.cache
def _fields(cls: Any) -> dict[str, Kind | None]:
    kinds: dict[str, Kind | None] = {}
    for base in reversed(cls.__mro__):
        names = _Names(vars(sys.modules[base.__module__]))
        for name, annotation in inspect.get_annotations(base).items():
            if name in cls.__struct_fields__:
                kinds[name] = _kind_of(annotation, names)
    return kinds


def _called(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]


def _refusal(where: str, name: str, kind: Kind, value: Any) -> ConfigurationError:
    word = kind.shows and isinstance(value, str)
    # Where a text may be a path, it is this one that cannot.
    tell = shown_path if _is(kind, "x") else shown
    said = f"{plain(value)!r:.60}" if word else tell(value)
    return ConfigurationError(f"{where}({name}=…) is {kind.what}; not {said}.")


def shown(value: Any) -> str:
    """The kind of a value, not the value, which may be a secret; but what is plainly none.

    Never asks a class of somebody's own for anything.

    >>> shown(7), shown("x"), shown(""), shown([1, "x"])
    ('7', 'str', "'' (empty)", 'list of int, str')
    """
    value = plain(value)
    if isinstance(value, PurePath) and type(value).__module__.startswith("pathlib"):
        return _of_text(type(value).__name__, str(value))
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if -(10**9) < value < 10**9 else "so large a number"
    if isinstance(value, str):
        return "'' (empty)" if value == "" else _of_text("str", value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if type(value) in (list, tuple, set, frozenset, dict):
        within = sorted({type(item).__name__ for item in value})[:3]
        return type(value).__name__ + (f" of {', '.join(within)}" if within else " (empty)")
    return type(value).__name__


def shown_path(value: Any) -> str:
    """As :func:`shown`, of what is no path; also where this process could not write its name."""
    said = shown(value)
    if not isinstance(value, str | PurePath) or HALF_CHARACTER.search(str(value)):
        return said
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # LC_ALL=C without the UTF-8 mode of Python
        encoding = sys.getfilesystemencoding()
        return (
            f"{said} with a character that paths in {encoding} cannot have, which Python started "
            "with PYTHONUTF8=1 can"
        )
    return said


def _of_text(name: str, text: str) -> str:
    if "\0" in text:
        return f"{name} with NUL"
    return f"{name} with half a character" if HALF_CHARACTER.search(text) else name


def safe_repr(shown: Callable[[Any], str]) -> Callable[[Any], str]:
    """A ``__repr__`` without keys, as a name, an id or a path may hold one in a wrong place.

    It is also for an object whose constructor failed: a debugger asks for that.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> Agent.__new__(Agent)
    <Agent that was not made>
    >>> Agent(ScriptedModel([]), name="sk-0123456789abcdefghij", defaults=False)
    <Agent '[key]': ScriptedModel('scripted'), 0 tools>
    """

    @functools.wraps(shown)
    def show(of: Any) -> str:
        from .redaction import unkeyed  # with what it needs, as in errors

        try:
            return unkeyed(shown(of))
        except AttributeError:
            return f"<{type(of).__name__} that was not made>"

    return show


# annotations


class _ByName(type):
    """A class that is not loaded, or only for type checkers: known by its name.

    What is an instance of it has a class of that name.
    """

    def __getattr__(cls, name: str) -> _ByName:
        if name.startswith("_"):
            raise AttributeError(name)
        return _ByName(name, (), {})

    def __getitem__(cls, parts: Any) -> _ByName:
        return cls

    def __instancecheck__(cls, value: Any) -> bool:
        return any(base.__name__ == cls.__name__ for base in type(value).__mro__)


class _Names(dict[str, Any]):
    """The names that an annotation is written in."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, None) or _ByName(name, (), {})


def _kind_of(annotation: Any, names: Mapping[str, Any]) -> Kind | None:
    """What the annotation asks for; None if that is anything."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        # With builtins, though names has them: C code that imports looks for __import__ there.
        return _kind_of(eval(annotation, {"__builtins__": builtins}, names), names)
    if annotation in (Any, object, inspect.Parameter.empty):
        return None
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is None or annotation is types.NoneType:
        return Kind("None", lambda value: value is None)
    if isinstance(annotation, TypeVar):
        return _kind_of(annotation.__bound__, names) if annotation.__bound__ else None
    if origin is typing.Annotated:
        return _kind_of(parts[0], names)
    if origin is typing.Literal:
        return one_of(*parts)
    if origin in (typing.Union, types.UnionType):
        return _union([_kind_of(part, names) for part in parts])
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    base = origin or annotation
    if not isinstance(base, type):
        return None
    if base is type:
        if not parts or isinstance(parts[0], TypeVar):  # what msgspec takes for a type, say
            return None
        return Kind("a class", lambda value: isinstance(value, type))
    if issubclass(base, Callable):  # type: ignore[arg-type]
        return Kind("a function", callable)
    if issubclass(base, Mapping):
        return _mapping(*(_kind_of(part, names) for part in parts or (Any, Any)))
    if base in (list, tuple, set, frozenset) or (
        base.__module__ == "collections.abc" and issubclass(base, Iterable)
    ):
        fixed = base is tuple and parts[1:] != (...,)
        return _items(base, None if fixed or not parts else _kind_of(parts[0], names))
    if typing.Protocol in base.__bases__:
        return _protocol(base)
    return Kind(_named(base), lambda value: isinstance(value, base))


_PLAIN: dict[Any, Kind] = {
    str: Kind("text", lambda value: isinstance(value, str)),
    int: Kind("a whole number", _is_whole),
    float: Kind("a number", _is_number),
    bool: Kind("True or False", lambda value: isinstance(value, bool)),
    bytes: Kind("bytes", lambda value: isinstance(value, bytes)),
}


def _union(kinds: Sequence[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    tests = [kind.fits for kind in known]
    what = _or(list(dict.fromkeys(kind.what for kind in known)))

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110  # twice as fast as any()
            if test(value):
                return True
        return False

    return Kind(what, fits, known[0].shows)


def _mapping(key: Kind | None = None, item: Kind | None = None) -> Kind:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, Mapping)
            and (key is None or all(map(key.fits, value)))
            and (item is None or all(map(item.fits, value.values())))
        )

    of = " by text" if key is _PLAIN[str] else ""
    return Kind(f"a dict{of}", fits)


def _items(base: type, item: Kind | None) -> Kind:
    """A list, or what else gives its items; what gives them once only is not looked into."""
    wanted = (list, tuple) if base is tuple else base if base in (set, frozenset) else Iterable

    def fits(value: Any) -> bool:
        if not _is_list(value) or not isinstance(value, wanted):
            return False
        return item is None or not isinstance(value, Collection) or all(map(item.fits, value))

    plural = "a tuple" if base is tuple else "a list"
    return Kind(plural if item is None else f"{plural}, each of it {item.what}", fits)


def _protocol(base: type) -> Kind:
    names = {n for each in base.__mro__ for n in vars(each) if not n.startswith("_")}
    return having(_named(base), *names)


def _named(base: type) -> str:
    article = "an" if base.__name__[0] in "AEIOU" else "a"
    is_made = base.__module__.startswith("sagents_nb.") and typing.Protocol not in base.__bases__
    return f"{article} {base.__name__}{'(…)' if is_made else ''}"


def _or(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
