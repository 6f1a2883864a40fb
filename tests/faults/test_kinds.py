"""What cannot work is refused where it is written, in one sentence that shows no value."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import agent_of, call, run

SECRET = "sk-canary-never-to-be-seen"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"system_prompt": ["a"]}, r"system_prompt=…\) is text, or a function .*; not list"),
        ({"system_prompt": None}, r"system_prompt=…\) is text, or a function .*; not None."),
        ({"tools": None}, r"Agent\(tools=…\) is a list; not None."),
        ({"tools": len}, r"tools=…\) is a list; not builtin_function_or_method."),
        ({"tools": "look"}, r"tools=…\) is a list; not str."),
        ({"middleware": sa.TodoList()}, r"middleware=…\) is a list; not TodoList."),
        ({"fallback_models": "demo"}, r"fallback_models=…\) is a list"),
        ({"interrupt_on": [5]}, r"interrupt_on=…\) is a dict .*; not list of int."),
        ({"tool_context": [SECRET]}, r"tool_context=…\) is a dict .*; not list of str."),
        ({"options": SECRET}, r"options=…\) is a dict .*; not str."),
        ({"filesystem_options": True}, r"filesystem_options=…\) is a dict"),
        ({"budget": 5}, r"budget=…\) is a Budget, .*\(model_calls=5\), or None; not 5."),
        ({"budget": {"tokens": 5}}, r"budget=…\) is a Budget, .*, or None; not dict of str."),
        ({"name": 5}, r"name=…\) is text or None; not 5."),
    ],
)
def test_an_agent_of_wrong_kinds_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=sentence) as raised:
        sa.Agent(sa.ScriptedModel(["x"]), **options)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("tokens", "5"),
        ("tokens", 1.5),
        ("tokens", True),
        ("model_calls", -1),
        ("tool_calls", [1]),
        ("seconds", float("nan")),
        ("cost_usd", float("inf")),
        ("cost_usd", "1 $"),
    ],
)
def test_a_limit_that_is_no_number_is_refused(limit: str, value: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match=rf"Budget\({limit}=…\) is a .*number from 0"):
        sa.Budget(**{limit: value})


def test_b09_our_providers_are_not_asked_when_money_is_limited() -> None:
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_error(500)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        for name in ("anthropic:claude-x", "openai:gpt-x"):
            model = sa.resolve_model(name).__class__("x", api_key="k", base_url=url)
            money = sa.Budget(cost_usd=1)
            for changes in ({}, {"fallback_models": ["demo"]}):
                agent = sa.Agent(model, budget=money, **changes)
                with pytest.raises(sa.BudgetExceeded, match="does not say what its calls cost"):
                    agent.run("hi")
            frame = sa.Agent(model).map(["a", "b"], budget=money, progress=False)
            assert list(frame.status) == ["not_run"] * 2
            assert frame.error.str.contains("does not say what its calls cost").all()
    finally:
        server.shutdown()
        server.server_close()
    assert not asked


def test_a_system_prompt_may_be_a_function_of_the_run() -> None:
    def plain(ctx: sa.RunContext) -> str:
        return f"Speak {ctx.values['language']}; {len(ctx.state.messages)} messages."

    async def later(ctx: sa.RunContext) -> str:
        return plain(ctx)

    @sa.tool
    def look() -> str:
        """Look."""
        return "seen"

    for prompt in (plain, later):
        model = sa.ScriptedModel([call("look"), "done"])
        agent = sa.Agent(model, prompt, [look], tool_context={"language": "Latin"})
        assert agent.run("go").text == "done"
        first, second = (request.system for request in model.requests)
        assert first.startswith("Speak Latin; 1 messages.\n\n")
        assert second.startswith("Speak Latin; 3 messages.\n\n")
        assert first.endswith(agent.assembled_system_prompt)
    bare = agent_of("done", system_prompt=plain, tool_context={"language": "Latin"})
    assert bare.assembled_system_prompt == ""


def test_extract_keeps_a_system_prompt_that_is_a_function() -> None:
    agent = agent_of(call("submit", value=3), system_prompt=lambda ctx: "Count.")
    assert agent.extract("how many?", int) == 3
    (request,) = agent.model.requests  # type: ignore[attr-defined]
    assert request.system.startswith("Count.\n\nCall submit")


def test_a_system_prompt_that_fails_ends_the_run_in_a_sentence() -> None:
    def broken(ctx: sa.RunContext) -> str:
        raise KeyError("language")

    with pytest.raises(sa.AgentError, match="The model was not asked: KeyError"):
        agent_of("never", system_prompt=broken).run("go")
    with pytest.raises(sa.AgentError, match="gave int; return text"):
        run(agent_of("never", system_prompt=lambda ctx: 5).arun("go"))


class Odd(str):
    """A text that lets itself neither be compared nor asked for anything."""

    def _refuse(self, *args: Any) -> Any:
        raise RuntimeError("odd")

    __eq__ = __hash__ = __len__ = __str__ = __repr__ = __format__ = strip = _refuse


class Count(int):
    """A number that lets itself not be compared."""

    def _refuse(self, *args: Any) -> Any:
        raise RuntimeError("odd")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __repr__ = _refuse


def test_what_is_kept_of_a_text_or_a_number_is_of_the_builtin_type() -> None:
    session = sa.Session(agent_of("hi"), Odd("odd"), inactivity_timeout=Count(9))
    session.send(Odd("hello")).result()
    [prompt, _] = session.messages
    todo = sa.Todo(Odd("rest"), id=Count(7))
    store = sa.ConversationStore("sqlite://")
    made = store.create_conversation(Odd("Trip"), id=Odd("c"))
    file = session.files.write(Odd("/a.md"), Odd("text"))
    kept: list[Any] = [session.id, prompt.text, todo.content, todo.id, file.path, file.content]
    kept += [made.title, made.id]
    kept.append(agent_of("hi", max_runs=Count(3)).max_runs)
    assert {type(value) for value in kept} == {str, int}
    session.close()
    store.close()


def test_a_time_that_is_longer_than_any_number_of_seconds_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="is a number or None; not so large"):
        sa.Session(agent_of("hi"), inactivity_timeout=10**400)


def nested() -> list[Any]:
    items: list[Any] = []
    for _ in range(100_000):
        items = [items]
    return items


@pytest.mark.parametrize("field", ["message_type", "content_type", "status"])
def test_a_row_of_the_transcript_that_nests_without_end_is_refused_in_a_sentence(
    field: str,
) -> None:
    store = sa.ConversationStore("sqlite://")
    store.create_conversation(id="c")
    row = {"message_type": "user", "content_type": "text", "content": {"text": "x"}}
    with pytest.raises(sa.ConfigurationError, match=f"its {field} must be text of 1 to 40"):
        store.append_display_message("c", {**row, field: nested()})
    store.close()
