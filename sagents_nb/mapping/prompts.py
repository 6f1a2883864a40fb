"""From a series, a frame or any iterable to one prompt a row."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ConfigurationError
from ..loop.execution import starting_point
from ..messages import Message

# The messages of one row, or why it has none.
Prompt = Sequence[Message] | str


def prompts_of(inputs: Any, template: str | None) -> tuple[list[Prompt], Any]:
    """The prompt of each row, or why it has none, and the index of ``inputs``, None without.

    Raises ConfigurationError for what no prompts can be made of.
    """
    if hasattr(inputs, "to_dict") and hasattr(inputs, "columns"):
        if template is None:
            columns = ", ".join(map(str, inputs.columns))
            raise ConfigurationError(
                "A frame needs a prompt such as 'Translate: {text}', with the names of its "
                f"columns ({columns}); or give one column."
            )
        return _filled(inputs.to_dict("records"), template, inputs.columns), inputs.index
    index = None if isinstance(inputs, list | tuple) else getattr(inputs, "index", None)
    if isinstance(inputs, str | Mapping) or not isinstance(inputs, Iterable):
        raise ConfigurationError(
            "agent.map takes a series, a frame or an iterable of prompts, not "
            f"{type(inputs).__name__}; for one prompt there is agent.run."
        )
    values: list[Any] = list(inputs)
    if template is not None:
        if not all(isinstance(value, Mapping) for value in values):
            values = [{"value": value, "": value} for value in values]
        names = list(dict.fromkeys(name for value in values for name in value))
        return _filled(values, template, names), index
    return [_prompt(value) for value in values], index


def _prompt(value: Any) -> Prompt:
    if is_missing(value) or value == "":
        return "This row has no prompt."
    if isinstance(value, int | float) or hasattr(value, "item"):  # a number, also numpy's
        value = str(value)
    return starting_point(value, None)[1]


def _filled(
    rows: Iterable[Mapping[Any, Any]], template: str, columns: Iterable[Any]
) -> list[Prompt]:
    used = _used(template)
    known = {str(column) for column in columns}
    if lacking := [name for name in used if name not in known]:
        names = ", ".join(sorted(known - {""}))
        raise ConfigurationError(
            f"The prompt names {', '.join(lacking)}, but the columns are {names}."
        )
    made: list[Prompt] = []
    for row in rows:
        values = {str(name): value for name, value in row.items()}
        missing = [name or "value" for name in used if is_missing(values.get(name))]
        if missing:
            made.append(f"This row has no {', '.join(missing)}.")
        else:
            made.append([Message.user(_format(template, values))])
    return made


def _used(template: str) -> list[str]:
    try:
        parsed = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ConfigurationError(
            f"The prompt is no template ({error}); write '{{{{' and '}}}}' for braces of its own."
        ) from None
    return list(dict.fromkeys(name.partition(".")[0].partition("[")[0] for name in parsed))


def _format(template: str, values: Mapping[str, Any]) -> str:
    try:
        return string.Formatter().vformat(template, (values.get(""),) * 9, values)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigurationError(f"The prompt cannot be filled in: {error}.") from None


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value
