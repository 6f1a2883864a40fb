r"""Text that every encoding takes.

Cut text and names of files that are not UTF-8 hold lone surrogates, halves of characters, which
UTF-8 and so providers, databases, pages and files refuse. Text to be read gets a mark in their
place (:func:`whole`): "?" in a conversation, U+FFFD in copies of it for programs: requests,
frames, search. Where a conversation is written down they are spelled out, as all that hides. What
two texts are told apart by keeps them (:func:`exact`, :func:`digest`), and what is stored is
escaped, so that it comes back (``serialization.portable``). What people decide on goes to a page
and back as it is (:func:`carried`, :func:`brought_back`).
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from .errors import pass_on
from .kinds import HALF_CHARACTER

REPLACEMENT = "\ufffd"
# A terminal or a log must never act on what a model or a tool wrote: C0 and C1 controls but
# tab and newline, and the characters that reorder or hide text (OWASP LLM10:2026).
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def whole(text: str, mark: str = "?") -> str:
    r"""``text`` with ``mark`` for each half character; two halves that belong together join.

    >>> whole("a\ud83d b\ud83d\ude00")
    'a? b😀'
    """
    if text.isascii():  # known without a look
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return HALF_CHARACTER.sub(mark, joined)
    return text


def visible(text: str) -> str:
    r"""``text`` with control and invisible characters written out, and halves of others.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _HIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)


def whole_data(data: Any, mark: str = "?") -> Any:
    """JSON-ready ``data`` with all its texts, also the keys, as :func:`whole` makes them."""
    return _with_texts(data, partial(whole, mark=mark))


def _with_texts(data: Any, change: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, dict):
        return {change(str(key)): _with_texts(value, change) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_with_texts(value, change) for value in data]
    return data


# Half characters on a page: as many code points that nobody uses, at the end of plane 16.
_CARRIED = re.compile("[\U0010d800-\U0010dfff]")
_PLANE = 0x100000


def carried(data: Any) -> Any:
    r"""JSON-ready ``data`` for a page, which shows each half character as one that hides.

    >>> carried({"path": "a\udcff"})
    {'path': 'a\U0010dcff'}
    """
    return _with_texts(data, partial(HALF_CHARACTER.sub, lambda half: chr(ord(half[0]) + _PLANE)))


def brought_back(data: Any) -> Any:
    r"""What comes from a page of data that were :func:`carried` to it.

    >>> brought_back(carried({"path": "a\udcff"})) == {"path": "a\udcff"}
    True
    """
    return _with_texts(data, partial(_CARRIED.sub, lambda half: chr(ord(half[0]) - _PLANE)))


def text_or_why(value: Any, write: Callable[[Any], str] = str) -> str:
    """``str(value)`` or its ``repr``, or what kept somebody's class from giving it."""
    try:
        return write(value)
    except BaseException as error:
        pass_on(error)
        return f"<{type(value).__name__}: its text failed with {type(error).__name__}>"


def said_by(error: BaseException) -> str:
    """An exception as a sentence quotes it, without the secrets that are known here.

    >>> said_by(ValueError("no"))
    'ValueError: no'
    """
    from .redaction import without_known  # with what it needs, which few have errors for

    return f"{type(error).__name__}: {without_known(whole(text_or_why(error)))}"


class _Harmless(logging.Filter):
    """Takes what can be nothing but a key out of what is logged: a path or an id may hold one.

    What a terminal would act on is written out.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        from .redaction import unkeyed

        try:
            said = record.getMessage()
            shown = visible(unkeyed(said))
            told = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        except Exception:  # of a class of somebody's own, as the handler says
            return True
        if shown != said:
            record.msg, record.args = shown, None
        if (shown := visible(unkeyed(told))) != told:
            record.exc_text, record.exc_info = shown.rstrip(), None
        return True


_harmless = _Harmless()


def logger_of(name: str) -> logging.Logger:
    """The logger of that name, which all of the package log by: no key, and no escape, comes out.

    >>> logger_of("sagents_nb.batch").name
    'sagents_nb.batch'
    """
    logger = logging.getLogger(name)
    logger.addFilter(_harmless)
    return logger


def exact(text: str) -> bytes:
    """The bytes of ``text``, half characters too: different texts have different ones."""
    return text.encode(errors="surrogatepass")


def digest(text: str) -> str:
    """SHA-256 (hex) over :func:`exact`."""
    return sha256(exact(text))


def sha256(data: bytes) -> str:
    """SHA-256 (hex)."""
    import hashlib  # loads OpenSSL, which `import sagents_nb` need not

    return hashlib.sha256(data).hexdigest()
