"""``sagents-nb``: a demonstration, a new project, notebooks as tests, backups, the hub."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from . import __version__, kinds
from .errors import ConfigurationError, SagentsError
from .events import Event, MessageEnd, MessageUpdate, TodosUpdated, ToolExecutionEnd
from .interrupts import ActionRequest, Approve, Decision, Reject
from .messages import TextDelta
from .models.providers import SDKS
from .notebook.status_text import TODO_MARKS
from .project import command as project
from .session import Session
from .state import TODOS
from .store.own_folder import own_store
from .text import said_by, visible, whole
from .transcript import one_line

SHORTEST_TOKEN = 32
"""Characters of the token of a hub."""


@kinds.checked
def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="sagents-nb", description="Agents in your notebook.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="watch an offline agent work, in this terminal")
    demo.add_argument("prompt", nargs="*", help="what to ask it (default: the tour's question)")
    commands.add_parser("doctor", help="say what is installed and what is missing")
    commands.add_parser("version", help="print the version")
    test = commands.add_parser("test-notebook", help="test notebooks, with their models replayed")
    test.add_argument("paths", nargs="+", metavar="PATH", help="notebooks, or folders of them")
    test.add_argument(
        "--record", action="store_true", help="ask the models anew, and save what they say"
    )
    test.add_argument(
        "--short", action="store_true", help="of what fails a line, not all that was printed"
    )
    setup = commands.add_parser(
        "setup", help="write a small project to begin with", description=project.DESCRIPTION
    )
    project.add_arguments(setup)
    copying = commands.add_parser(
        "backup", help="copy a store's SQLite file, also while it is used"
    )
    copying.add_argument("path", metavar="FILE", help="the store's file")
    copying.add_argument("to", metavar="TO", help="the file to make, which must not be there")
    hub = commands.add_parser("hub", help="serve agents over HTTP, until it is told to end")
    hub.add_argument(
        "system", nargs="?", help="an AgentSystem, as module:name (default: an assistant)"
    )
    hub.add_argument("--store", default="hub.db", help="a SQLite file, or a database's URL")
    hub.add_argument("--host", default="127.0.0.1", help="where it listens")
    hub.add_argument("--port", type=int, default=8765, help="the port there; 0 is a free one")
    hub.add_argument(
        "--host-name", action="append", default=[], help="a further name by which it is called"
    )
    hub.add_argument(
        "--origin", action="append", default=[], help="a page elsewhere that may use it"
    )
    hub.add_argument(
        "--insecure", action="store_true", help="serve others, too, without TLS: behind a proxy"
    )
    hub.add_argument(
        "--events-kept", type=int, default=10_000, help="how many of what is told of each thread"
    )
    hub.add_argument(
        "--log-level",
        choices=["debug", "info", "warning"],
        default="info",
        help="what is logged to stderr: debug has each request",
    )
    hub.add_argument("--jupyter", help=argparse.SUPPRESS)  # said by hub/jupyter.py
    options = parser.parse_args(arguments)
    try:
        if options.command == "hub":
            return _run_hub(options)
        if options.command == "demo":
            return run_demo(" ".join(options.prompt))
        if options.command == "doctor":
            return run_doctor()
        if options.command == "test-notebook":
            from .notebook.testing.record import record, run_tests

            if options.record:
                return record(options.paths)
            return run_tests(options.paths, short=options.short)
        if options.command == "setup":
            return project.run(options)
        if options.command == "backup":
            from .store import ConversationStore

            ConversationStore.backup(options.path, options.to)
            print(f"{options.path} is copied to {options.to}, as it was at one moment.")
            return 0
    except SagentsError as error:
        print(f"sagents-nb: {error}", file=sys.stderr)
        return 1
    print(__version__)
    return 0


def _run_hub(options: argparse.Namespace) -> int:
    level = getattr(logging, options.log_level.upper())
    if options.jupyter is not None:
        return _run_hub_of_jupyter(Path(options.jupyter), level)
    serving = _serving()
    with serving.logged(level):
        serving.serve(
            _system(options.system),
            options.store,
            host=options.host,
            port=options.port,
            token=_token(),
            host_names=options.host_name,
            origins=options.origin,
            insecure=options.insecure,
            events_kept=options.events_kept,
        )
    return 0


def _run_hub_of_jupyter(place: Path, level: int) -> int:
    """Always 1: Jupyter begins another one in its place, while it lives."""
    try:
        serving = _serving()
        # A tile has no arguments.
        system = _system(os.environ.get("SAGENTS_HUB_SYSTEM") or None)
        store = os.environ.get("SAGENTS_HUB_STORE") or own_store()
        with serving.logged(level):
            serving.serve_jupyter(system, store, place)
    except Exception as error:  # who looks at a tab does not see the log
        from .hub.jupyter import tell_why_not

        traceback.print_exc()
        why = str(error) if isinstance(error, SagentsError) else said_by(error)
        tell_why_not(f"The hub could not begin: {why}", place)
    return 1


def _serving() -> Any:
    try:
        from .hub.web import serving
    except ImportError as error:
        raise ConfigurationError(
            f"The hub needs {error.name}: pip install 'sagents-nb[hub]'."
        ) from None
    return serving


def _system(place: str | None) -> Any:
    from .hub import AgentSystem, Blueprint

    if place is None:
        prompt = "Answer what you are asked. Keep what is worth keeping in files."
        assistant = Blueprint("assistant", prompt, "Answers, plans, and keeps files.")
        return AgentSystem().defaults().add_agent(assistant)
    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name or "system")
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"There is no {place}: {said_by(error)}") from error
    if not isinstance(found, AgentSystem):
        raise ConfigurationError(f"{place} is a {type(found).__name__}, and no AgentSystem.")
    return found


def _token() -> str | None:
    """The token in the file that $SAGENTS_HUB_TOKEN_FILE names, which is removed where it can be.

    One that a service manager gives, as systemd's LoadCredential does, is not ours to remove.
    """
    path = os.environ.pop("SAGENTS_HUB_TOKEN_FILE", None)
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigurationError(f"Others can read {path}; chmod 600 it first.")
            token = file.read().strip()
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"The token in {path} cannot be read: {error}.") from None
    if len(token) < SHORTEST_TOKEN:
        raise ConfigurationError(
            f"A token has {SHORTEST_TOKEN} characters at least; {path} has fewer."
        )
    with contextlib.suppress(OSError):
        os.unlink(path)
    return token


@kinds.checked
def run_demo(prompt: str) -> int:
    """The tour's agent in a plain terminal; asks on the terminal before it writes."""
    from .tour import QUESTION, load_penguins, penguin_agent

    session = Session(penguin_agent(load_penguins()), id="demo")
    session.subscribe(_print_event)
    question = prompt or QUESTION
    print(f"> {whole(question)}\n")
    result = session.send(question).result()
    while result.interrupt is not None:
        decisions = [_ask(request) for request in result.interrupt.action_requests]
        result = session.resume(decisions).result()
    for entry in session.files.entries("**"):
        if not entry.is_directory:
            print(f"\n--- {entry.path} ---\n{visible(entry.text or '')}")
    session.close()
    return 0


def _print_event(event: Event) -> None:
    if isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta):
        print(visible(event.delta.text), end="", flush=True)
    elif isinstance(event, MessageEnd) and event.message.role == "assistant":
        print()
    elif isinstance(event, TodosUpdated):
        for todo in event.todos:
            print(f"  {TODO_MARKS[todo.status]} {one_line(todo.content)}")
    elif isinstance(event, ToolExecutionEnd) and event.tool_name != TODOS:
        name = one_line(event.tool_name)
        print(f"  * {name} {event.status}: {_first_line(event.result.text)}")


def _first_line(text: str) -> str:
    line = visible(text.strip().partition("\n")[0])
    return line if len(line) <= 100 else f"{line[:97]}..."


def _ask(request: ActionRequest) -> Decision:
    print(f"\n{one_line(request.tool_name)} wants to run with:")
    for name, value in request.arguments.items():
        text = value if isinstance(value, str) else repr(value)
        print("\n".join(f"  {one_line(name)}: {line}" for line in visible(text).splitlines()))
    if not sys.stdin.isatty():
        print("Nobody is at this terminal to decide, so it is rejected.")
        return Reject(unattended=True)
    answer = input("Run it? [y/N, or say why not] ").strip()
    if answer.lower() in ("y", "yes"):
        return Approve()
    return Reject("" if answer.lower() in ("", "n", "no") else answer)


# What each part needs, with the lowest version that is safe or works: jupyterlab and
# jupyter_server for their published advisories, ipykernel for clicks in awaiting cells.
_NEEDS = {
    "notebook": {
        "anywidget": "0.11",
        "ipywidgets": "8.1",
        "ipykernel": "7.4",
        "jupyterlab": "4.6.2",
        "jupyter_server": "2.20",
        "pandas": "2.2",
    },
    **{sdk.package: {sdk.package: sdk.oldest} for sdk in SDKS},
}


def run_doctor() -> int:
    """Print what is installed, with the next step for what is missing; 1 if the panel is."""
    print(f"sagents-nb {__version__}, Python {sys.version.split()[0]}")
    for extra, packages in _NEEDS.items():
        print(f"\n{extra}: pip install 'sagents-nb[{extra}]'")
        for package, floor in packages.items():
            print(f"  {package:15} {_state(package, floor)}")
    from .models import default_model

    print(f"\n{default_model().chosen_because}")
    for key in (sdk.key_variable for sdk in SDKS):
        print(f"  {key:18} {'set' if os.environ.get(key) else 'not set'}")
    panel = importlib.util.find_spec("anywidget") is not None and _bundle_is_there()
    print(f"\npanel: {'built' if panel else 'missing; reinstall sagents-nb or run make'}")
    return 0 if panel else 1


def _state(package: str, floor: str) -> str:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
    old = _numbers(version) < _numbers(floor)
    return f"{version}, older than {floor}: upgrade it" if old else version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _bundle_is_there() -> bool:
    from .panel.bundle import STATIC

    return (STATIC / "panel.js").exists()


if __name__ == "__main__":
    sys.exit(main())
