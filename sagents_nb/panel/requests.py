"""What a page may ask of the kernel: each request is answered by one reply or one error.

Runs on the runtime loop; whoever takes a page's messages only posts them there.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import mimetypes
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from .. import kinds
from ..errors import InvalidDecision, SagentsError, StaleApproval
from ..files.filesystem import VirtualFilesystem
from ..interrupts import ActionRequest, canonical_json
from ..messages import (
    BRANCH,
    IMAGE_TYPES,
    Field,
    ImagePart,
    Message,
    TextPart,
    fields_of,
    message_of,
    names_in,
)
from ..runtime.thread import runtime
from ..session import Session, sessions
from ..state import to_data
from ..text import brought_back
from .files import read_change, read_changes, read_file, undo_change
from .models import choices, choose
from .protocol import has_halves, plain, queued_text, with_new_images
from .publisher import publisher_of

MOST_ATTACHED = 8
LARGEST_ATTACHED = 5_000_000  # bytes of an image, characters of a text
LONGEST_REASON = 10_000  # characters, of a rejection
UPLOADS = "/uploads"
# Levels of lists and objects; of much more, Python can neither compare nor encode nor store any.
DEEPEST = 100

# So many answers are kept of each session, for pages that have not heard them.
KEPT_ANSWERS = 100

# In the metadata of a message, where they are stored: the id of the request by which it was said.
REQUEST_ID = "request_id"

Reply = Callable[[dict[str, Any]], None]
# Forks a session, all of it or what was before the message at a place, and keeps the fork; also
# the code of a cell that shows it.
Fork = Callable[[Session, int | None], tuple[Session, str]]
# What the names in braces of a text stand for now; it may take its time.
Fields = Callable[[str], Mapping[str, Field]]

# By the id of the request; None as long as it is at work.
_answers: WeakKeyDictionary[Session, dict[str, dict[str, Any] | None]] = WeakKeyDictionary()


def live_fork(session: Session, before: int | None) -> tuple[Session, str]:
    """A fork that is one of ``sa.sessions``."""
    fork = session.fork(before=before)
    sessions.add(fork)
    return fork, f"sa.sessions.get({fork.id!r})"


def answer(
    session: Session,
    request: dict[str, Any],
    send: Reply,
    fork: Fork = live_fork,
    by: str = "user",
    fields: Fields | None = None,
) -> bool:
    """Do what the page asks; a request that makes no sense is an error, never an exception.

    Whether that is told: what is at work already was asked for before, and tells by itself.

    What it decides is recorded as decided ``by`` that. A {name} in what it says is one of
    ``fields``, else what it stood for in an earlier message.

    A page asks again, with the same id, if it hears no answer. It gets the same answer, and
    nothing is done twice.
    """
    kind, id = request.get("type"), request.get("id")
    if isinstance(kind, str) and kind not in _READS and isinstance(id, str) and id:
        answers = _answers.setdefault(session, {})
        if id in answers:
            if (known := answers[id]) is not None:
                send(known)
            return known is not None
        answers[id] = None
        if len(answers) > KEPT_ANSWERS:
            del answers[next(iter(answers))]
        send = functools.partial(_answered, answers, id, send)
    stored = isinstance(kind, str) and kind in _OF_FILES and session.files.mounts
    text = request.get("text")
    looks = fields is not None and isinstance(text, str) and "{" in text
    work = functools.partial(_answer, session, request, fork=fork, by=by, fields=fields)
    waits = session.resting is not None or stored or looks
    if not waits and kind != "fork" and not request.get("files"):
        work(send=send)
    else:  # it wakes, reads or saves once a store has answered: the runtime loop must not wait
        back = functools.partial(runtime.post, send)
        runtime.loop.run_in_executor(None, functools.partial(work, send=back))
    return True


def _answered(
    answers: dict[str, dict[str, Any] | None], id: str, send: Reply, reply: dict[str, Any]
) -> None:
    answers[id] = reply
    send(reply)


def _answer(
    session: Session,
    request: dict[str, Any],
    *,
    send: Reply,
    fork: Fork,
    by: str,
    fields: Fields | None,
) -> None:
    kind, request_id = request.get("type"), request.get("id", "")
    try:
        if _too_deep(request_id):
            request_id = ""
        _check_depth(request)
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if kind == "fork":
            handler = functools.partial(_fork, fork)
        if kind == "decide":
            handler = functools.partial(_decide, by)
        if kind == "send":
            handler = functools.partial(_send, fields)
        if handler is None:
            raise ValueError(f"This kernel knows no request {reprlib.repr(kind)}.")
        reply = {"type": "reply", "id": request_id, **handler(session, request)}
    except Exception as error:  # whatever a page sends, the kernel goes on
        send(_refusal(request_id, error))
        return
    if kind in _READS:
        send(plain(reply))
        return

    def kept(error: BaseException | None) -> None:
        send(plain(reply) if error is None else _refusal(request_id, error))

    session.when_kept(kept)  # a page takes a reply for a promise


def _refusal(request_id: Any, error: BaseException) -> dict[str, Any]:
    for_people = isinstance(error, SagentsError) or type(error) is ValueError
    text = str(error) if for_people else f"Bad request: {reprlib.repr(error)}"
    refusal = {
        "type": "error",
        "id": request_id,
        "kind": type(error).__name__,
        "message": text[:1000],
    }
    if isinstance(error, InvalidDecision | StaleApproval) and error.tool_call_id:
        refusal["tool_call_id"] = error.tool_call_id
    refused: dict[str, Any] = plain(refusal)
    return refused


def _check_depth(data: Any) -> None:
    if _too_deep(data):
        raise ValueError(f"A request nests at most {DEEPEST} levels deep.")


def _too_deep(data: Any) -> bool:
    level = [data]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(left, dict | list) for left in level)


def _send(fields: Fields | None, session: Session, request: dict[str, Any]) -> dict[str, Any]:
    text, when = request["text"], request.get("when", "queue")
    images, files = _images(request.get("images", [])), _texts(request.get("files", []))
    if not isinstance(text, str) or not (text.strip() or images or files):
        raise ValueError("There is nothing to send.")
    id = request.get("id")
    if _is_said(session, id):
        return {"run_id": session.current_run.id if session.current_run else ""}
    if when not in ("queue", "steer"):
        raise ValueError(f"A message is sent by 'queue' or 'steer', not {reprlib.repr(when)}.")
    saved = list[str]()
    edits = request.get("instead") is not None
    instead = _meant(session.messages, request["instead"], request) if edits else None
    try:
        for name, content in files.items():
            saved.append(_saved(session.files, name, content))
        named = "\n".join(f"Attached file: {path}" for path in saved)
        said = "\n\n".join(filter(None, [text, named]))
        message = _message(session, said, images, id, fields)
        return {"run_id": session.send(message, when=when, instead_of=instead).id}
    except Exception:
        for path in saved:  # what was not sent has left nothing behind
            session.files.delete(path)
        raise


def _message(
    session: Session, said: str, images: list[ImagePart], id: Any, fields: Fields | None
) -> Message:
    """What is sent; see :func:`answer` for what a {name} stands for."""
    known = {}
    if "{" in said:
        known = {field.name: field for each in session.messages for field in fields_of(each)}
        if fields is not None:
            attached = {name for name, field in known.items() if field.brief == "image"}
            known |= {n: field for n, field in fields(said).items() if n not in attached}
    if known.keys() & names_in(said):
        message = message_of(said, known, images)
    elif images:
        message = Message.user([TextPart(said), *images] if said.strip() else images)
    else:
        message = Message.user(said)
    if session.options.store is None or not (isinstance(id, str) and id):
        return message
    return replace(message, metadata={**message.metadata, REQUEST_ID: id})


def _is_said(session: Session, id: Any) -> bool:
    """Whether a process that ended before it could answer was asked the same."""
    if session.options.store is None or not (isinstance(id, str) and id):
        return False
    said = itertools.chain(
        (waiting.message for waiting in session.queued),
        itertools.islice(reversed(session.messages), KEPT_ANSWERS),
    )
    return any(message.metadata.get(REQUEST_ID) == id for message in said)


def _meant(messages: Sequence[Message], text: Any, request: dict[str, Any]) -> int:
    """The place of a person's message: known by its text, and by how many are ``later``."""
    asked, later = _asked(messages), request.get("later", 0)
    if kinds.whole(0).fits(later) and later < len(asked):
        place: int = asked[-1 - later]
        if text == queued_text(to_data(messages[place].shown)):
            return place
    raise ValueError("The conversation went on meanwhile, so nothing was done; try it again.")


def _asked(messages: Sequence[Message]) -> list[int]:
    return [place for place, message in enumerate(messages) if message.role == "user"]


def _fork(fork: Fork, session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """Go on elsewhere from where that message has been answered."""
    messages = session.messages
    place = _meant(messages, request["text"], request)
    following = next((later for later in _asked(messages) if later > place), None)
    made, code = fork(session, following)
    return {"session_id": made.id, "code": code}


def _switch(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    for place, message in enumerate(session.messages):
        if message.metadata.get(BRANCH) == request["branch"]:
            session.switch_branch(place, request["to"])
            return {}
    raise ValueError("The conversation went on meanwhile: that message is no part of it any more.")


def _images(sent: Any) -> list[ImagePart]:
    """The parts of the images that were attached; raises ValueError for what is none."""
    if not isinstance(sent, list) or len(sent) > MOST_ATTACHED:
        raise ValueError(f"A message has at most {MOST_ATTACHED} images.")
    parts = []
    for image in sent:
        kind, data = image["media_type"], image["data"]
        if kind not in IMAGE_TYPES:
            raise ValueError("An attached image is a PNG, JPEG, GIF or WebP.")
        try:
            size = len(base64.b64decode(data, validate=True))
        except (TypeError, ValueError):
            size = 0
        if not 0 < size <= LARGEST_ATTACHED:
            raise ValueError(
                f"An attached image has at most {LARGEST_ATTACHED // 1_000_000} MB, in base64."
            )
        parts.append(ImagePart(data, kind))
    return parts


def _texts(sent: Any) -> dict[str, str]:
    """The texts that were attached, by the name that each is saved under."""
    if not isinstance(sent, list) or len(sent) > MOST_ATTACHED:
        raise ValueError(f"A message has at most {MOST_ATTACHED} files.")
    texts: dict[str, str] = {}
    for file in sent:
        name, text = PurePosixPath(file["name"].replace("\\", "/")).name, file["text"]
        if not name or not isinstance(text, str) or len(text) > LARGEST_ATTACHED:
            raise ValueError("An attached file has a name and at most 5 MB of text.")
        texts[_free(name, texts)] = text
    return texts


def _saved(files: VirtualFilesystem, name: str, text: str) -> str:
    """Save a text where no other file is; its path."""
    taken = [path.rpartition("/")[2] for path in files.list(f"{UPLOADS}/*")]
    path = f"{UPLOADS}/{_free(name, taken)}"
    kind = mimetypes.guess_type(path)[0] or "text/plain"
    return files.write(path, text, mime_type=kind, overwrite=False).path


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or the first of ``name-2``, ``name-3`` … that is not taken."""
    path = PurePosixPath(name)
    names = (name if n == 1 else f"{path.stem}-{n}{path.suffix}" for n in itertools.count(1))
    return next(each for each in names if each not in taken)


def _withdraw(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    meant = tuple(request[name] for name in ("run_id", "when", "text"))
    for run_id, when, message in session.queued:
        if (run_id, when, queued_text(to_data(message.shown))) == meant:
            session.withdraw(message)
            return {"message": to_data(message.shown)}  # whoever takes it back goes on with it
    raise ValueError("That message does not wait any more: the agent has it, or it was taken back.")


def _retry(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    run_id = request.get("run_id", "")
    if not isinstance(run_id, str):
        raise ValueError("A run that goes on is named by its id.")
    return {"run_id": session.retry(run_id).id}


def _models(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    reads_images = session.agent.model.reads_images
    return {"models": choices(session), "reads_images": reads_images}


def _model(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    choose(session, request["name"])
    return {}


def _decide(by: str, session: Session, request: dict[str, Any]) -> dict[str, Any]:
    decisions, digests = {}, {}
    interrupt = session.interrupt
    requests = () if interrupt is None else interrupt.action_requests
    asked = {request.tool_call_id: request for request in requests}
    if not isinstance(given := request["decisions"], dict):
        raise InvalidDecision("Decisions are an object, one for each call.")
    for tool_call_id, fields in given.items():
        if not isinstance(fields, dict):
            raise InvalidDecision("A decision is an object.", tool_call_id=tool_call_id)
        if len(str(fields.get("message", ""))) > LONGEST_REASON:
            text = f"A reason has at most {LONGEST_REASON:,} characters."
            raise InvalidDecision(text, tool_call_id=tool_call_id)
        decision = dict(fields)
        digests[tool_call_id] = decision.pop("digest", "")
        if "json" in decision:
            try:
                written = json.loads(decision.pop("json"))
                _check_depth(written)
            except ValueError as error:
                raise InvalidDecision(str(error), tool_call_id=tool_call_id) from None
            decision["arguments"] = {**decision["arguments"], **written}
        if isinstance(edited := decision.get("arguments"), dict) and tool_call_id in asked:
            decision["arguments"] = _edited(asked[tool_call_id], edited)
        decisions[tool_call_id] = decision
    session.decide(decisions, interrupt_id=request["interrupt_id"], digests=digests, by=by)
    return {}


def _edited(asked: ActionRequest, edited: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an edit: those that nobody changed are as they were asked for.

    A page has the names of an object in an order of its own. Defaults that a form has shown are
    none of them.
    """
    if has_halves([asked.arguments, asked.defaults]):
        edited = brought_back(edited)
    changed = {n: v for n, v in edited.items() if not _is_in(asked.defaults, n, v)}
    given = asked.arguments
    return {n: given[n] if _is_in(given, n, v) else v for n, v in changed.items()}


def _is_in(shown: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a form has shown that value of that name, and nobody changed it."""
    return name in shown and canonical_json(shown[name]) == canonical_json(value)


def _cancel(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    session.stop(request.get("run_id") or None)
    return {}


def _read_entries(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    before = request["before"]
    if not kinds.whole(0).fits(before):
        raise ValueError("Entries are read before a place, counted from 0.")
    entries = runtime.call(publisher_of(session).entries_before, before)
    return {"entries": with_new_images(entries)}


def _read_result(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    for message in reversed(session.messages):
        for result in message.tool_results:
            if result.tool_call_id == request["tool_call_id"]:
                return {"result": to_data(result)}
    raise ValueError("That tool call has no result here.")


# What changes nothing, and may be long, is done as often as it is asked for.
_READS = {"read_file", "read_changes", "read_change", "read_entries", "read_result", "models"}
_OF_FILES = {"read_file": read_file, "read_change": read_change, "undo_change": undo_change}
_HANDLERS = {
    **_OF_FILES,
    "read_changes": read_changes,
    "withdraw": _withdraw,
    "retry": _retry,
    "switch": _switch,
    "models": _models,
    "model": _model,
    "cancel": _cancel,
    "read_entries": _read_entries,
    "read_result": _read_result,
}
