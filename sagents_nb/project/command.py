"""``sagents-nb setup DIR``: the options, the questions, and what is said afterwards."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import ConfigurationError
from .options import NO_OWNER, Options
from .rendering import existing, rendered, write

DESCRIPTION = (
    "Write a small project into DIR: an agent, its conversations in a database, each one its "
    "owner's, a notebook to talk to it, and the tests of all that."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be said after ``setup``."""
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="where it goes; made if it is missing")
    add(
        "-s",
        "--scope",
        metavar="MODULE:CLASS",
        help="your class whose instances say whose a conversation is (default: asks)",
    )
    add(
        "-t",
        "--owner-type",
        default="user",
        metavar="TYPE",
        help=f"who owns conversations: user, team, …, or {NO_OWNER} (default: %(default)s)",
    )
    add(
        "-f",
        "--owner-field",
        default="user_id",
        metavar="FIELD",
        help="where a scope has the owner's id (default: %(default)s)",
    )
    add(
        "--table-prefix",
        default="sagents_",
        metavar="PREFIX",
        help="what the names of all tables begin with (default: %(default)s)",
    )
    add("--package", default="", metavar="NAME", help="what is imported (default: as DIR)")
    add(
        "--model",
        default="demo",
        metavar="SPEC",
        help="demo, anthropic:NAME or openai:NAME (default: %(default)s, which works offline)",
    )
    add("-y", "--yes", action="store_true", help="overwrite what is there, and ask nothing")


def run(arguments: argparse.Namespace) -> int:
    """Ask what is left to ask, and write the project; 1 if somebody said no."""
    scope = arguments.scope
    if scope is None:
        scope = _ask_for_scope() if _asks(arguments) and arguments.owner_type != NO_OWNER else ""
    elif not scope:
        raise ConfigurationError("--scope is empty; write it as in accounts.scopes:Scope.")
    options = Options(
        folder=arguments.folder,
        package=arguments.package,
        scope=scope,
        owner_type=arguments.owner_type,
        owner_field=arguments.owner_field,
        table_prefix=arguments.table_prefix,
        model=arguments.model,
    )
    files = rendered(options)
    if not arguments.yes and not _may_overwrite(
        options.folder, existing(options.folder, list(files))
    ):
        print("Nothing was changed.")
        return 1
    write(options.folder, files)
    print(f"Written into {options.folder}:")
    print("\n".join(f"  {path}" for path in files))
    print("\nNext: cd there, pip install -e . and pytest; the README says what is where.")
    return 0


def _asks(arguments: argparse.Namespace) -> bool:
    return not arguments.yes and sys.stdin.isatty()


def _ask_for_scope() -> str:
    return _answer("Which class says whose a conversation is? MODULE:CLASS [Enter: a new one] ")


def _may_overwrite(folder: Path, there: list[Path]) -> bool:
    if not there:
        return True
    names = ", ".join(map(str, there))
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"{folder} has {names} already, and nobody is at this terminal to ask; --yes "
            "overwrites."
        )
    print(f"{folder} has already:")
    print("\n".join(f"  {path}" for path in there))
    return _answer("Overwrite all of them? [y/N] ").lower() in ("y", "yes")


def _answer(question: str) -> str:
    try:
        return input(question).strip()
    except (EOFError, KeyboardInterrupt):
        print()
        raise ConfigurationError("Nothing was written, because no answer came.") from None
