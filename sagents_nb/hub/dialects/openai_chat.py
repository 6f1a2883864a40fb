"""OpenAI's chat completions: an agent as a model, for any client that knows these.

A client sends the whole conversation each time, so nothing is kept here. It sees what the agent
says; its tools stay hidden, and what would need an approval is denied, which the agent says.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from ...errors import ConfigurationError, NotFound, SagentsError
from ...events import MessageStart, MessageUpdate
from ...foreign_messages import messages_from
from ...interrupts import ActionRequest, Decision, Reject, Respond
from ...messages import Message, TextDelta, Usage
from ...result import RunResult
from ...serialization import encoded
from ...session import Session

DONE = b"data: [DONE]\n\n"


class ChatRequest(msgspec.Struct, kw_only=True):
    """What a client asks; what is not named here is of no matter to an agent, and left out."""

    model: str
    messages: list[dict[str, Any]]
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    tools: list[Any] | None = None
    n: int | None = None
    user: str | None = None

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with what it took."""
        return bool((self.stream_options or {}).get("include_usage"))


class ChatModel(msgspec.Struct, kw_only=True):
    """A kind of agent, as a model."""

    id: str
    owned_by: str
    object: Literal["model"] = "model"
    created: int = 0


class ChatModels(msgspec.Struct, kw_only=True):
    """The kinds of agents there are."""

    data: list[ChatModel]
    object: Literal["list"] = "list"


class ChatReply(msgspec.Struct, kw_only=True):
    """What the agent said."""

    id: str
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, int]
    object: Literal["chat.completion"] = "chat.completion"


def place_of(model: str, agency_id: str | None) -> tuple[str, str]:
    """The agency and the kind of agent that a model's name means, "agency/kind" or "kind"."""
    first, slash, rest = model.partition("/")
    agency, kind = (first, rest) if slash else (agency_id, model)
    if agency is None:
        raise ConfigurationError(
            f"The model {model!r:.110} names no agency; write it as agency/kind, or use the secret "
            "of the agency."
        )
    if agency_id is not None and agency != agency_id:
        raise NotFound(f"There is no model {model!r:.110}; GET /v1/models lists them.")
    return agency, kind


class Completion:
    """One answer to ``request`` of the agent of ``session``, which it is asked for once."""

    def __init__(self, session: Session, request: ChatRequest) -> None:
        if request.tools:
            raise ConfigurationError(
                "An agent has tools of its own; leave out tools, or give them to its blueprint."
            )
        if request.n not in (None, 1):
            raise ConfigurationError("An agent answers once; leave out n.")
        self._request = request
        self._messages: list[Message] = messages_from(request.messages)
        self._session = session
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def begin(self) -> None:
        """Ask; raises ConfigurationError for messages that nobody can answer."""
        self._run = self._session.send(self._messages)

    def close(self) -> None:
        """Stop what is left of it."""
        self._session.close()

    async def reply(self) -> ChatReply:
        """All of it at once; raises what the run raises."""
        text, usage, status = "", Usage(), ""
        async for piece in self._pieces():
            if isinstance(piece, str):
                text += piece
            else:
                usage, status = usage + piece.usage, piece.status
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": _reason(status),
        }
        return ChatReply(
            id=self._id,
            created=self._created,
            model=self._request.model,
            choices=[choice],
            usage=_usage(usage),
        )

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its text as it comes, as server-sent events; an error is the last of them."""
        yield self._chunk({"role": "assistant", "content": ""})
        usage, status = Usage(), ""
        try:
            async for piece in self._pieces():
                if isinstance(piece, str):
                    yield self._chunk({"content": piece})
                else:
                    usage, status = usage + piece.usage, piece.status
        except SagentsError as error:
            yield _event({"error": {"message": str(error), "type": "server_error"}})
            return
        yield self._chunk({}, _reason(status))
        if self._request.with_usage:
            yield _event({**self._head(), "choices": [], "usage": _usage(usage)})
        yield DONE

    async def _pieces(self) -> AsyncIterator[str | RunResult]:
        """What it says, and what each part of the run came to: those that were asked are denied."""
        run, said = self._run, False
        while True:
            async for event in run:
                if isinstance(event, MessageStart) and event.message.role == "assistant" and said:
                    yield "\n\n"
                    said = False
                elif isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta):
                    said = said or bool(event.delta.text)
                    yield event.delta.text
            result = await run
            yield result
            if result.interrupt is None:
                return
            denied = [_denied(request) for request in result.interrupt.action_requests]
            run = await asyncio.to_thread(self._session.resume, denied)

    def _head(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._request.model,
        }

    def _chunk(self, delta: dict[str, str], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event({**self._head(), "choices": [choice]})


def _denied(request: ActionRequest) -> Decision:
    if "reject" in request.allowed_decisions:
        return Reject("Nobody can approve it here, so it was not run.", unattended=True)
    return Respond("Nobody is there to answer.")


def _usage(usage: Usage) -> dict[str, int]:
    asked = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": asked,
        "completion_tokens": usage.output_tokens,
        "total_tokens": asked + usage.output_tokens,
    }


def _reason(status: str) -> str:
    return "stop" if status == "completed" else "length"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + encoded(data) + b"\n\n"
