"""What can be asked of one thread."""

from __future__ import annotations

from ...errors import ConfigurationError, StaleApproval
from ...files.paths import normalize
from ...messages import Message
from ..agencies import Agency
from ..threads import NoKernel, Thread
from .bodies import EventsReply, Invocation, OkReply, RunReply, StateReply
from .call import Call


def invoke(call: Call) -> RunReply:
    """Say something to it."""
    thread = call.thread
    with call.room(thread):
        return invoke_thread(call, call.agency, thread, call.body)


def invoke_thread(call: Call, agency: Agency, thread: Thread, said: Invocation) -> RunReply:
    """Have a thread go on with what was said."""
    # All that may be refused comes before what changes something.
    files = {normalize(path): content for path, content in said.files.items()}
    key = said.idempotency_key
    if said.vars and not (key is not None and thread.has_accepted(key)):
        call.hub.set_variables(agency, thread, said.vars)
    messages = [Message(each.role, each.content) for each in said.messages]  # type: ignore[arg-type]
    run = thread.invoke(messages, files, key)
    return RunReply(run_id=run["runId"], status=run["status"])


def state(call: Call) -> StateReply:
    """All that it is."""
    try:
        return StateReply(**call.thread.state())
    except NoKernel:
        return StateReply(**call.hub.kept(call.agency, call.parameters["thread"]).state())


def approve(call: Call) -> OkReply:
    """Answer what waits."""
    body = call.body
    if call.is_of_page and (body.interrupt_id is None or body.digests is None):
        raise StaleApproval(
            "A page approves what it showed: send the interruptId and the digests of it."
        )
    edits = {edit.id: edit.args for edit in body.modified_tool_calls}
    if len(edits) < len(body.modified_tool_calls):
        raise ConfigurationError("modifiedToolCalls name a call twice; name each once.")
    call.thread.approve(
        body.approved,
        edits,
        body.answers,
        names={e.id: e.name for e in body.modified_tool_calls if e.name is not None},
        interrupt_id=body.interrupt_id,
        digests=body.digests,
        by="http",
    )
    return OkReply()


def cancel(call: Call) -> OkReply:
    """Stop it."""
    call.hub.cancel(call.agency, call.thread)
    return OkReply()


def child_result(call: Call) -> OkReply:
    """A child's report."""
    body = call.body
    call.thread.report(body.child_thread_id, body.report, body.token)
    return OkReply()


def register(call: Call) -> OkReply:
    """What is said of a thread that was made already: its variables."""
    thread = call.thread
    if call.body.id != thread.record.id:
        raise ConfigurationError("The metadata are of another thread: their id is not this one's.")
    if call.body.vars:
        call.hub.set_variables(call.agency, thread, call.body.vars)
    return OkReply()


def delete_thread(call: Call) -> OkReply:
    """All of it is gone."""
    call.hub.delete_thread(call.agency, call.parameters["thread"])
    return OkReply()


def events(call: Call) -> EventsReply:
    """What was told of it."""
    told = call.hub.events(call.agency, call.parameters["thread"], since_of(call))
    return EventsReply(events=told)


def since_of(call: Call) -> int:
    """The number after which events are asked for."""
    given = call.headers.get("last-event-id") or call.query.get("since") or "0"
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise ConfigurationError("since is the number of an event, such as since=7.")
    return int(given)
