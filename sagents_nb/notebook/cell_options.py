"""What stands behind ``%%agent`` on its line."""

from __future__ import annotations

import argparse
import shlex
from typing import NoReturn

from IPython.core.error import UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%agent: {message}; see %agent help.")


def parser() -> argparse.ArgumentParser:
    """The options of ``%%agent``."""
    made = _Parser(prog="%%agent", add_help=False)
    made.add_argument("--new", action="store_true", help="start a new conversation")
    made.add_argument("--name", help="name the conversation, or go on with the one of that name")
    made.add_argument("--model", help="answer with this model from now on")
    made.add_argument("--approve", metavar="TOOLS", help="ask before these tools (a,b,c)")
    made.add_argument(
        "--tools", metavar="NAMES", help="add these functions of the notebook (a,b,c)"
    )
    made.add_argument("--background", action="store_true", help="return at once")
    made.add_argument("--plain", action="store_true", help="no panel, only text at the end")
    made.add_argument("--raw", action="store_true", help="leave {braces} in the prompt alone")
    made.add_argument("--no-wait", action="store_true", help="return when a decision is needed")
    return made


def parse(line: str) -> argparse.Namespace:
    """The options on that line; raises UsageError in one sentence."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%agent: {error}; close the quote.") from None
    return parser().parse_args(words)


def names(value: str | None) -> list[str]:
    """``a,b c`` as a list."""
    return [name for name in (value or "").replace(",", " ").split() if name]
