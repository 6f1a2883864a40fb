"""A key that comes with a request is used, and stays as secret as one that the model has."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models import ModelRequest
from sagents_nb.models.fallback import resilient
from tests.models.loopback import KEY, MODELS, Answer, Provider, ask
from tests.models.providers.test_keys_and_packages import everything_in
from tests.talking import all_of

OTHER = "sk-canary-of-the-request-1b2c3d4e5f"
PROVIDERS = sorted(MODELS)
QUOTED = Answer(
    json.dumps({"error": {"type": "x", "message": f"Wrong key {OTHER}"}}).encode(),
    401,
    framing="length",
)


def request_with(key: str | None) -> ModelRequest:
    return ModelRequest(messages=[sa.Message.user("hi")], model="m", api_key=key)


def model_at(name: str, provider: Provider, key: str | None = KEY) -> Any:
    base = provider.url if name == "anthropic" else provider.url + "/v1"
    return MODELS[name]("m", api_key=key, base_url=base)


def key_in(headers: Any) -> str:
    return str(headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer "))


@pytest.mark.spec("A2.1.7")
@pytest.mark.parametrize("own", [KEY, None])
@pytest.mark.parametrize("name", PROVIDERS)
def test_the_key_of_a_request_is_used_instead_of_the_models_own(
    provider: Provider, name: str, own: str | None
) -> None:
    provider.answer = QUOTED
    model = model_at(name, provider, own)
    ask(model, request_with(OTHER))
    assert key_in(provider.requests[-1].headers) == OTHER
    if own:
        ask(model, request_with(None))
        assert key_in(provider.requests[-1].headers) == own


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_error_shows_the_key_of_a_request(provider: Provider, name: str) -> None:
    provider.answer = QUOTED
    heard = ask(model_at(name, provider), request_with(OTHER))
    assert isinstance(heard.error, sa.ModelError)
    assert OTHER not in everything_in(heard.error)


def test_no_repr_of_a_request_shows_its_key() -> None:
    request = request_with(OTHER)
    shown = [repr(request), str(request), f"{request}", repr([request]), repr({"r": request})]
    assert not any(OTHER in text for text in [*shown, repr(request.__rich_repr__())])


def test_a_failing_loop_shows_no_key_in_events_errors_or_result(provider: Provider) -> None:
    provider.answer = QUOTED
    model = model_at("openai-chat", provider)
    config = sa.AgentLoopConfig(model, get_api_key=lambda name: OTHER)
    events: list[Any] = []

    async def listen() -> Any:
        async for event in sa.agent_loop("hi", sa.AgentContext(), config):
            events.append(event)
            yield event

    with pytest.raises(sa.ModelError) as raised:
        all_of(listen())
    assert OTHER not in repr(events)
    assert OTHER not in everything_in_text(raised.value)


def everything_in_text(error: BaseException) -> str:
    return "\n".join([str(error), repr(error), repr(vars(error)), repr(error.__cause__)])


def test_a_fallback_to_another_provider_does_not_get_the_key() -> None:
    seen: list[str | None] = []

    def fails(request: ModelRequest) -> Any:
        seen.append(request.api_key)
        raise sa.ModelError("no", kind="invalid_request")

    def answers(request: ModelRequest) -> Any:
        seen.append(request.api_key)
        return "here"

    model = resilient(sa.ScriptedModel([fails]), [sa.ScriptedModel([answers])])
    assert ask(model, request_with(OTHER)).error is None
    assert seen == [OTHER, None]


def test_nor_what_a_hook_meant_for_the_first_one_in_whatever_spelling() -> None:
    seen: list[Any] = []

    def fails(request: ModelRequest) -> Any:
        raise sa.ModelError("no", kind="invalid_request")

    def answers(request: ModelRequest) -> Any:
        seen.append(request.options)
        return "here"

    model = resilient(sa.ScriptedModel([fails]), [sa.ScriptedModel([answers])])
    request = request_with(OTHER)
    request.options.update({"Api-Key": OTHER, "cookies": OTHER, "timeout": 5, "seed": 1})
    request.options["extra_body"] = {"access_token": OTHER, "top_k": 5}
    assert ask(model, request).error is None
    assert seen == [{"timeout": 5, "seed": 1, "extra_body": {"top_k": 5}}]


LOGIN = {
    "type": "object",
    "properties": {
        "password": {"type": "string"},
        "headers": {"type": "object", "properties": {"cookie": {"type": "string"}}},
        "remember": True,
    },
    "required": ["password"],
    "examples": [{"password": "what the form takes", "headers": {}}],
    "dependentRequired": {"password": ["headers"]},
}
BY_KIND = {
    "oneOf": [{"$ref": "#/$defs/token"}],
    "discriminator": {"propertyName": "kind", "mapping": {"token": "#/$defs/token"}},
}


def given_to_a_fallback(options: dict[str, Any]) -> Any:
    seen: list[Any] = []

    def fails(request: ModelRequest) -> Any:
        raise sa.ModelError("no", kind="invalid_request")

    def answers(request: ModelRequest) -> Any:
        seen.append(request.options)
        return "here"

    model = resilient(sa.ScriptedModel([fails]), [sa.ScriptedModel([answers])])
    asked = ModelRequest([sa.Message.user("hi")], options=options)
    assert ask(model, asked).error is None
    return seen[0]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"proxy": "http://10.0.0.1:3128", "client": {"verify": False}}, {}),
        ({"metadata": {"project": "p", "trace": "http://me:pa55@host"}}, {"project": "p"}),
        ({"upstream": "http://me:pa55@host:3128", "user": OTHER}, {}),
        ({"metadata": {"project": "p", "of": OTHER}}, {"project": "p"}),
        ({"metadata": {"project": "p", "all": [OTHER, 1]}}, {"project": "p", "all": [1]}),
        ({"metadata": {"auth": {"user": "me"}, "token": 7}}, {"token": 7}),
    ],
)
def test_nor_what_stands_deeper_or_is_a_key_by_its_looks(given: Any, left: Any) -> None:
    assert given_to_a_fallback({"seed": 1, **given}).get("metadata", {}) == left
    assert given_to_a_fallback({"seed": 1, **given}).keys() <= {"seed", "metadata"}


def test_nor_the_keys_of_a_server_of_tools_within_the_body() -> None:
    server = {
        "type": "mcp",
        "server_label": "docs",
        "server_url": "https://host/sse?token=t-12345678",
    }
    body = {"tools": [{**server, "authorization": "t", "headers": {"X-Mine": "h"}}], "top_k": 5}
    left = {"tools": [{"type": "mcp", "server_label": "docs"}], "top_k": 5}
    assert given_to_a_fallback({"extra_body": body}) == {"extra_body": left}


def test_what_a_schema_calls_its_properties_goes_to_every_model() -> None:
    options = {
        "tools": [{"name": "log_in", "input_schema": LOGIN, "input_examples": [{"password": "x"}]}],
        "response_format": {"json_schema": {"schema": {"$defs": {"token": LOGIN}, **LOGIN}}},
        "extra_body": {"guided_json": LOGIN, "structured": BY_KIND},
    }
    assert given_to_a_fallback(options) == options
    model = sa.ScriptedModel(["fine"])
    sa.Agent(model, options=options).run("hi")
    assert model.requests[0].options == options


def test_options_that_hold_themselves_are_no_endless_walk() -> None:
    body: dict[str, Any] = {"seed": 1}
    body["again"] = [body]
    assert given_to_a_fallback({"extra_body": body})["extra_body"]["again"][0]["seed"] == 1
