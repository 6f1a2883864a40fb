"""``%load_ext sagents_nb``: the magics, the awaiting cell, and how sessions are displayed."""

from __future__ import annotations

import os
import sysconfig
import traceback
import uuid
from functools import partial
from typing import Any

from IPython import get_ipython

from .. import kinds
from ..errors import SagentsError
from ..runtime.main_thread import main_thread
from ..session import Session
from .cell import run_cell
from .cell_options import parse
from .conversations import Conversations
from .interpolate import interpolate, misspelt
from .magics import AgentMagics
from .unattended import unattended
from .widget import MimeBundle, frozen_bundle, live_bundle, show, static_bundle

_ATTRIBUTE = "_sagents_nb"


class Extension:
    """What is installed into one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.conversations = Conversations(shell)

    def install(self) -> None:
        """Register the magics, the cell transformer and the display of sessions."""
        loop = getattr(getattr(self.shell, "kernel", None), "io_loop", None)
        if loop is not None:  # so that tools find the main thread in every cell
            main_thread.attach(loop.asyncio_loop)
        self.shell.register_magics(AgentMagics(self.shell, self.conversations))
        self.shell.input_transformers_cleanup.append(awaiting_cell)
        formatter = self.shell.display_formatter.mimebundle_formatter
        formatter.for_type(Session, _session_bundle)
        self.shell.display_formatter.ipython_display_formatter.for_type(Session, _show_session)

    def remove(self) -> None:
        """Take it all away again."""
        if awaiting_cell in self.shell.input_transformers_cleanup:
            self.shell.input_transformers_cleanup.remove(awaiting_cell)
        self.shell.display_formatter.mimebundle_formatter.pop(Session, None)
        self.shell.display_formatter.ipython_display_formatter.pop(Session, None)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop("agent", None)

    async def run(self, line: str, body: str) -> Any:
        """Run one ``%%agent`` cell; what it raises of ours is shown as its sentence."""
        try:
            return await self._run(line, body)
        except (SagentsError, KeyboardInterrupt) as error:
            error._render_traceback_ = partial(_sentence, error)  # type: ignore[union-attr]
            raise

    async def _run(self, line: str, body: str) -> Any:
        options = parse(line)
        session = self.conversations.session_for(options)
        prompt = body.strip()
        if not options.raw:
            for typed, meant in misspelt(prompt, self.shell.user_ns).items():
                print(f"{{{typed}}} was sent as it stands; did you mean {{{meant}}}?")
            prompt = interpolate(prompt, self.shell.user_ns)
        if not prompt:
            print("The cell is empty; write below %%agent what the agent is to do.")
            return None
        return await run_cell(
            session,
            prompt,
            typed=prompt == body.strip(),
            unattended=unattended(self.shell),
            plain=options.plain,
            background=options.background,
            wait=not options.no_wait,
        )


def _sentence(error: BaseException) -> list[str]:
    """What IPython shows of an error: not our insides, but the code of others that raised.

    See ``InteractiveShell.showtraceback`` for the method that it looks for.
    """
    lines = []
    cause = error.__cause__
    libraries = (os.path.dirname(os.path.dirname(__file__)), *sysconfig.get_paths().values())
    frames = [
        frame
        for frame in traceback.extract_tb(cause.__traceback__ if cause else None)
        if not frame.filename.startswith((*libraries, "<frozen "))
    ]
    if frames:
        lines += [
            "Traceback (most recent call last):",
            *map(str.rstrip, traceback.format_list(frames)),
        ]
    return [*lines, f"{type(error).__name__}: {error}"]


def awaiting_cell(lines: list[str]) -> list[str]:
    """Rewrite an ``%%agent`` cell into one that awaits its run.

    A magic function cannot await (ipython#11314), and only an awaiting cell hears clicks.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return lines
    words = lines[first].strip().split(maxsplit=1)
    if words[0] != "%%agent":
        return lines
    rest = words[1] if len(words) > 1 else ""
    body = "".join(lines[first + 1 :])
    return [f"await __import__({__name__!r}, fromlist=['run']).run({rest!r}, {body!r})\n"]


async def run(line: str, body: str) -> Any:
    """What a rewritten cell calls."""
    extension = extension_of(get_ipython())
    assert extension is not None  # it has rewritten the cell
    return await extension.run(line, body)


def _session_bundle(session: Session, include: Any = None, exclude: Any = None) -> MimeBundle:
    return static_bundle(repr(session), session.messages) or live_bundle(session)


def _show_session(session: Session) -> None:
    """Show the live panel so that it can be made static later; only where somebody can click."""
    if unattended(get_ipython()):
        raise NotImplementedError
    show(session, f"sagents-{uuid.uuid4().hex}", live_bundle(session), frozen_bundle)


def extension_of(shell: Any) -> Extension | None:
    """What is installed into that shell, or None."""
    extension: Extension | None = getattr(shell, _ATTRIBUTE, None)
    return extension


@kinds.checked(shell=kinds.having("IPython's shell, as get_ipython() gives", "register_magics"))
def load(shell: Any) -> None:
    """Install into that shell, once."""
    if extension_of(shell) is None:
        extension = Extension(shell)
        extension.install()
        setattr(shell, _ATTRIBUTE, extension)


def unload(shell: Any) -> None:
    """Remove from that shell, if it is there."""
    extension = extension_of(shell)
    if extension is not None:
        extension.remove()
        setattr(shell, _ATTRIBUTE, None)
