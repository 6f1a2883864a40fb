"""Whatever goes wrong with a provider, as one ModelError: one sentence, and no key in it."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...errors import ModelError
from ...redaction import Secrets, redacted, without


class Where(NamedTuple):
    """Whom we talked to, for messages. ``secrets`` are what must never be quoted."""

    provider: str
    model: str
    host: str
    key_variable: str
    secrets: Secrets = Secrets()

    def __repr__(self) -> str:
        return f"Where({self.provider!r}, {self.model!r}, {self.host!r})"


# Official APIs, llama.cpp, vLLM, and what gateways make of them.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|prompt is too long|input is too long|"
    r"maximum context length|context window|context size|context length|"
    r"input length and `?max_tokens`? exceed",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(r"insufficient_quota|billing|credit balance|payment", re.IGNORECASE)
_READ = 20_000  # characters of a provider's own words that we look at,
_QUOTED = 300  # and that we quote


def from_exception(error: BaseException, where: Where) -> ModelError:
    """The ModelError for an exception of an SDK or of the HTTP client below it."""
    status = getattr(error, "status_code", None)
    names = {base.__name__ for base in type(error).__mro__}
    if status is None:
        if names & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
            return _error(
                f"{where.provider} at {where.host} did not answer in time; try again, or pass a "
                "larger timeout=… (seconds).",
                kind="timeout",
            )
        if names & {"APIConnectionError", "TransportError", "OSError"}:
            cause = error.__cause__ or error
            detail = _quoted(str(cause) or type(cause).__name__, where)
            return _error(
                f"{where.provider} at {where.host} could not be reached ({detail}); check the "
                "network, the proxy settings and base_url.",
                kind="connection",
            )
        if "UnicodeEncodeError" in names:  # of the headers: all else is bytes already
            return _error(
                f"The key or another header for {where.provider} has a character that no header "
                f"may have; check {where.key_variable}, api_key=… and headers=….",
                kind="invalid_request",
            )
        return ModelError(
            f"The call of {where.provider} failed with {type(error).__name__}: "
            f"{_quoted(str(error), where)}",
            kind="unknown",
        )
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    if 300 <= status < 400:
        return _error(
            f"{where.provider} at {where.host} redirects to {_host_of(headers, where)} (HTTP "
            f"{status}), which is not followed: it would be sent the conversation and keys; check "
            "base_url.",
            kind="invalid_request",
            status=int(status),
        )
    failure = from_report(
        getattr(error, "body", None) or str(error),
        where,
        status=int(status),
        retry_after=retry_after(headers),
    )
    failure.request_id = of_headers(headers, where).get("request_id")
    return failure


def from_report(
    report: Any, where: Where, *, status: int | None = None, retry_after: float | None = None
) -> ModelError:
    """The ModelError for an error body: ``{"type", "code", "message"}``, in "error" or not."""
    if isinstance(report, Mapping) and isinstance(report.get("error"), Mapping | str):
        report = report["error"]
    if not isinstance(report, Mapping):
        report = {"message": "" if report is None else str(report)}
    message = str(report.get("message") or "")[:_READ]
    name = f"{report.get('type') or ''} {report.get('code') or ''}"
    kind = _kind(status, name, message)
    quote = _quoted(message, where).rstrip(".")
    code = f" (HTTP {status})" if status else ""
    text = _SENTENCES[kind].format(
        where=where, code=code, quote=f": {quote}" if quote else "", wait=_wait(retry_after)
    )
    if status == 404:
        text = (
            f"{where.provider} at {where.host} knows no model {where.model!r}{code}; check the "
            f"name and base_url{': ' + quote if quote else ''}."
        )
    elif kind == "authentication" and _NO_MONEY.search(name + message):
        text = (
            f"{where.provider} refused the call for lack of credit{code}; check the plan and "
            "billing of the account the key belongs to."
        )
    return _error(text, kind=kind, status=status, retry_after=retry_after)


def _host_of(headers: Mapping[str, str], where: Where) -> str:
    try:
        host = urlsplit(headers.get("location", "")).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    return _quoted(host, where)[:100] or "another place"


def _quoted(text: str, where: Where) -> str:
    return " ".join(redacted(text[:_READ], where.secrets).split())[:_QUOTED]


def _error(text: str, **fields: Any) -> ModelError:
    return ModelError(text[:1].upper() + text[1:], **fields)


_SENTENCES = {
    # The provider's own words are left out here: they quote the key.
    "authentication": (
        "{where.provider} refused the key{code}; check {where.key_variable} or api_key=…, and "
        "that it may use {where.model!r}."
    ),
    "rate_limit": "{where.provider} has a rate limit{code}; {wait}, or ask for a higher limit.",
    "overloaded": "{where.provider} is overloaded{code}; {wait}, or use another model.",
    "context_window": (
        "The conversation is too long for {where.model!r}{code}; summarise or shorten it, or "
        "use a model with a larger context window{quote}."
    ),
    "timeout": "{where.provider} gave up waiting{code}; try again{quote}.",
    "server": "{where.provider} at {where.host} failed{code}; try again later{quote}.",
    "invalid_request": "{where.provider} refused the request for {where.model!r}{code}{quote}.",
    "unknown": "{where.provider} reported an error{code}{quote}.",
}


def _kind(status: int | None, name: str, message: str) -> str:
    if "rate_limit" in name and status in (None, 429):
        return "rate_limit"
    if _TOO_LONG.search(name) or (
        status in (None, 400, 413, 422, 500) and _TOO_LONG.search(message)
    ):
        return "context_window"
    if "overloaded" in name or status in (503, 529):
        return "overloaded"
    if status == 402 or (status in (None, 400, 429) and _NO_MONEY.search(name)):
        return "authentication"
    if status in (401, 403) or "authentication" in name or "permission" in name:
        return "authentication"
    if status == 429:
        return "rate_limit"
    if status in (408, 504) or "timeout" in name:
        return "timeout"
    if status == 413 or "too_large" in name:
        return "context_window"
    if status == 409 or (status or 0) >= 500 or "server_error" in name or "api_error" in name:
        return "server"
    if (status or 0) >= 400 or "invalid" in name or "not_found" in name:
        return "invalid_request"
    return "unknown"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the ``retry-after`` headers say; None for none or nonsense."""
    for header, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(header)
        if text is None:
            continue
        try:
            seconds = float(text) / scale
        except ValueError:
            date = email.utils.parsedate_tz(text)
            if date is None:
                continue
            seconds = max(0.0, email.utils.mktime_tz(date) - time.time())
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def of_headers(headers: Mapping[str, str], where: Where) -> dict[str, Any]:
    """What the headers of an answer tell: what to ask about it by, and what is left to spend.

    ``request_id``, and ``rate_limits`` by the names that the provider gives them.
    """
    headers = {name: without(text, where.secrets) for name, text in headers.items()}
    told: dict[str, Any] = {}
    if request_id := headers.get("request-id") or headers.get("x-request-id"):
        told["request_id"] = request_id
    prefixes = ("x-ratelimit-", "anthropic-ratelimit-")
    if limits := {name: text for name, text in headers.items() if name.startswith(prefixes)}:
        told["rate_limits"] = limits
    return told


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "try again later"
    return f"try again in {math.ceil(seconds)} s" if seconds else "try again"


def cut_stream(where: Where, detail: str) -> ModelError:
    """The ModelError for an answer that ended before its end was announced."""
    return ModelError(
        f"The answer of {where.provider} ({where.model!r}) was cut off: {detail}; nothing of it "
        "was run, so it is safe to try again.",
        kind="cut_stream",
    )


def not_a_stream(where: Where, content_type: str, status: int) -> ModelError:
    """The ModelError for an answer such as a web page, which no provider gives."""
    return _error(
        f"{where.provider} at {where.host} answered with {content_type or 'nothing'!r} instead "
        "of a stream of events; check base_url.",
        kind="server",
        status=status,
    )
