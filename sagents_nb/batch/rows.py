"""One row of a map: its prompt, what is asked, what came of it, and how one becomes the other."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from .. import kinds
from ..errors import AgentError, ConfigurationError, ModelError, pass_on
from ..events import Emitter
from ..extract import Asking
from ..files import VirtualFilesystem
from ..loop.execution import messages_of, new_run_id, run_result
from ..messages import Message, Usage
from ..models import ModelRequest
from ..models.cache.recording import asked, message_form
from ..serialization import to_data
from ..state import State
from ..text import exact, said_by

if TYPE_CHECKING:
    from ..agent import Agent

# What fails for one row fails for all of them.
_HOPELESS = ("missing_key", "missing_package", "authentication")


class Row(msgspec.Struct, frozen=True, gc=False):
    """What one run is asked. Plain data: msgspec makes JSON of it and reads it again.

    ``key`` is the digest of all that decides the answer, so it finds the answer again.
    """

    key: str
    messages: tuple[Message, ...]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What came of a row. Plain data, like :class:`Row`.

    ``fields`` are those of the structured output; ``time`` is in seconds since the epoch. What was
    used by earlier attempts at the row, which failed, is in its counts and its ``usage`` too.
    """

    key: str
    status: Literal["completed", "failed", "interrupted", "not_run"]
    text: str = ""
    fields: dict[str, Any] | None = None
    error: str | None = None
    error_type: str | None = None
    model: str = ""
    model_calls: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    duration: float = 0.0
    time: float = 0.0


# The messages of one row, or why it has none.
Prompt = Sequence[Message] | str


def prompts_of(
    inputs: Any, template: str | Callable[[Any], Any] | None
) -> tuple[list[Prompt], Any]:
    """The prompt of each row, or why it has none, and the index of ``inputs``, None without.

    A function makes the prompt of a row: of a frame's as a Series, else of the value. Raises
    ConfigurationError for what no prompts can be made of.
    """
    if hasattr(inputs, "to_dict") and hasattr(inputs, "columns"):
        if callable(template):
            return _made((row for _, row in inputs.iterrows()), template), inputs.index
        if template is None:
            columns = ", ".join(map(str, inputs.columns))
            raise ConfigurationError(
                "A frame needs a prompt such as 'Translate: {text}', with the names of its "
                f"columns ({columns}); or give one column."
            )
        names = [*inputs.columns]
        pieces, used = _read(template, names)
        if not used:
            raise _same_for_all(template, names, "df[{!r}]")
        named = inputs.loc[:, [str(name) in used or len(names) == 1 for name in names]]
        return _filled(_also_short(named.to_dict("records"), names), pieces, used), inputs.index
    index = getattr(inputs, "index", None)
    index = None if callable(index) else index  # of a list, say: a method
    if isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Iterable):
        raise ConfigurationError(
            "agent.map takes a series, a frame or an iterable of prompts, not "
            f"{type(inputs).__name__}; for one prompt there is agent.run."
        )
    values: list[Any] = list(inputs)
    if template is None or not values:
        return [_prompt(value) for value in values], index
    if callable(template):
        return _made(values, template), index
    if all(isinstance(value, Mapping) for value in values):
        names = list(dict.fromkeys(name for value in values for name in value))
        pieces, used = _read(template, names)
        if not used:
            raise _same_for_all(template, names, "[row[{!r}] for row in rows]")
        return _filled(_also_short(values, names), pieces, used), index
    named = getattr(inputs, "name", None)  # as a series may be
    own = str(named) if isinstance(named, str | int) and str(named) else "value"
    pieces, used = _read(template, {own, "value"}, own)
    if not used:
        raise _same_for_all(template, (), "")
    return _filled([{own: v, "value": v, "": v} for v in values], pieces, used), index


def _also_short(rows: Sequence[Mapping[Any, Any]], names: Sequence[Any]) -> Any:
    """The rows, in which "{}" is the column if there is only one."""
    if len(names) != 1:
        return rows
    return [{**row, "": row.get(names[0])} for row in rows]


def _same_for_all(template: str, names: Iterable[Any], alone: str) -> ConfigurationError:
    """Why a prompt without a name is refused: nobody means to pay for one question many times.

    ``alone`` is how the values of one column are given without a prompt.
    """
    names = list(names)
    if not names:
        return ConfigurationError(
            "The prompt does not say where the values go, so each row would be asked the same; "
            "write '{}' there, or give the values without a prompt."
        )
    name = next((name for name in names if str(name) == template.strip()), names[0])
    return ConfigurationError(
        f"The prompt names none of the columns ({', '.join(map(str, names))}), so each row would "
        f"be asked the same; write '{{{name}}}' in it, or pass {alone.format(name)} without a "
        "prompt."
    )


def _prompt(value: Any) -> Prompt:
    if type(value) is str and value.strip():  # nearly always
        return (Message.user(value),)
    if is_missing(value) or value == "":
        return "This row has no prompt."
    if isinstance(value, int | float) or hasattr(value, "item"):  # a number, also numpy's
        value = str(value)
    return messages_of(value)


def _made(rows: Iterable[Any], make: Callable[[Any], Any]) -> list[Prompt]:
    prompts: list[Prompt] = []
    for number, row in enumerate(rows):
        try:
            prompts.append(_prompt(make(row)))
        except ConfigurationError:
            raise
        except BaseException as error:
            pass_on(error)
            raise ConfigurationError(
                f"The prompt function failed for row {number}, so nothing was asked: "
                f"{said_by(error)}"
            ) from error
    return prompts


# ``{name}`` in a prompt, and no more of ``str.format`` than how a value is written: what stands in
# the values of a frame is often somebody else's, and following their attributes would show all.

# Braces that are text, a name with what is behind it, in which braces may be, or a lone brace.
_BRACES = re.compile(r"\{\{|\}\}|\{((?:[^{}]|\{[^{}]*\})*)\}|[{}]")
_FORM = re.compile(r"(?:!([rs]))?(?::(.*))?", re.DOTALL)
_NUMBER = re.compile(r"(\.?)(\d+)")
_WIDEST = 1_000


class _Named(NamedTuple):
    """A name in braces, with its ``!r`` or ``!s`` and its format."""

    name: str
    conversion: str
    form: _Template


_Template = list[str | _Named]


def _filled(
    rows: Iterable[Mapping[Any, Any]], template: _Template, used: Collection[str]
) -> list[Prompt]:
    prompts: list[Prompt] = []
    for row in rows:
        values = {str(name): value for name, value in row.items() if str(name) in used}
        missing = [name or "value" for name in used if is_missing(values.get(name))]
        if missing:
            prompts.append(f"This row has no {', '.join(missing)}.")
        else:
            prompts.append((Message.user(_written(template, values)),))
    return prompts


def _written(template: _Template, values: Mapping[str, Any]) -> str:
    return "".join(piece if isinstance(piece, str) else _value(piece, values) for piece in template)


def _value(named: _Named, values: Mapping[str, Any]) -> str:
    value, form = values[named.name], _written(named.form, values)
    is_text = bool(named.conversion) or isinstance(value, str)
    for is_precision, digits in _NUMBER.findall(form):
        if is_precision and is_text:  # which it cuts
            continue
        if len(digits) > len(str(_WIDEST)) or int(digits) > _WIDEST:
            raise ConfigurationError(
                f"The prompt cannot be filled in: the format {form[:40]!r} of "
                f"{named.name or '{}'} is too wide; a width or precision is at most {_WIDEST:,}."
            )
    try:
        if named.conversion:
            value = repr(value) if named.conversion == "r" else str(value)
        return format(value, form)
    except Exception as error:  # also of a class of somebody's own
        raise ConfigurationError(
            f"The prompt cannot be filled in: {named.name or '{}'} cannot be written as "
            f"{form[:40]!r} ({said_by(error)})."
        ) from None


def _read(template: str, columns: Iterable[Any], values: str = "") -> tuple[_Template, list[str]]:
    """The prompt in pieces, and the columns that it names, "" for the only one.

    ``values`` names those of no column. Raises ConfigurationError unless there is one column of
    each name.
    """
    names = Counter(str(column) for column in columns)
    if values or names.total() == 1:
        names[""] = 1
    used: dict[str, None] = {}
    lacking: dict[str, None] = {}
    pieces = _pieces(template, names, used, lacking)
    if lacking:
        raise _lacking([*lacking], names, values)
    if several := [name for name in used if names[name] > 1]:
        raise ConfigurationError(
            f"The prompt names {', '.join(several)}, but several columns are called so; rename "
            "all but one."
        )
    return pieces, [*used]


def _pieces(
    template: str, names: Collection[str], used: dict[str, None], lacking: dict[str, None]
) -> _Template:
    pieces: _Template = []
    end = 0
    for match in _BRACES.finditer(template):
        pieces.append(template[end : match.start()])
        end = match.end()
        field: str | None = match[1]
        if field is None:
            if len(match[0]) == 1:
                raise ConfigurationError(
                    f"The prompt is no template ({match[0]!r} stands alone); write '{{{{' and "
                    "'}}' for braces of its own."
                )
            pieces.append(match[0][0])
            continue
        found = _name_and_form(field, names)
        if found is None:
            lacking.setdefault(re.split("[!:]", field, maxsplit=1)[0])
            continue
        name, conversion, form = found
        used.setdefault(name)
        pieces.append(_Named(name, conversion, _pieces(form, names, used, lacking)))
    return [*pieces, template[end:]]


def _name_and_form(field: str, names: Collection[str]) -> tuple[str, str, str] | None:
    """The column that is meant, how it is converted and written; None if there is no such column.

    A name counts whole first, whatever is in it. Raises ConfigurationError for what is more than
    a name and how it is written.
    """
    if field in names:
        return field, "", ""
    begins = [match.start() for match in re.finditer(r"[!:.\[]", field)]
    for place in reversed(begins):
        if (name := field[:place]) not in names:
            continue
        if field[place] in ".[":
            raise ConfigurationError(
                f"The prompt says {{{field:.60}}}, and attributes and items of values are not "
                f"looked up; write {{{name}}}, or give a function that makes the prompt of a row."
            )
        form = _FORM.fullmatch(field, place)
        if form is None:
            raise ConfigurationError(
                f"The prompt says {{{field:.60}}}, and behind {name or 'the brace'} may stand !r, "
                "!s or a format such as :>10; braces that are text are {{ and }}."
            )
        return name, form[1] or "", form[2] or ""
    return None


def _lacking(lacking: Sequence[str], names: Iterable[str], values: str) -> ConfigurationError:
    """Why a prompt with names that no column has is refused."""
    if values:
        return ConfigurationError(
            f"The prompt names {', '.join(lacking)}, but the values have the name {values}; write "
            f"'{{}}' or '{{{values}}}' where they go."
        )
    columns = sorted(name for name in names if name)
    if "" in lacking and columns:
        return ConfigurationError(
            f"The prompt says '{{}}', but there are several columns ({', '.join(columns)}); write "
            f"the name of one, as in '{{{columns[0]}}}'."
        )
    braces = "" if all(map(str.isidentifier, lacking)) else "; braces that are text are {{ and }}"
    return ConfigurationError(
        f"The prompt names {', '.join(name or '{}' for name in lacking)}, but the columns are "
        f"{', '.join(columns) or 'none'}{braces}."
    )


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def keyed(asker: Agent | Asking[Agent], prompts: Iterable[Sequence[Message]]) -> list[Row]:
    """Rows with their keys; of equal prompts each has a key of its own."""
    agent = asker.agent if isinstance(asker, Asking) else asker
    tools = tuple(tool.spec for tool in agent.tools)
    request = ModelRequest(
        (), agent.assembled_system_prompt, tools, agent.options, agent.model.name
    )
    until = sorted(agent.until_tool | agent.until_tool_success)
    fixed = f"{asked(agent.model, request).key} {agent.max_runs} {until}".encode()
    if not isinstance(agent.system_prompt, str):
        fixed += _likeness(agent.system_prompt)
    begun = hashlib.sha256(fixed + b" ")
    seen: dict[bytes, int] = {}
    rows = []
    encode = msgspec.json.Encoder(order="sorted").encode
    for prompt in prompts:
        forms = [*map(message_form, prompt)]
        try:
            text = encode(forms)
        except (TypeError, ValueError, OverflowError):  # half a character
            text = exact(repr(to_data(forms)))
        number = seen[text] = seen.get(text, 0) + 1
        digest = begun.copy()
        digest.update(b"%d %s" % (number, text))
        rows.append(Row(digest.hexdigest(), tuple(prompt)))
    return rows


def _likeness(function: Any) -> bytes:
    """What tells a function from others: its code and what it closes over, as far as it shows."""
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(function).encode()
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    shown = (code.co_code, code.co_consts, code.co_names, function.__defaults__, cells)
    return repr(shown).encode(errors="replace")


@kinds.checked
async def run_row(asker: Agent | Asking[Agent], row: Row) -> Answer:
    """Run an agent on one row, on the runtime loop; files that it writes are the row's own.

    Whatever goes wrong is in the answer. Raises only what ends the whole map: ModelError for a
    missing key or package, and CancelledError.
    """
    return await answer_to(row, asker)


async def answer_to(row: Row, asker: Agent | Asking[Agent]) -> Answer:
    """What :func:`run_row` gives, of what is known to be right."""
    asking = asker if isinstance(asker, Asking) else None
    agent = asker.agent if isinstance(asker, Asking) else asker
    emitter = Emitter(session_id=agent.agent_id, run_id=new_run_id())
    own = None if agent.filesystem_scope else partial(VirtualFilesystem, ("map", row.key))
    loop = asker.new_run(State(), emitter, local={}, files=own)
    began = time.perf_counter()
    outcome = await loop.run(row.messages)
    meter = loop.ctx.meter

    def answer(status: Any, text: str = "", **more: Any) -> Answer:
        return Answer(
            row.key,
            status,
            text,
            model=loop.commits.model or agent.model.name,
            model_calls=meter.model_calls,
            tool_calls=meter.tool_calls,
            usage=meter.usage,
            duration=time.perf_counter() - began,
            time=time.time(),
            **more,
        )

    if outcome.status == "cancelled":  # which the loop takes for a result
        raise asyncio.CancelledError
    try:
        result = run_result(outcome, 0.0, {}, loop.ctx.local, meter)
        if result.interrupt is not None:
            names = ", ".join(r.tool_name for r in result.interrupt.action_requests)
            why = f"The run waits for a person ({names or result.interrupt.type})."
            return answer("interrupted", result.text, error=why)
        if asking is None:
            return answer("completed", result.text)
        fields = asking.output.data(asking.value(result))
        return answer("completed", result.text, fields=to_data(fields))
    except AgentError as error:
        if isinstance(error, ModelError) and error.kind in _HOPELESS:
            raise
        text = error.result.text if error.result else ""
        return answer("failed", text, error=str(error), error_type=type(error).__name__)


def with_attempt(answer: Answer, before: Answer) -> Answer:
    """``answer`` with what the attempt ``before`` has used, so that it is in some row."""
    return msgspec.structs.replace(
        answer,
        model_calls=answer.model_calls + before.model_calls,
        tool_calls=answer.tool_calls + before.tool_calls,
        usage=answer.usage + before.usage,
    )


def not_asked(row: Row, status: Literal["failed", "not_run"], why: Exception | str) -> Answer:
    """The answer of a row that was not run."""
    kind = type(why).__name__ if isinstance(why, Exception) else None
    return Answer(row.key, status, error=str(why), error_type=kind, time=time.time())
