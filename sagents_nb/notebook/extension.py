"""``%load_ext sagents_nb``: the magics, the awaiting cell, and how sessions are displayed."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Coroutine
from functools import partial
from typing import Any

from IPython import get_ipython
from IPython.core.error import UsageError

from .. import kinds
from ..calls import call_records
from ..errors import SagentsError, StaleOwner
from ..messages import DISPLAY, ImagePart, Message, message_of
from ..models.demo import DemoModel
from ..panel.requests import LARGEST_ATTACHED, MOST_ATTACHED
from ..redaction import masked, secrets_of_names, share_names, unshare_names, without_known
from ..result import RunResult
from ..runtime.face import put_on, take_off
from ..runtime.main_thread import main_thread
from ..serialization import to_data
from ..session import Session
from ..transcript import markdown
from .capture import replaced
from .cell import run_cell
from .cell_options import parse
from .cells import (
    FailedCell,
    code_block,
    failures_of,
    forget_failures,
    last_python,
    offer,
    own_frames,
    unattended,
    with_own_frames,
)
from .completion import Completion
from .conversations import Conversations
from .heartbeat import Heartbeat
from .interpolate import fields_in, images_in, unknown_names
from .magics import AgentMagics
from .outputs import cell_id
from .status_text import MimeBundle, cleaning, folded_output, frame_html, kept_text
from .waiting import NotebookFace
from .widget import frozen_bundle, live_bundle, show, static_bundle

_ATTRIBUTE = "_sagents_nb"
_FRAMES = ("pandas", "pandas.core.frame")  # where DataFrame is, from pandas 3 on and before


class Extension:
    """What is installed into one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.conversations = Conversations(shell)
        self.completion = Completion(shell, self.conversations)
        self.face = NotebookFace(shell)
        self.magics = AgentMagics(shell, self.conversations)
        self.heartbeat: Heartbeat | None = None

    def install(self) -> None:
        """Register the magics, the cell transformer and the display of sessions."""
        failures_of(self.shell)  # from now on it is known which cell failed last
        loop = getattr(getattr(self.shell, "kernel", None), "io_loop", None)
        if loop is not None:  # so that tools find the main thread in every cell
            main_thread.attach(loop.asyncio_loop)
            self.heartbeat = Heartbeat(loop.asyncio_loop, self.shell.events)
        self.shell.register_magics(self.magics)
        self.shell.input_transformers_cleanup.append(awaiting_cell)
        self.completion.install()
        put_on(self.face)
        share_names(self.shell.user_ns)
        formatter = self.shell.display_formatter.mimebundle_formatter
        formatter.for_type(Session, _session_bundle)
        formatter.for_type(RunResult, _result_bundle)
        self.shell.display_formatter.ipython_display_formatter.for_type(Session, _show_session)
        html = self.shell.display_formatter.formatters["text/html"]
        for module in _FRAMES:
            if html.for_type_by_name(module, "DataFrame") is None:  # nor has anybody else one
                html.for_type_by_name(module, "DataFrame", frame_html)
        SagentsError._render_traceback_ = _traceback  # type: ignore[attr-defined]

    def remove(self) -> None:
        """Take it all away again."""
        if awaiting_cell in self.shell.input_transformers_cleanup:
            self.shell.input_transformers_cleanup.remove(awaiting_cell)
        self.completion.remove()
        if self.heartbeat is not None:
            self.heartbeat.end()
        self.magics.serving.end()
        take_off(self.face)
        unshare_names(self.shell.user_ns)
        forget_failures(self.shell)
        if hasattr(SagentsError, "_render_traceback_"):
            del SagentsError._render_traceback_
        for displayed in (Session, RunResult):
            self.shell.display_formatter.mimebundle_formatter.pop(displayed, None)
        self.shell.display_formatter.ipython_display_formatter.pop(Session, None)
        html = self.shell.display_formatter.formatters["text/html"]
        for module in _FRAMES:
            if html.for_type_by_name(module, "DataFrame") is frame_html:
                html.pop(f"{module}.DataFrame")
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop("agent", None)

    async def run(self, line: str, body: str) -> None:
        """Run one ``%%agent`` cell; what it raises of ours is shown as its sentence."""
        await self._saying(self._run(line, body))

    async def fix(self, wish: str) -> None:
        """Have the cell that failed last mended, and offer that in the place of this one."""
        await self._saying(self._fix(wish.strip()))

    async def _saying(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except UsageError as error:  # which quotes what was typed
            raise UsageError(kept_text(str(error))) from None
        except StaleOwner as error:
            raise UsageError(kept_text(str(self.conversations.lost(error)))) from None
        except (SagentsError, KeyboardInterrupt) as error:
            error._render_traceback_ = partial(_sentence, error)  # type: ignore[union-attr]
            raise

    async def _run(self, line: str, body: str) -> None:
        options = parse(line)
        session = self.conversations.session_for(options)
        typed = body.strip()
        prompt: str | Message = typed
        if not options.raw:
            shell = self.shell
            for sentence in unknown_names(typed, shell.user_ns, shell.user_ns_hidden):
                print(sentence)
            images = self._attached(typed, session)
            fields = fields_in(typed, self.shell.user_ns, images)
            message = message_of(typed, fields, images.values())
            if message.text != typed:
                prompt = message
        if not typed:
            print("The cell is empty; write below %%agent what the agent is to do.")
            return
        result = await run_cell(
            session,
            prompt,
            typed=True,
            unattended=unattended(self.shell),
            plain=options.plain,
            background=options.background,
            wait=not options.no_wait,
        )
        if options.cell:
            self._offer(result, replace=False)
        self._keep(result)

    def _attached(self, typed: str, session: Session) -> dict[str, ImagePart]:
        """The images that a prompt names and that are sent beside it, as those of the composer.

        Of others it is said that they are text.
        """
        kept: dict[str, ImagePart] = {}
        for name, image in images_in(typed, self.shell.user_ns).items():
            if len(kept) == MOST_ATTACHED:
                print(f"{{{name}}} was sent as text: a message has at most {MOST_ATTACHED} images.")
            elif len(image.bytes) > LARGEST_ATTACHED:
                most = LARGEST_ATTACHED // 1_000_000
                print(f"{{{name}}} was sent as text: an attached image has at most {most} MB.")
            else:
                kept[name] = image
        model = session.agent.model
        if kept and not model.reads_images:
            print(
                f"{kept_text(model.name)} may not see images: if its answer misses what is in "
                "them, choose another model with %agent model PROVIDER:NAME."
            )
        return kept

    async def _fix(self, wish: str) -> None:
        failed = failures_of(self.shell).last
        if failed is None:
            print("No cell has failed, or the one that did runs by now: there is nothing to fix.")
            return
        session = self.conversations.session_for(parse(""))
        secrets = secrets_of_names(self.shell.user_ns)
        source, trace = masked(failed.source, secrets), masked(failed.traceback, secrets)
        failed, wish = failed._replace(source=source, traceback=trace), masked(wish, secrets)
        shown = Message.user(_fix_words(failed, wish))
        prompt = Message.user(fix_prompt(failed, wish), **{DISPLAY: to_data(shown)})
        unheard = unattended(self.shell)
        result = await run_cell(
            session,
            prompt,
            typed=False,
            unattended=unheard,
            plain=False,
            background=False,
            wait=True,
        )
        self._offer(result, replace=True)
        self._keep(result)

    def _keep(self, result: RunResult | None) -> None:
        """Make it what ``_`` and ``Out`` give of the cell, not a second output: it was shown."""
        if result is not None:
            self.shell.displayhook.update_user_ns(result)
            self.shell.displayhook.fill_exec_result(result)

    def _offer(self, result: RunResult | None, *, replace: bool) -> None:
        """Offer the code of the answer as a cell, and say what became of it.

        Where the answer shows none, it is the code that was run for it, or was to be run.
        """
        code = last_python(result.text) if result is not None else None
        was_run = True
        if code is None and result is not None and not replace:
            code, was_run = _last_code(result)
        if code is None:
            print(_NO_MENDING if replace else _no_code(self.conversations.current))
        elif not offer(self.shell, code, replace=replace):
            print("No cell can be offered here, where nobody could take it; see the answer.")
        else:
            where = "in this cell now, to be run again" if replace else "in a new cell below"
            what = "The code" if was_run else "The code, which was not run,"
            print(f"{what} is {where}; an editor that takes no cells has it in the answer only.")


def _traceback(error: BaseException) -> list[str]:
    """What IPython shows of an error of ours in a cell of Python: not our insides, no secrets.

    What a model raised is its cause, and shown too.
    """
    formatter = get_ipython().InteractiveTB
    # The values of variables, as %xmode Verbose shows them, are cut before they could be masked.
    with with_own_frames(error), replaced(formatter, include_vars=False):
        told = formatter.structured_traceback(type(error), error, error.__traceback__, tb_offset=0)
    return [without_known(line) for line in told]


def _sentence(error: BaseException) -> list[str]:
    """What IPython shows of an error: not our insides, but the code of others that raised.

    See ``InteractiveShell.showtraceback`` for the method that it looks for.
    """
    lines = []
    cause = error.__cause__
    frames = own_frames(traceback.extract_tb(cause.__traceback__ if cause else None))
    frames = [frame for frame in frames if __name__ not in (frame.line or "")]  # the cell itself
    if frames:
        lines += [
            "Traceback (most recent call last):",
            *map(str.rstrip, traceback.format_list(frames)),
        ]
    return [without_known(line) for line in [*lines, f"{type(error).__name__}: {error}"]]


_NO_MENDING = "The answer has no code, so the cell stays as it is."


def _last_code(result: RunResult) -> tuple[str | None, bool]:
    """The last code that ``run_python`` ran well in a run, else what people let not run; and which.

    None without any. Who wants a cell may well have the code put there in place of its being run.
    """
    codes = {
        record.status: str(record.arguments.get("code", ""))
        for record in call_records(result.messages)
        if record.call.name == "run_python"
    }
    if "completed" in codes:
        return codes["completed"], True
    return codes.get("rejected"), False


def _no_code(session: Session | None) -> str:
    """That an answer has no code, and what to do about it."""
    if session is None or not isinstance(session.agent.model, DemoModel):
        return "The answer has no Python code that could be a cell."
    return (
        "The demo writes code for plots and for what takes all rows of a large frame, and wrote "
        "none for this: ask for a plot, or choose a model with %agent model PROVIDER:NAME."
    )


_MOST = 20_000  # characters of a failed cell, and of its traceback, that a model is handed


def fix_prompt(failed: FailedCell, wish: str = "") -> str:
    """What a model is asked about a cell that failed."""
    cell = "A cell" if failed.number is None else f"Cell {failed.number}"
    return "\n\n".join(
        [
            f"{cell} of this notebook failed:",
            code_block(failed.source[:_MOST].strip(), "python"),
            code_block(failed.traceback[-_MOST:], "text"),
            *([wish] if wish else []),
            "Say in a sentence what was wrong, and then give the whole mended cell as one Python "
            "code block.",
        ]
    )


def _fix_words(failed: FailedCell, wish: str) -> str:
    """The same for people, who have the cell before them."""
    cell = "the cell that failed" if failed.number is None else f"cell {failed.number}"
    error = failed.traceback.rpartition("\n")[2][:200]
    return "\n\n".join(filter(None, [f"Fix {cell}: {error}", wish]))


def awaiting_cell(lines: list[str]) -> list[str]:
    """Rewrite an ``%%agent`` cell, and a first line ``%agent fix``, into one that awaits its run.

    A magic function cannot await (ipython#11314), and only an awaiting cell hears clicks.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return lines
    words = lines[first].strip().split(maxsplit=1)
    rest = words[1] if len(words) > 1 else ""
    if words[0] == "%%agent":
        return [_awaiting("run", rest, "".join(lines[first + 1 :]))]
    if words[0] == "%agent" and rest.split()[:1] == ["fix"]:
        wish = rest.split(maxsplit=1)[1:]
        return [_awaiting("fix", *(wish or [""])), *lines[first + 1 :]]
    return lines


def _awaiting(name: str, *arguments: str) -> str:
    called = ", ".join(map(repr, arguments))
    return f"await __import__({__name__!r}, fromlist=[{name!r}]).{name}({called})\n"


async def run(line: str, body: str) -> None:
    """What a rewritten cell calls."""
    await _installed().run(line, body)


async def fix(wish: str) -> None:
    """What a rewritten ``%agent fix`` calls."""
    await _installed().fix(wish)


def _installed() -> Extension:
    extension = extension_of(get_ipython())
    assert extension is not None  # it has rewritten the cell
    return extension


def _session_bundle(session: Session, include: Any = None, exclude: Any = None) -> MimeBundle:
    return static_bundle(repr(session), session.messages) or live_bundle(session)


def _result_bundle(result: RunResult, include: Any = None, exclude: Any = None) -> MimeBundle:
    return folded_output(repr(result), markdown(result.messages, cleaning()))


def _show_session(session: Session) -> None:
    """Show the live panel so that it can be made static later; only where somebody can click."""
    if unattended(get_ipython()):
        raise NotImplementedError
    place = f"{cell_id() or uuid.uuid4().hex}-{session.id}"  # the same when the cell is run again
    show(session, f"sagents-{place}", live_bundle(session), frozen_bundle, live_bundle)


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
