"""File tools for the model, over the virtual filesystem of the conversation."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import kinds, messages
from ..context import ToolContext
from ..errors import ConfigurationError
from ..files import (
    Expression,
    FileChanged,
    FileEntry,
    FileError,
    FileMissing,
    LimitExceeded,
    PathTaken,
    WrongKind,
    normalize,
    replace_lines,
    replace_text,
    split_lines,
)
from ..files import FileSystem as Files
from ..messages import DECLINED, ImagePart, TextPart
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..text import logger_of
from ..tools import Tool, ToolOutput
from .base import Middleware

log = logger_of(__name__)

MAX_LINE = 2000  # characters of one line
MAX_SHOWN = 200_000  # characters of one answer
MAX_LISTED = 1000  # entries of one listing
# Anthropic refuses images of over 5 MB of base64, and with them the whole conversation.
MAX_IMAGE = 3_750_000
TOGETHER = 100  # files that are searched as one, if they are short
_CUT = "… [line cut]"


# name: description for the model, what people read
_TOOLS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "ls": (
        "List files and directories as JSON, sorted by path. Give a pattern to see fewer: "
        "'*' within one name, '**' any directories, e.g. '/reports/*' or '**/*.md'.",
        lambda a: f"Listing {a.get('pattern') or 'files'}",
    ),
    "read_file": (
        "Read a text file with line numbers (six columns, a tab, the line), or see an image. "
        "The numbers are not part of the file. Long files come in parts: go on with offset.",
        lambda a: f"Reading {a.get('file_path')}",
    ),
    "write_file": (
        "Create a file; missing directories are made. To change an existing file use "
        "edit_file, or overwrite=true to replace all of it.",
        lambda a: f"Writing {a.get('file_path')}",
    ),
    "edit_file": (
        "Replace a piece of text in a file, character by character as it stands there and "
        "without line numbers. It must occur exactly once unless replace_all is true.",
        lambda a: f"Editing {a.get('file_path')}",
    ),
    "search_text": (
        "Find the lines that match a regular expression, in one file or in all.",
        lambda a: f"Searching {a.get('file_path') or 'files'} for {a.get('pattern')}",
    ),
    "edit_lines": (
        "Replace lines start_line to end_line, both included and counted from 1, by new text "
        "of any number of lines. Read the file first: numbers shift with every edit.",
        lambda a: f"Editing {a.get('file_path')}",
    ),
    "delete_file": (
        "Delete a file. Deleting a directory removes its entry and keeps the files in it.",
        lambda a: f"Deleting {a.get('file_path')}",
    ),
    "move_file": (
        "Move or rename a file, or a directory with everything in it.",
        lambda a: f"Moving {a.get('old_path')} to {a.get('new_path')}",
    ),
}
TOOL_NAMES = tuple(_TOOLS)

FilePath = Annotated[str, Meta(description="Absolute path, e.g. '/notes/plan.md'.")]


def default_entry_to_map(entry: FileEntry) -> dict[str, Any]:
    """What ``ls`` and ``write_file`` tell of an entry."""
    described = {
        "path": entry.path,
        "title": entry.title,
        "type": "directory" if entry.is_directory else "file",
        "file_type": entry.file_type,
        "persistence": entry.persistence,
        "size": None if entry.is_directory else entry.size,
    }
    return {key: value for key, value in described.items() if value is not None}


def _answers(tools: FileSystem, function: Callable[..., Any]) -> Callable[..., Any]:
    """A refused file operation becomes an error result that the model can act on.

    Memory is quick, so the tools run on the loop; where a storage may be waited for, what is
    given back is to be awaited, and the work is done in a thread.
    """

    def answer(*args: Any, **kwargs: Any) -> ToolOutput:
        try:
            try:
                output: ToolOutput = function(*args, **kwargs)
            except FileChanged as error:
                output = tools.overtaken(kwargs["ctx"], error) or answer(*args, **kwargs)
        except FileError as error:
            output = ToolOutput(str(error), is_error=True)
        if output.is_error:
            output.metadata = {**output.metadata, DECLINED: True}
        return output

    @functools.wraps(function)
    def answering(*args: Any, ctx: ToolContext, **kwargs: Any) -> Any:
        work = functools.partial(answer, *args, ctx=ctx, **kwargs)
        if runtime.here() and isinstance(ctx.files, Files) and ctx.files.mounts:
            return workers.run(work)
        return work()

    return answering


class _FileTool(Tool):
    """One of the tools below: it says before people are asked what it would refuse."""

    def __init__(
        self, middleware: FileSystem, function: Callable[..., ToolOutput], **options: Any
    ) -> None:
        super().__init__(function, **options)
        self._middleware = middleware

    async def refusal(self, arguments: dict[str, Any], ctx: ToolContext) -> ToolOutput | None:
        look = functools.partial(self._middleware.refusal, self.name, arguments, ctx)
        try:
            await workers.run(look)  # also of memory: of a long text that takes its time
        except FileChanged:  # to say so takes what it is said of back, and is for the call itself
            return None
        except FileError as error:
            return ToolOutput(str(error), is_error=True)
        return None


class FileSystem(Middleware):
    """Eight file tools, for the virtual files of a session.

    They are ls, read_file, write_file, edit_file, search_text, edit_lines, delete_file and
    move_file.

    They work on the virtual files of the session (``ctx.files``), never on this computer's
    disk. ``enabled_tools`` names the ones to offer; ``custom_tool_descriptions`` replaces
    descriptions by tool name; ``entry_to_map`` says what the model is told of an entry.
    ``must_read_before_edit`` refuses to edit a file that the model has not read in this
    conversation; writing one is not reading it. What was read is in the metadata of the state,
    as "FileSystem.read", and so is known in later runs. ``id`` tells two of them apart, and
    stands for the first word there. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a tool that does not exist.

    An agent has one by default, which ``filesystem_options`` configures.

    >>> from sagents_nb import Agent, FileSystem, ScriptedModel, ToolCall
    >>> write = ToolCall("c1", "write_file", {"file_path": "/a.md", "content": "# A"})
    >>> only = FileSystem(enabled_tools=["ls", "write_file"])
    >>> agent = Agent(ScriptedModel([write, "Done."]), middleware=[only], defaults=False)
    >>> agent.run("Write a note.").text, agent.files.read("/a.md").content
    ('Done.', '# A')
    """

    @kinds.checked
    def __init__(
        self,
        *,
        enabled_tools: Iterable[str] | None = None,
        custom_tool_descriptions: Mapping[str, str] | None = None,
        entry_to_map: Callable[[FileEntry], dict[str, Any]] = default_entry_to_map,
        must_read_before_edit: bool = False,
        id: str = "",
    ) -> None:
        enabled = TOOL_NAMES if enabled_tools is None else tuple(enabled_tools)
        self.descriptions = dict(custom_tool_descriptions or {})
        for name in (*enabled, *self.descriptions):
            if name not in _TOOLS:
                raise ConfigurationError(
                    f"There is no file tool {name!r}; the tools are {', '.join(TOOL_NAMES)}."
                )
        self.enabled_tools = tuple(name for name in TOOL_NAMES if name in enabled)
        self.entry_to_map = entry_to_map
        self.must_read_before_edit = must_read_before_edit
        self.id = id

    def system_prompt(self) -> str:
        """What the files are and which tools there are."""
        if not self.enabled_tools:
            return ""
        names = ", ".join(f"`{name}`" for name in self.enabled_tools)
        return (
            "## Files\n\n"
            "You have a virtual filesystem, shared with the user and apart from the computer's "
            f"disk. Tools: {names}. Paths are absolute, such as `/notes/plan.md`; `..` and `~` "
            "are refused. Keep there what is long or worth keeping, and look before you change: "
            "read a file before you edit it."
        )

    def tools(self) -> list[Tool]:
        """The enabled tools."""
        return self._tools

    @functools.cached_property
    def _tools(self) -> list[Tool]:
        return [
            _FileTool(
                self,
                _answers(self, getattr(self, name)),
                name=name,
                description=self.descriptions.get(name, _TOOLS[name][0]),
                # Memory is quick; a search may take its full time, so not on the loop.
                run_on="pool" if name == "search_text" else "loop",
                idempotent=name in ("ls", "read_file", "search_text"),
                display_text=_TOOLS[name][1],
            )
            for name in self.enabled_tools
        ]

    def ls(
        self,
        ctx: ToolContext,
        pattern: Annotated[str | None, Meta(description="A glob, anchored at '/'.")] = None,
    ) -> ToolOutput:
        """List files and directories."""
        if pattern and pattern.endswith("/"):
            pattern += "*"
        files = _files(ctx)
        entries = files.entries(pattern or None)
        if not entries:
            if pattern and (files.stats().total or files.entries()):
                return ToolOutput(f"No files match {pattern!r}.")
            return ToolOutput("There are no files yet.")
        listing = as_json([self.entry_to_map(entry) for entry in entries[:MAX_LISTED]])
        if len(entries) > MAX_LISTED:
            listing += f"\n{len(entries) - MAX_LISTED:,} more are not shown; give a pattern."
        return ToolOutput(listing)

    def read_file(
        self,
        ctx: ToolContext,
        file_path: FilePath,
        offset: Annotated[int, Meta(ge=0, description="The first line to show, from 1.")] = 1,
        limit: Annotated[int, Meta(ge=1, description="How many lines to show at most.")] = 2000,
    ) -> ToolOutput:
        """Read a text file, or see an image."""
        files, path, first = _files(ctx), normalize(file_path), max(offset, 1)
        dropped = self._takes_theirs(ctx, path)
        try:
            # With one more than is asked for it is known whether more follow.
            limit = min(limit, MAX_SHOWN // len(numbered(1, "")))
            lines, total = files.read_lines(path, first, limit + 1)
        except WrongKind:
            entry = files.read(path)  # raises for a directory
            seen = binary(entry, sees=getattr(ctx.run.model, "reads_images", False))
            seen.update = self._read_now(ctx, path)
            return seen
        if total is None and len(lines) <= limit and (lines or first == 1):
            total = first - 1 + len(lines)
        if not lines and first > 1:
            known = "fewer" if total is None else f"{total}"
            return ToolOutput(
                f"{path} is empty or the offset is beyond its end: it has {known} "
                f"lines and the offset is {offset}.",
                update=self._read_now(ctx, path),
                is_error=True,
            )
        shown = part(lines[:limit], first, total)
        if dropped:
            shown = f"{path} as somebody else wrote it; what was not saved is dropped.\n{shown}"
        return ToolOutput(shown, update=self._read_now(ctx, path))

    def write_file(
        self,
        ctx: ToolContext,
        file_path: FilePath,
        content: Annotated[str, Meta(description="The whole text of the file; may be empty.")],
        overwrite: Annotated[bool, Meta(description="Replace an existing file.")] = False,
    ) -> ToolOutput:
        """Create a file."""
        try:
            entry = _files(ctx).write(
                file_path, content, mime_type="text/plain", overwrite=overwrite
            )
        except PathTaken as error:
            raise _taken(error.path) from None
        return ToolOutput(as_json(self.entry_to_map(entry)))

    def edit_file(
        self,
        ctx: ToolContext,
        file_path: FilePath,
        old_string: Annotated[str, Meta(description="The exact text to replace.")],
        new_string: Annotated[str, Meta(description="What to put in its place.")],
        replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False,
    ) -> ToolOutput:
        """Replace text in a file."""
        count = first = 0
        files = _files(ctx)
        longest = files.limits.file_size

        def change(entry: FileEntry) -> str:
            nonlocal count, first
            self._check_read(ctx, entry)
            changed, count, first = replace_text(
                entry, old_string, new_string, everywhere=replace_all, longest=longest
            )
            return changed

        entry = files.edit(file_path, change)
        times = f"{count} occurrences" if count > 1 else "1 occurrence"
        last = first + new_string.count("\n")
        shown = preview(entry.text or "", first, last)
        return ToolOutput(f"Replaced {times} in {entry.path}.\n{shown}")

    def search_text(
        self,
        ctx: ToolContext,
        pattern: Annotated[str, Meta(description="A regular expression, applied line by line.")],
        file_path: Annotated[str | None, Meta(description="Only this file; else all.")] = None,
        case_sensitive: Annotated[bool, Meta(description="Whether A and a differ.")] = True,
        context_lines: Annotated[
            int, Meta(ge=0, le=20, description="Lines to show around each hit, marked with '|'.")
        ] = 0,
        max_results: Annotated[int, Meta(ge=1, description="Most hits, over all files.")] = 50,
    ) -> ToolOutput:
        """Search for a regular expression."""
        files, failed, no_text = _files(ctx), dict[str, FileError](), list[str]()
        expression = Expression(pattern, ignore_case=not case_sensitive)
        found = search(
            [files.read(file_path)] if file_path else files.contents(failed=failed),
            expression,
            context=context_lines,
            limit=max_results,
            named=not file_path,
            no_text=no_text,
        )
        if found:  # beside hits, a file that is no text is nothing to miss
            left_out = not_searched(failed, [])
            return ToolOutput(f"{found}\n\nNot searched: {left_out}." if left_out else found)
        if file_path:
            path = normalize(file_path)
            if no_text:
                return ToolOutput(f"{path} was not searched: it is a binary file.")
            return ToolOutput(f"No matches for {pattern!r} in {path}.")
        if left_out := not_searched(failed, no_text):
            left_out = f" that was searched; not searched: {left_out}"
        return ToolOutput(f"No matches for {pattern!r} in any file{left_out}.")

    def edit_lines(
        self,
        ctx: ToolContext,
        file_path: FilePath,
        start_line: Annotated[int, Meta(description="The first line to replace, from 1.")],
        end_line: Annotated[int, Meta(description="The last line to replace.")],
        new_content: Annotated[str, Meta(description="The new lines; '' leaves one empty line.")],
    ) -> ToolOutput:
        """Replace lines of a file."""
        new = split_lines(new_content) or [""]

        def change(entry: FileEntry) -> str:
            self._check_read(ctx, entry)
            return replace_lines(entry, start_line, end_line, new)

        entry = _files(ctx).edit(file_path, change)
        replaced = end_line - start_line + 1
        shown = preview(entry.text or "", start_line, start_line + len(new) - 1)
        return ToolOutput(
            f"Replaced {replaced} {'line' if replaced == 1 else 'lines'} "
            f"({start_line}–{end_line}) of {entry.path}.\n{shown}"
        )

    def delete_file(self, ctx: ToolContext, file_path: FilePath) -> ToolOutput:
        """Delete a file."""
        entry = _files(ctx).delete(file_path)
        if entry.is_directory:
            return ToolOutput(f"Deleted the directory {entry.path}; files in it were kept.")
        return ToolOutput(f"Deleted {entry.path}.")

    def move_file(
        self,
        ctx: ToolContext,
        old_path: FilePath,
        new_path: Annotated[str, Meta(description="Where it goes; nothing may be there yet.")],
    ) -> ToolOutput:
        """Move a file or directory."""
        moved = len(_files(ctx).move(old_path, new_path))
        old, new = normalize(old_path), normalize(new_path)
        if old == new:
            return ToolOutput(f"{old} is there already; nothing was moved.")
        return ToolOutput(f"Moved {moved} {'entry' if moved == 1 else 'entries'}: {old} → {new}.")

    def refusal(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext) -> None:
        """Raise what a call of a tool with these arguments is refused with as the files are now.

        That is a :class:`FileError`; where it is not known before the call runs, nothing is raised.
        """
        if name not in ("write_file", "edit_file", "edit_lines"):
            return
        files, path = _files(ctx), normalize(arguments["file_path"])
        if name == "write_file":
            if not arguments["overwrite"] and files.exists(path):
                raise _taken(path)
            return
        entry = files.read(path)
        self._check_read(ctx, entry)
        if name == "edit_lines":
            replace_lines(entry, arguments["start_line"], arguments["end_line"], [""])
            return
        old, new, everywhere = (arguments[n] for n in ("old_string", "new_string", "replace_all"))
        replace_text(entry, old, new, everywhere=everywhere, longest=files.limits.file_size)

    def overtaken(self, ctx: ToolContext, error: FileChanged) -> ToolOutput | None:
        """What the model is told of a change that was refused; None if it is to be tried again.

        ``error`` says which. Nothing that was reported as done is dropped before the model was
        told.
        """
        path, reads = error.path, "read_file" in self.enabled_tools
        refused = f"{path} was changed by somebody else, and nothing of yours was written over that"
        if not error.kept:
            return ToolOutput(
                f"{refused}; read it again and make your changes anew.", is_error=True
            )
        if not reads and self._takes_theirs(ctx, path):
            return None
        self._refused_paths(ctx).add(path)
        way = (
            "read_file takes what they wrote and drops yours; then make all of them anew."
            if reads
            else "try again, which drops yours and begins from what they wrote."
        )
        return ToolOutput(
            f"{refused}: earlier changes of {path}, though reported as done, are not saved and "
            f"only in memory. {way}",
            is_error=True,
        )

    def _takes_theirs(self, ctx: ToolContext, path: str) -> bool:
        """Drop what is in conflict with what somebody else wrote, if the model was told of it."""
        refused, files = self._refused_paths(ctx), _files(ctx)
        if path not in refused:
            return False
        if conflict := files.in_conflict(path):
            log.warning("%s: changes that were not saved are dropped for those of others", path)
            files.reload(path)
        refused.discard(path)
        return conflict

    def _refused_paths(self, ctx: ToolContext) -> set[str]:
        paths: set[str] = ctx.run.local.setdefault(f"{self.id or 'FileSystem'}.refused", set())
        return paths

    @property
    def _key(self) -> str:
        return f"{self.id or 'FileSystem'}.read"

    def _was_read(self, ctx: ToolContext, path: str) -> bool:
        return path in ctx.state.get_metadata(self._key, ())

    def _read_now(self, ctx: ToolContext, path: str) -> dict[str, Any]:
        """What a change of the state says of a file that was read, where anybody asks."""
        if not self.must_read_before_edit or self._was_read(ctx, path):
            return {}
        return {"metadata": {self._key: {path: True}}}  # merged with what other calls have read

    def _check_read(self, ctx: ToolContext, entry: FileEntry) -> None:
        if self.must_read_before_edit and not self._was_read(ctx, entry.path):
            raise FileError(f"Read {entry.path} with read_file before you edit it.", entry.path)


def _taken(path: str) -> PathTaken:
    return PathTaken(
        f"{path} exists already; use edit_file to change it, or overwrite=true to replace all of "
        "it.",
        path,
    )


def _files(ctx: ToolContext) -> Files:
    if not isinstance(ctx.files, Files):
        raise FileError("This conversation has no filesystem; tell the user that one is needed.")
    return ctx.files


# Files as a model sees them


def binary(entry: FileEntry, sees: bool) -> ToolOutput:
    """An image for a model that sees, and what there is to say of any other bytes."""
    about = f"{entry.path} is a binary file ({entry.mime_type}, {entry.size:,} bytes, sha256 "
    about += f"{entry.sha256})"
    image = image_of(entry)
    if image is None:
        return ToolOutput(f"{about}; its content cannot be shown as text.")
    if not sees:
        return ToolOutput(f"{about}, an image that this model is not shown.")
    return ToolOutput([TextPart(f"{entry.path} ({entry.size:,} bytes):"), image])


def image_of(entry: FileEntry) -> ImagePart | None:
    """The image in a file, of a kind and size that providers take, told by its first bytes."""
    data = entry.content
    if not isinstance(data, bytes) or len(data) > MAX_IMAGE:
        return None
    return messages.image_of(data)  # the name of a file may be anything


def as_json(value: Any) -> str:
    """JSON text of plain data, readable in any language."""
    return json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)


def numbered(number: int, line: str, mark: str = "\t") -> str:
    r"""One line with its number in six columns.

    >>> numbered(3, "x")
    '     3\tx'
    """
    line = line.removesuffix("\r")
    shown = line if len(line) <= MAX_LINE else line[:MAX_LINE] + _CUT
    return f"{number:>6}{mark}{shown}"


def part(lines: Sequence[str], first: int, total: int | None) -> str:
    """Numbered lines, the first of which is ``first``, with a header unless they are all.

    ``total`` is how many the file has, if that is known. An empty file is one empty line.
    """
    if not lines:
        return numbered(1, "")
    shown: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        text = numbered(number, line)
        size += len(text) + 1
        if shown and size > MAX_SHOWN:
            break
        shown.append(text)
    if len(shown) == total:
        return "\n".join(shown)
    of = "; more follow" if total is None else f" of {total}"
    return f"Lines {first}–{first + len(shown) - 1}{of}:\n" + "\n".join(shown)


def preview(text: str, first: int, last: int, context: int = 3, limit: int = 40) -> str:
    """Lines ``first`` to ``last`` as they are now, with some around them."""
    lines = split_lines(text)
    start = max(1, min(first, len(lines)) - context)
    end = min(len(lines), last + context)
    count = max(1, min(end - start + 1, limit))
    return part(lines[start - 1 : start - 1 + count], start, len(lines))


def hits(lines: Sequence[str], found: Iterable[int], context: int) -> list[str]:
    """The lines with those numbers, and ``context`` lines around each, marked with "|"."""
    chosen = set(found)
    around = {
        number
        for hit in chosen
        for number in range(max(1, hit - context), min(len(lines), hit + context) + 1)
    }
    shown: list[str] = []
    previous = 0
    for number in sorted(around):
        if context and previous and number > previous + 1:
            shown.append("    --")
        previous = number
        shown.append(numbered(number, lines[number - 1], "\t" if number in chosen else "|\t"))
    return shown


def search(
    entries: Iterable[FileEntry],
    expression: Expression,
    *,
    context: int,
    limit: int,
    named: bool,
    no_text: list[str],
) -> str:
    """The hits in the text files among ``entries``, at most ``limit`` over all of them.

    ``named`` puts the path over each file's block; ``no_text`` gets the paths of the others. ""
    without a hit.
    """
    blocks: list[str] = []
    total = 0
    for entry, text in _candidates(entries, expression, no_text):
        lines = split_lines(text)
        shown = [line.removesuffix("\r") for line in lines] if "\r" in text else lines
        found = expression.lines_found(shown)
        full = total + len(found) > limit
        found = found[: limit - total]
        total += len(found)
        if found:
            block = "\n".join(hits(lines, found, context))
            blocks.append(f"{entry.path}:\n{block}" if named else block)
        if full:
            blocks.append(f"Only the first {limit} hits are shown; make the pattern narrower.")
            break
    return "\n\n".join(blocks)


def _candidates(
    entries: Iterable[FileEntry], expression: Expression, no_text: list[str]
) -> Iterator[tuple[FileEntry, str]]:
    """The files that may have a hit, with their texts."""
    entries = iter(entries)
    while part := list(itertools.islice(entries, TOGETHER)):
        texts = [entry.text for entry in part]
        if None in texts:
            no_text += [e.path for e, text in zip(part, texts, strict=True) if text is None]
            part = [e for e, text in zip(part, texts, strict=True) if text is not None]
        there = [text for text in texts if text is not None]
        yield from ((part[n], there[n]) for n in expression.may_be_in_each(there))


def not_searched(failed: Mapping[str, FileError], no_text: Sequence[str]) -> str:
    """How many files a search left out, why and which; those that are gone by now aside.

    >>> not_searched({"/a": LimitExceeded("")}, ["/1", "/2", "/3", "/4"])
    '1 too large (/a), 4 binary (/1, /2, /3, …)'
    """
    there = {p: e for p, e in failed.items() if not isinstance(e, FileMissing | WrongKind)}
    large = [path for path, error in there.items() if isinstance(error, LimitExceeded)]
    reasons = {
        "too large": large,
        "unreadable": there.keys() - large,
        "binary": no_text,
    }
    return ", ".join(
        f"{len(some)} {why} ({', '.join(sorted(some)[:3])}{', …' if len(some) > 3 else ''})"
        for why, some in reasons.items()
        if some
    )
