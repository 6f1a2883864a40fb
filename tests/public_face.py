"""The public face: every name that users may rely on, with its signature, one a line.

Public is

- the package itself: its ``__all__``;
- each sub-package that names what it offers in an ``__all__``;
- the modules that notebooks, written projects, commands and storages of one's own import by
  their path, and the vocabulary (events, errors, messages, interrupts, tools): all that they
  define themselves, or what is named below;
- of a public class its constructor, methods, properties, fields and the attributes it gives
  itself in ``__init__``, its own and inherited from our classes; not those of a library's base.

A name with a leading underscore is private wherever it stands, and so is every module that is
not listed here. What has no underscore and is no promise all the same is named below, with why.

``fixtures/public_face.txt`` holds the lines. ``make public-face`` rewrites it, which is a
deliberate act: a line that goes or changes there breaks somebody's notebook, so the change
belongs into CHANGELOG.md. ``test_public_face.py`` has each line still hold; that something was
added needs no new list.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

LIST = Path(__file__).parent / "fixtures" / "public_face.txt"
ROOT = "sagents_nb"

# What has an ``__all__``; the first place of an object is where its members are listed.
PACKAGES = (
    ROOT,
    *(f"{ROOT}.{name}" for name in ("files", "frames", "middleware", "models", "models.cache")),
    *(f"{ROOT}.{name}" for name in ("models.demo", "session", "store", "mapping", "notebook")),
    *(f"{ROOT}.{name}" for name in ("hub", "project")),
)
MODULES = {
    f"{ROOT}.{module}": names.split()
    for module, names in {
        **dict.fromkeys(("events", "errors", "messages", "interrupts", "tools"), ""),
        **dict.fromkeys(("tour", "cli", "files.conformance"), ""),
        **dict.fromkeys(("notebook.headless", "notebook.testing", "notebook.testing.plugin"), ""),
        "store.schema": "VERSION Tables tables",
        "store.scoped": "ScopedStore",
    }.items()
}
NO_PROMISE = {
    f"{ROOT}.ResponseCache.turns": "the lock between those who ask the same at once",
    f"{ROOT}.models.cache.Cassette.turns": "the lock between those who ask the same at once",
}

# Types that only the annotations of public names tell of, by what they were called before.
RENAMED = {"Surroundings": "SessionOptions"}

Names = dict[str, list[str]]
"""By module: the public names in it."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MODULE_PATH = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")


def exposed() -> Names:
    """What is public by the rule above, in order."""
    names = {module: sorted(importlib.import_module(module).__all__) for module in PACKAGES}
    return names | {module: names or sorted(_defined(module)) for module, names in MODULES.items()}


def _defined(module: str) -> Iterator[str]:
    loaded = importlib.import_module(module)
    for node in ast.parse(inspect.getsource(loaded)).body:
        for name in _bound(node):
            if not name.startswith("_"):
                yield name


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def described(names: Names) -> dict[str, str]:
    """A line for each of these names that is there, and for each member of a class, by name."""
    lines: dict[str, str] = {}
    seen: dict[int, str] = {}
    for module, wanted in names.items():
        try:
            loaded = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            continue
        lines[module] = f"module {module}"
        for name in dict.fromkeys(wanted):
            path = f"{module}.{name}"
            try:
                value = getattr(loaded, name)
            except AttributeError:
                continue
            if isinstance(value, type | types.FunctionType):
                if id(value) in seen:
                    lines[path] = f"{path} is {seen[id(value)]}"
                    continue
                seen[id(value)] = path
            lines.update(_lines(path, value))
    return {path: line for path, line in lines.items() if path not in NO_PROMISE}


def _lines(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, type):
        yield path, _class_line(path, value)
        for name, member in sorted(_members(value).items()):
            yield f"{path}.{name}", member.format(path=f"{path}.{name}")
    elif inspect.isfunction(inspect.unwrap(value)):
        yield path, _function_line(value).format(path=path)
        for number, overload in enumerate(typing.get_overloads(value), 1):
            key = f"{path}[{number}]"
            yield key, _function_line(overload).format(path=key)
    elif typing.get_args(value):
        yield path, f"{path} = {' | '.join(_alternatives(value))}"
    else:
        yield path, f"{path}: {type(value).__name__}"


def _alternatives(alias: Any) -> list[str]:
    if typing.get_origin(alias) is typing.Literal:
        return [repr(value) for value in typing.get_args(alias)]
    if isinstance(alias, types.UnionType) or typing.get_origin(alias) is typing.Union:
        return [_annotation(value) for value in typing.get_args(alias)]
    return [_annotation(alias)]


def _class_line(path: str, cls: type) -> str:
    line = f"class {path}{_signature(cls) if _constructed(cls) else ''}"
    bases = [base.__name__ for base in cls.__mro__[1:-1] if _telling(base)]
    if bases:
        line += f" of {', '.join(bases)}"
    tag = getattr(getattr(cls, "__struct_config__", None), "tag", None)
    return line + (f" tagged {tag!r}" if tag else "")


def _telling(base: type) -> bool:
    """Whether an ``except`` or ``isinstance`` of a user's can name this base."""
    import sagents_nb

    name = base.__name__
    return getattr(builtins, name, None) is base or (
        name in sagents_nb.__all__ and getattr(sagents_nb, name) is base
    )


def _ours(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == ROOT]


def _constructed(cls: type) -> bool:
    """Whether our own code says how one is made."""
    if hasattr(cls, "__struct_config__"):
        return True
    if typing.Protocol in cls.__bases__:
        return False
    return any("__init__" in vars(base) or "__new__" in vars(base) for base in _ours(cls))


def _members(cls: type) -> dict[str, str]:
    """By name: the line of each public member, with ``{path}`` for where it is."""
    found: dict[str, str] = {}
    for base in reversed(_ours(cls)):
        for name, annotation in inspect.get_annotations(base).items():
            found[name] = _field(annotation)
        for name, annotation in _given_in_init(base):
            found[name] = _field(annotation) if annotation or name not in found else found[name]
        for name, value in vars(base).items():
            if isinstance(value, property):
                found[name] = _field(inspect.get_annotations(value.fget).get("return"))
            elif isinstance(value, classmethod | staticmethod):
                kind = type(value).__name__
                found[name] = f"{kind} {_function_line(getattr(cls, name))}"
            elif isinstance(value, types.FunctionType):
                found[name] = _function_line(value)
            elif isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
                found.setdefault(name, "{path}")
            elif name not in found:
                wrapped = getattr(value, "func", None)  # of a cached_property
                found[name] = (
                    _field(inspect.get_annotations(wrapped).get("return"))
                    if (inspect.isfunction(wrapped))
                    else "{path}"
                )
    return {name: line for name, line in found.items() if not name.startswith("_")}


def _given_in_init(cls: type) -> Iterator[tuple[str, str | None]]:
    """The attributes that ``__init__`` gives ``self``, with their annotation if they have one."""
    init = vars(cls).get("__init__")
    if not inspect.isfunction(init) or dataclasses.is_dataclass(cls):
        return
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(init)))):
        annotated = isinstance(node, ast.AnnAssign)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if annotated else []
        )
        for target in targets:
            match target:
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    yield name, ast.unparse(node.annotation) if annotated else None


def _field(annotation: Any) -> str:
    if annotation is None or annotation is inspect.Parameter.empty:
        return "{path}"
    return "{path}: " + _annotation(annotation).replace("{", "{{").replace("}", "}}")


def _function_line(function: Any) -> str:
    kind = "async def" if inspect.iscoroutinefunction(function) else "def"
    return kind + " {path}" + _signature(function).replace("{", "{{").replace("}", "}}")


def _signature(called: Any) -> str:
    struct = hasattr(called, "__struct_fields__")
    signature = _struct_signature(called) if struct else inspect.signature(called)
    parameters = [
        parameter.replace(
            annotation=parameter.annotation
            if parameter.annotation is parameter.empty
            else _Told(_annotation(parameter.annotation)),
            default=parameter.default
            if parameter.default is parameter.empty
            else _Told(_default(parameter.default)),
        )
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    returned = signature.return_annotation
    if isinstance(called, type) or returned is signature.empty:
        return str(inspect.Signature(parameters))
    return str(inspect.Signature(parameters, return_annotation=_Told(_annotation(returned))))


def _struct_signature(cls: Any) -> inspect.Signature:
    """As msgspec has it, but with the annotations as they are written."""
    written: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        written |= inspect.get_annotations(base)
    defaults = cls.__struct_defaults__
    required = len(cls.__struct_fields__) - len(defaults)
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD
            if name in cls.__match_args__
            else inspect.Parameter.KEYWORD_ONLY,
            annotation=written[name],
            default=inspect.Parameter.empty
            if number < required or defaults[number - required] is msgspec.NODEFAULT
            else defaults[number - required],
        )
        for number, name in enumerate(cls.__struct_fields__)
    ]
    return inspect.Signature(parameters)


class _Told:
    """Stands in a signature for what is written so."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _annotation(annotation: Any) -> str:
    """As text, without the paths of modules: something may move and stay what it was."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _MODULE_PATH.sub("", text)


def _default(value: Any) -> str:
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
        return str(value.__name__)
    if isinstance(value, str):
        return repr(value)
    text = _MODULE_PATH.sub("", _ADDRESS.sub("", repr(value)))
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return "..."
    return text


def read(text: str) -> dict[str, str]:
    """The lines of a list, by the name each is about."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {_name(line): line for line in lines}


def listed(lines: Iterable[str]) -> Names:
    """The names of modules' that these names are, or are members of."""
    modules = sorted((*PACKAGES, *MODULES), key=len, reverse=True)
    names: Names = {module: [] for module in (*PACKAGES, *MODULES)}
    for line in lines:
        if line in names:
            continue
        module = next(module for module in modules if line.startswith(module + "."))
        names[module].append(re.split(r"[.\[]", line[len(module) + 1 :])[0])
    return names


# What type checkers are told differently since the list was made; what is taken is the same.
RETYPED = {
    "sagents_nb.AnthropicModel": ("**options", "**parameters"),
    "sagents_nb.OpenAIChatModel": ("**options", "**parameters"),
    "sagents_nb.OpenAIModel": ("**options", "**parameters"),
    "sagents_nb.Run": ("session: Session", "session: Conversing"),
    "sagents_nb.Run.events": ("Callable[[Event]", "Callable[[AnyEvent]"),
    "sagents_nb.RunContext": ("Mapping[str, Tool]", "Mapping[str, Any]"),
    "sagents_nb.RunContext.tools": ("Mapping[str, Tool]", "Mapping[str, Any]"),
    "sagents_nb.Session.subscribe": ("Callable[[Event]", "Callable[[AnyEvent]"),
    "sagents_nb.mapping.run_row": ("Agent | Asking,", "Agent | Asking[Agent],"),
}


def broken(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """A sentence for each line that no longer holds."""
    lines = {name: line.replace(*RETYPED.get(name, ("", ""))) for name, line in before.items()}
    return [said for name, line in lines.items() for said in _changes(name, line, now.get(name))]


def _changes(name: str, before: str, now: str | None) -> Iterator[str]:
    if now is None:
        yield f"{name} is gone; it was: {before}"
    elif before != now and not _holds(before, now):
        yield f"{name} is no longer what it was: {before} -> {now}"


# What is written where nothing was promised of a type; a type may be given later.
_ANY = ("", "Any", "-> Any")


def _holds(before: str, now: str) -> bool:
    before, now = _spelled_out(before), _spelled_out(now)
    kind, _, rest = _parts(before)
    kind_now, _, rest_now = _parts(now)
    if kind == kind_now == "" and (rest[:1], rest_now[:1]) == ("=", "="):
        return set(rest[2:].split(" | ")) <= set(rest_now[2:].split(" | "))
    if kind == kind_now == "":  # an attribute or a property; either may say its type or not
        return rest == rest_now or rest in _ANY or not rest_now
    if kind != kind_now:
        return False
    called, tail = _split(rest)
    called_now, tail_now = _split(rest_now)
    return _takes(called, called_now) and (
        set(re.split(r"[ ,]+", tail)) <= set(re.split(r"[ ,]+", tail_now))
        if kind == "class"
        else tail == tail_now or tail in _ANY
    )


@functools.cache
def _aliases() -> dict[str, str]:
    """The names of types that the package gives, with what they stand for."""
    found: dict[str, set[str]] = {}
    package = importlib.import_module(ROOT)
    for path in Path(package.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as value):
                    text = ast.unparse(value)
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.BitOr()) as value
                ):
                    text = ast.unparse(value)
                case _:
                    continue
            if name.lstrip("_")[:1].isupper():
                found.setdefault(name, set()).add(_MODULE_PATH.sub("", text))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def _spelled_out(line: str) -> str:
    """The line with such names replaced: giving a type a name changes nothing for a caller."""
    head, opening, rest = line.partition("(") if "(" in line else line.partition(": ")
    word_or_text = re.compile(r"""'[^']*'|"[^"]*"|\b[A-Za-z_]\w*""")
    meant = RENAMED | _aliases()
    for _ in range(3):
        rest = word_or_text.sub(lambda found: meant.get(found[0], found[0]), rest)
    return head + opening + rest


def _takes(before: str, now: str) -> bool:
    """Whether whoever called it as ``before`` says can still: what was added is optional."""
    if not before:
        return True
    if not now:
        return False
    old, new = _parameters(before), _parameters(now)
    open_types = {p[:2]: p[2] for p in old if p[2] in _ANY}
    new = [(*p[:2], open_types.get(p[:2], p[2]), p[3]) for p in new]
    positional = [p for p in old if p[1] in ("posonly", "args")]
    if [p for p in new if p[1] in ("posonly", "args")][: len(positional)] != positional:
        return False
    added = [p for p in new if p not in old]
    return all(p in new for p in old) and all(p[3] is not None or p[0] == "*" for p in added)


def _parameters(signature: str) -> list[tuple[str, str, str, str | None]]:
    """Name, kind, annotation and default (None: it has none) of each parameter."""
    function = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    first = [("posonly", arg) for arg in given.posonlyargs] + [("args", arg) for arg in given.args]
    defaults = [None] * (len(first) - len(given.defaults)) + list(given.defaults)
    each = [(kind, arg, default) for (kind, arg), default in zip(first, defaults, strict=True)]
    each += [
        ("kwonly", arg, default)
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    found = [
        (
            arg.arg,
            kind,
            ast.unparse(arg.annotation) if arg.annotation else "",
            None if default is None else ast.unparse(default),
        )
        for kind, arg, default in each
    ]
    for stars, rest in (("*", given.vararg), ("**", given.kwarg)):
        if rest is not None:
            found.append(("*", stars, rest.arg, None))
    return found


_LINE = re.compile(
    r"((?:classmethod |staticmethod )?(?:async def |def )|class |module |)([\w.]+(?:\[\d+\])?)(.*)"
)


def _parts(line: str) -> tuple[str, str, str]:
    kind, name, rest = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
    return kind.strip(), name, rest.lstrip(": ") if rest.startswith(":") else rest.strip()


def _name(line: str) -> str:
    return _parts(line)[1]


def _split(rest: str) -> tuple[str, str]:
    """The parameters in their parentheses, and what follows them."""
    if not rest.startswith("("):
        return "", rest
    depth = 0
    quote = ""
    for place, character in enumerate(rest):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if not depth:
                return rest[: place + 1], rest[place + 1 :].strip()
    raise ValueError(f"{rest} has no end.")


def main() -> None:
    """Write the list of what is public now."""
    LIST.write_text("".join(f"{line}\n" for line in described(exposed()).values()))
    print(f"{LIST} is written; say in CHANGELOG.md what of it went or changed.")


if __name__ == "__main__":
    main()
