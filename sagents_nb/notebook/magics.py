"""``%agent``: look at the conversation and decide, from a cell of its own."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.display import display

from .. import kinds
from ..errors import SagentsError, StaleOwner
from ..models.named import missing_key
from ..models.recorded import RecordedModel, with_mode
from ..redaction import secrets_of_names
from ..session import Run, Session
from .cell import show_run
from .cell_options import OPTIONS, names, parse
from .cells import unattended
from .conversations import TAKE_OVER, YES, Conversations
from .serving import Serving
from .status_text import (
    Text,
    files_text,
    interrupt_text,
    kept_frame,
    kept_text,
    list_text,
    status_text,
    todos_text,
    usage_text,
)

HELP = """%%agent [options]         run the prompt below it
%agent fix [WISH]         mend the cell that failed last; a line of its own, the first of its cell
%agent use VARIABLE       talk to that Agent or Session from now on
%agent panel              show the whole panel here, to be kept beside the notebook
%agent status             what the conversation is doing
%agent todos | files | usage
%agent approve [ID ...]   approve what waits, or only these calls
%agent reject [REASON]    reject what waits
%agent ask [TOOL ...]     ask again before tools that were always allowed, all or only these
%agent cancel             stop the run
%agent continue           go on after a pause, or ask again for an answer that failed or was stopped
%agent reset              forget the conversation; with --yes where something was said in it
%agent model [SPEC]       show or change the model; also a variable that holds one
%agent tools [add|remove NAME ...]
%agent replay [MODE]      auto, record, replay or off: keep the model's answers for another run
%agent list [all]         the conversations, live and kept: the latest, or all
%agent load ID            go on with one of them, also after a restart of the kernel; with
                          --take-over also if it is open elsewhere
%agent save               see that this one is kept
%agent serve [off]        have the notebook's conversations on a hub's page as well; off ends it
%agent freeze             make its panels static, for a notebook that is given to others
%agent export PATH        write it to a .md, .html or .ipynb file, with its files and costs
%agent frame KIND         messages, tool_calls, todos, usage, files, decisions or events as a frame
%agent help               this text
"""

BESIDE = (
    "To keep it beside the notebook in JupyterLab, right-click it, choose "
    "“Create New View for Cell Output”, and drag the new tab to the side."
)

TEXT = HELP + "\nOptions of %%agent:\n"
TEXT += "\n".join(f"  {name:13} {option['help']}" for name, option in OPTIONS.items())

COMMANDS = (
    *(
        "approve",
        "ask",
        "cancel",
        "continue",
        "export",
        "files",
        "fix",
        "frame",
        "freeze",
        "help",
        "list",
        "load",
        "model",
        "panel",
    ),
    *("reject", "replay", "reset", "save", "serve", "status", "todos", "tools", "usage", "use"),
)

EXPORTS = {
    ".md": Session.to_markdown,
    ".html": Session.to_html,
    ".ipynb": Session.to_notebook,
}
"""What writes an export, by the ending of its file."""

ALONE = {
    *("cancel", "continue", "files", "freeze", "help", "panel"),
    *("save", "status", "todos", "usage"),
}
"""Commands that nothing is said to."""


_ASKS, _ALLOWED, _DEPENDS, _FREE = "asks", "allowed", "depends", "free"
_ASKING = {
    _ASKS: "You are asked before {0}.",
    _ALLOWED: "You have always allowed {0}; %agent ask {2} changes that.",
    _DEPENDS: "A middleware of the agent decides whether you are asked before {0}.",
    _FREE: "Nobody is asked before {0}; %%agent --approve {1} changes that.",
}
"""What is said of tools, by what :func:`_asking` says of them."""


def _asking(session: Session, name: str) -> str:
    """Whether people are asked before that tool, by what the run itself goes by."""
    chain = session.agent.middleware_chain
    if chain.holds(name):
        return _ALLOWED if name in session.always_allowed else _ASKS
    return _FREE if chain.lets_pass(name) else _DEPENDS


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _documented(magic: Callable[..., Any]) -> Callable[..., Any]:
    """With the help in its docstring, which ``%agent?`` shows."""
    magic.__doc__ = f"{magic.__doc__}\n\n{TEXT}"
    return magic


def _goes_unseen(variables: dict[str, Any]) -> bool:
    """Whether the statement that calls us is none whose value a cell shows, or that takes it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals is not variables:
        frame = frame.f_back
    if frame is None:
        return False
    try:
        cell = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:  # such as of another cell that has the name by now
        return False
    calls = [
        node
        for node in ast.walk(cell)
        if isinstance(node, ast.Expr) and node.lineno <= frame.f_lineno <= (node.end_lineno or 0)
    ]
    return bool(calls) and calls[0] is not cell.body[-1]


@magics_class
class AgentMagics(Magics):
    """The magics of the extension."""

    def __init__(self, shell: Any, conversations: Conversations) -> None:
        super().__init__(shell=shell)
        self.conversations = conversations
        self.serving = Serving(shell, conversations)

    @line_cell_magic
    @no_var_expand
    @_documented
    def agent(self, line: str, cell: str | None = None) -> Any:
        """Talk to an agent: %%agent runs the text below it."""
        try:
            said = self._agent(line, cell)
            if not isinstance(said, Text) or not _goes_unseen(self.conversations.shell.user_ns):
                return said
            print(repr(said))
            return None
        except StaleOwner as error:
            raise UsageError(kept_text(str(self.conversations.lost(error)))) from None
        except (SagentsError, UsageError) as error:  # which quotes what was typed
            raise UsageError(kept_text(str(error))) from None

    def _agent(self, line: str, cell: str | None) -> Any:
        if cell is not None:  # normally rewritten to an awaiting call before it gets here
            raise UsageError("%%agent must be the first line of its cell; see %agent help.")
        command, *rest = line.strip().split(maxsplit=1) or ["status"]
        if command not in COMMANDS:
            near = kinds.nearest(command, COMMANDS)
            hint = f"did you mean %agent {near}?" if near else "see %agent help."
            if not near and len(line.split()) > 2:  # somebody asks something
                hint = "what you ask an agent stands below %%agent, on lines of its own."
            raise UsageError(f"%agent knows no {command!r}; {hint}")
        if rest and command in ALONE:
            raise UsageError(f"%agent {command} stands alone; see %agent help.")
        return getattr(self, f"_{command}")("".join(rest))

    def _session(self) -> Session:
        session = self.conversations.current
        if session is None:
            raise UsageError("There is no conversation yet; start one with an %%agent cell.")
        return session

    def _help(self, rest: str) -> Text:
        return Text(TEXT)

    def _fix(self, rest: str) -> Text:  # normally rewritten to an awaiting call
        raise UsageError("%agent fix must be the first line of its cell; see %agent help.")

    def _use(self, rest: str) -> Text:
        session, is_new = self.conversations.use(rest)
        text = f"Cells talk to {session.id!r} now ({session.agent.model.name})."
        if is_new:
            return Text(f"{text} It is new.")
        count = len(session.messages)
        if not count:
            return Text(text)
        goes_on = f"It goes on after {_counted(count, 'message')}"
        return Text(f"{text} {goes_on}; %%agent --new begins another.")

    def _panel(self, rest: str) -> Text:
        session = self._session()
        if unattended(self.shell):
            return Text(status_text(session))
        display(session)
        return Text(BESIDE)

    def _status(self, rest: str) -> Text:
        return Text(status_text(self._session()))

    def _todos(self, rest: str) -> Text:
        return Text(todos_text(self._session()))

    def _files(self, rest: str) -> Text:
        return Text(files_text(self._session()))

    def _usage(self, rest: str) -> Text:
        return Text(usage_text(self._session()))

    def _approve(self, rest: str) -> Text:
        session = self._session()
        run = session.approve(*names(rest))
        self._show(session, run)
        return Text("Approved." if run else interrupt_text(session))

    def _reject(self, rest: str) -> Text:
        session = self._session()
        self._show(session, session.reject(message=rest))
        return Text("Rejected.")

    def _ask(self, rest: str) -> Text:
        session = self._session()
        allowed, wanted = session.always_allowed, names(rest)
        if others := [name for name in wanted if name not in allowed]:
            raise UsageError(
                f"%agent ask: {', '.join(others)} was not always allowed here; to ask before any "
                "tool, say %%agent --approve TOOL."
            )
        if not allowed:
            return Text("No tool is always allowed here.")
        session.ask_again(*wanted)
        return Text(f"You are asked again before {', '.join(wanted or allowed)}.")

    def _cancel(self, rest: str) -> Text:
        session = self._session()
        runs = session.status in ("running", "paused", "interrupted") or bool(session.queued)
        session.cancel()
        return Text("Stopped." if runs else "Nothing runs.")

    def _continue(self, rest: str) -> Text:
        session = self._session()
        self._show(session, session.retry())
        return Text("It goes on.")

    def _reset(self, rest: str) -> Text:
        session = self._session()
        session.check_open()
        count = len(session.messages)
        if rest not in ("", YES):
            raise UsageError(f"%agent reset takes nothing but {YES}; see %agent help.")
        if (count or session.queued or session.todos) and not rest:
            what = f"its {_counted(count, 'message')}" if count else "what waits and its to-dos"
            raise UsageError(
                f"%agent reset would forget {session.id!r} for good, {what}, so nothing was done: "
                f"%agent reset {YES} does it, and %%agent --new begins another conversation and "
                "keeps this one."
            )
        session.reset()
        left = sum(not entry.is_directory for entry in session.files.entries())
        files = f"; its {_counted(left, 'file')} stayed" if left else ""
        return Text(f"{session.id!r} is empty now{files}.")

    def _model(self, rest: str) -> Text:
        chosen = f"{self.conversations.choose_model(rest)!r}"
        if ":" in rest and (key := missing_key(rest)):
            chosen += f"\n${key} is not set here: set it, or go back with %agent model demo."
        return Text(chosen)

    def _replay(self, rest: str) -> Text:
        session = self._session()
        if rest:
            model = with_mode(session.agent.model, rest)
            session.replace(agent=session.agent.with_(model=model))
        model = session.agent.model
        if not isinstance(model, RecordedModel):
            return Text(f"Answers of {model!r} are not recorded.")
        return Text(f"Answers of {model!r} are in {model.cache!r}; the mode is {model.mode!r}.")

    def _tools(self, rest: str) -> Text:
        change, *wanted = names(rest) or [""]
        if change not in ("", "add", "remove"):
            raise UsageError(f"%agent tools knows add and remove, not {change!r}.")
        if change and not wanted:
            raise UsageError(f"%agent tools {change} needs the name of a function, or several.")
        if change == "add" and self.conversations.functions(wanted):  # before one begins for them
            session = self.conversations.session_for(parse(""))
        else:
            session = self._session()
        if change == "add":
            text = self._add_tools(session, wanted)
        elif change == "remove":
            text = self._remove_tools(session, wanted)
        else:
            text = self._all_tools(session)
        self.conversations.storage.keep(session.id, session.agent)
        return Text(text)

    def _all_tools(self, session: Session) -> str:
        asks = {_ASKS: " (asks first)", _ALLOWED: " (always allowed)"}
        lines = [
            f"{t.name}{asks.get(_asking(session, t.name), '')}: "
            f"{t.description.splitlines()[0] if t.description else ''}"
            for t in session.agent.tools
        ]
        return "\n".join(lines)

    def _add_tools(self, session: Session, wanted: list[str]) -> str:
        agent = self.conversations.with_tools(session.agent, wanted, session.id)
        session.replace(agent=agent)
        added = [tool.name for tool in self.conversations.functions([*dict.fromkeys(wanted)])]
        said = [f"Added {', '.join(added)}."]
        for asking, sentence in _ASKING.items():
            if those := [name for name in added if _asking(session, name) == asking]:
                said.append(sentence.format(", ".join(those), ",".join(those), " ".join(those)))
        return " ".join(said)

    def _remove_tools(self, session: Session, wanted: list[str]) -> str:
        own = session.agent.own_tools
        unknown = [name for name in wanted if name not in {tool.name for tool in own}]
        if unknown:
            raise UsageError(f"{', '.join(unknown)} cannot be removed: it is no tool of your own.")
        rest = [tool for tool in own if tool.name not in wanted]
        changes: dict[str, Any] = {"tools": rest}
        gates = session.agent.interrupt_on
        if not gates.keys().isdisjoint(wanted):  # else what was always allowed stays so
            changes["interrupt_on"] = {n: gate for n, gate in gates.items() if n not in wanted}
        session.replace(agent=session.agent.with_(**changes))
        return f"Removed {', '.join(wanted)}."

    def _list(self, rest: str) -> Text:
        if rest not in ("", "all"):
            raise UsageError("%agent list takes nothing but all; see %agent help.")
        store = self.conversations.storage.store
        return Text(list_text(self.conversations.current, store, whole=rest == "all"))

    def _load(self, rest: str) -> Text:
        words = rest.split()
        id = " ".join(word for word in words if word != TAKE_OVER)
        if unknown := next((word for word in id.split()[1:] if word.startswith("--")), ""):
            raise UsageError(
                f"%agent load knows no option {unknown}; its one is {TAKE_OVER}, behind the id."
            )
        session = self.conversations.load(id, take_over=TAKE_OVER in words)
        shown = not unattended(self.shell)
        if shown:
            display(session)
        return Text(status_text(session, beside_panel=shown))

    def _show(self, session: Session, run: Run | None) -> None:
        """Show what comes of a decision; only where somebody sees it come."""
        if run is not None and not unattended(self.shell):
            show_run(session, run)

    def _save(self, rest: str) -> Text:
        return Text(self.conversations.save())

    def _serve(self, rest: str) -> Text:
        if rest not in ("", "off"):
            raise UsageError(f"%agent serve knows off, not {rest!r}.")
        return Text(self.serving.end() if rest else self.serving.begin())

    def _freeze(self, rest: str) -> Text:
        session = self._session()
        session.freeze()
        return Text(
            f"The panels of {session.id!r} are static now, but for those from before the page was "
            "last loaded: run their cells again first. The next cell has a live one."
        )

    def _export(self, rest: str) -> Text:
        session = self._session()
        path = rest.strip().strip("\"'")
        suffix = Path(path).suffix
        write = EXPORTS.get(suffix.lower())
        if write is None:
            ends = f", not in {suffix}" if suffix else ""
            raise UsageError(f"%agent export needs a path that ends in .md, .html or .ipynb{ends}.")
        secrets = secrets_of_names(self.conversations.shell.user_ns)
        write(session, Path(path).expanduser(), secrets=secrets)
        return Text(f"{session.id!r} is written to {path}.")

    def _frame(self, rest: str) -> Any:
        return kept_frame(self._session().to_frame(rest or "messages"))
