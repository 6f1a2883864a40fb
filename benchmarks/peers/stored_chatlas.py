"""chatlas, which has no store: each turn's two are written by hand, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from run_chatlas import Scripted, chat, turn


def encoded(turns: Iterable[Any]) -> str:
    dumped = [turn.model_dump(mode="json", exclude={"completion"}) for turn in turns]
    return json.dumps(dumped)


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        turns = [turn(*item) for item in exchanges(messages)]
        self.chat = chat(Scripted())
        self.chat.set_turns(turns)
        self.rows = _stored.Rows(path.with_suffix(".db"), (encoded([turn]) for turn in turns))

    def turn(self) -> None:
        """`Chat.chat`."""
        assert "done" in str(self.chat.chat("go", echo="none", stream=False))
        self.rows.add(encoded(self.chat.get_turns()[-2:]))

    def close(self) -> None:
        """The file."""
        self.rows.close()


class Chatlas:
    """See `Contestant`."""

    begin = Kept


if __name__ == "__main__":
    _stored.main(Chatlas(), "chatlas")
