"""What stands behind ``%%agent`` on its line."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from IPython.core.error import UsageError

from .. import kinds


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%agent: {message}; see %agent help.")


OPTIONS: dict[str, dict[str, Any]] = {
    "--new": {"action": "store_true", "help": "start a new conversation"},
    "--name": {"help": "name the conversation, or go on with the one of that name"},
    "--model": {"help": "answer with this model from now on"},
    "--approve": {
        "metavar": "TOOLS",
        "help": "ask before these tools (a,b,c), always allowed or not",
    },
    "--tools": {"metavar": "NAMES", "help": "add these functions of the notebook (a,b,c)"},
    "--cell": {"action": "store_true", "help": "offer the code of the answer as a new cell below"},
    "--background": {"action": "store_true", "help": "return at once"},
    "--plain": {"action": "store_true", "help": "no panel, only text at the end"},
    "--raw": {"action": "store_true", "help": "leave {braces} in the prompt alone"},
    "--no-wait": {"action": "store_true", "help": "return when a decision is needed"},
}
"""Each option, and how argparse is told of it."""

_BELOW = "only options stand on this line; write the prompt below it."


def parse(line: str) -> argparse.Namespace:
    """The options on that line; raises UsageError in one sentence."""
    begins_with_option = line.lstrip().startswith("-")
    try:
        words = shlex.split(line)
    except ValueError as error:
        if not begins_with_option:  # but with words, such as "What's new?"
            raise UsageError(f"%%agent: {_BELOW}") from None
        raise UsageError(f"%%agent: {error}; close the quote.") from None
    parser = _Parser(prog="%%agent", add_help=False, allow_abbrev=False)
    for option, settings in OPTIONS.items():
        parser.add_argument(option, **settings)
    options, unknown = parser.parse_known_args(words)
    if unknown:
        meant = (kinds.nearest(word.partition("=")[0], OPTIONS) for word in unknown)
        near = next(filter(None, meant), "")
        in_words = not any(word.startswith("-") for word in unknown)
        if in_words and (len(unknown) > 1 or not (near or begins_with_option)):
            raise UsageError(f"%%agent: {_BELOW}")
        hint = f"did you mean {near}?" if near else "see %agent help."
        raise UsageError(f"%%agent: unrecognized arguments: {' '.join(unknown)}; {hint}")
    if options.cell and options.background:
        raise UsageError("%%agent: --cell waits for the answer; leave out --background.")
    return options


def names(value: str | None) -> list[str]:
    """``a,b c`` as a list."""
    return [name for name in (value or "").replace(",", " ").split() if name]
