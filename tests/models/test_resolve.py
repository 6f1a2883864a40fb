"""Names become models, and those who name none are told what they got."""

from __future__ import annotations

import logging
import re
import sys
import types

import pytest

from sagents_nb import Agent
from sagents_nb.errors import ConfigurationError, ModelError
from sagents_nb.models import (
    AnthropicModel,
    ChatModel,
    OpenAIChatModel,
    OpenAIModel,
    default_model,
    named,
    resolve_model,
)


class Demo(ChatModel):
    name = "demo"


@pytest.fixture(autouse=True)
def demo(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sagents_nb.models.demo")
    module.DemoModel = Demo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sagents_nb.models.demo", module)
    monkeypatch.setattr(named, "announced", set())


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("anthropic:claude-sonnet-5-5", AnthropicModel, "claude-sonnet-5-5"),
        ("openai:gpt-6.1-sol", OpenAIModel, "gpt-6.1-sol"),
        ("openai-chat:gemma", OpenAIChatModel, "gemma"),
        ("openai-chat:org/model:free", OpenAIChatModel, "org/model:free"),
        ("anthropic:claude-sonnet-4@20250514", AnthropicModel, "claude-sonnet-4@20250514"),
        ("demo", Demo, "demo"),
    ],
)
def test_each_form_of_name_gives_its_model(spec: str, kind: type, name: str) -> None:
    model = resolve_model(spec)
    assert type(model) is kind
    assert model.name == name


def test_options_reach_the_model() -> None:
    model = resolve_model("openai-chat:m", base_url="http://127.0.0.1:1/v1", temperature=0)
    assert isinstance(model, OpenAIChatModel)
    assert model.base_url == "http://127.0.0.1:1/v1"
    assert model.options == {"temperature": 0}


def test_a_model_is_its_own_resolution_and_takes_no_options() -> None:
    model = Demo()
    assert resolve_model(model) is model
    with pytest.raises(ConfigurationError, match="takes no options"):
        resolve_model(model, temperature=0)


@pytest.mark.parametrize("spec", ["", "anthropic:", "mistral:x", "gpt", 7, "demo:x", ["demo"]])
def test_anything_else_is_told_the_forms(spec: object) -> None:
    with pytest.raises(ConfigurationError) as raised:
        resolve_model(spec)  # type: ignore[arg-type]
    for form in ("'anthropic:NAME'", "'openai:NAME'", "'openai-chat:NAME'", "'demo'"):
        assert form in str(raised.value)


def test_a_bare_name_is_told_what_was_probably_meant() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'anthropic:claude-sonnet-5-5'"):
        resolve_model("claude-sonnet-5-5")


@pytest.mark.parametrize(
    ("variables", "kind", "because"),
    [
        ({}, Demo, "works offline"),
        ({"OPENAI_API_KEY": "k"}, OpenAIModel, "$OPENAI_API_KEY is set"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, AnthropicModel, "$ANTHROPIC_API_KEY"),
        ({"SAGENTS_MODEL": "openai-chat:m", "OPENAI_API_KEY": "k"}, OpenAIChatModel, "$SAGENTS"),
    ],
)
def test_the_default_is_chosen_by_the_environment_and_says_why(
    variables: dict[str, str], kind: type, because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    model = default_model()
    assert type(model) is kind
    assert because in model.chosen_because
    assert type(resolve_model(None)) is kind


def test_the_choice_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sagents_nb.models"):
        default_model()
        default_model()
    assert len(caplog.records) == 1
    assert "default model is 'demo'" in caplog.text


def test_a_named_model_was_not_chosen_for_anybody() -> None:
    assert resolve_model("openai:m").chosen_because == ""


KEYS = [
    "sk-ant-api03-AbCdEf0123456789xyzXYZ",
    "sk-proj-0123456789abcdefghij",
    "gsk_" + "a1B2" * 10,
    "AIza" + "a1B2" * 9,
    "0123456789abcdef0123456789abcdef",
]


@pytest.mark.parametrize("key", [*KEYS, "sk-half"])
@pytest.mark.parametrize("form", ["{}", "foo:{}"])
def test_a_key_in_the_place_of_a_name_is_not_shown(form: str, key: str) -> None:
    for name in (resolve_model, Agent, lambda spec: Agent("demo", fallback_models=[spec])):
        with pytest.raises(ConfigurationError, match="A key was given where a model is") as raised:
            name(form.format(key))
        assert key not in str(raised.value)
        assert re.search(r"ANTHROPIC_API_KEY, OPENAI_API_KEY\) or api_key=…", str(raised.value))


@pytest.mark.parametrize("key", KEYS[:4])
@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-chat"])
def test_no_provider_is_sent_a_key_as_the_name_of_its_model(kind: str, key: str) -> None:
    with pytest.raises(ConfigurationError, match="key was given as the name") as raised:
        resolve_model(f"{kind}:{key}")
    assert key not in str(raised.value)


def test_a_key_in_the_variable_of_the_default_model_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SAGENTS_MODEL", KEYS[0])
    with pytest.raises(ConfigurationError, match="A key was given") as raised:
        default_model()
    assert KEYS[0] not in str(raised.value)
    assert KEYS[0] not in str(named.model_choices())


def test_a_key_of_the_environment_is_known_whatever_it_looks_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "like-no-other-key")
    with pytest.raises(ConfigurationError, match=r"'\[key\]' names no model"):
        resolve_model("like-no-other-key")


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hunter2@host/v1",
        "https://host/v1?key=hunter2",
        "postgresql://me:hunter2@host/db",
        "me:hunter2@host/db",
    ],
)
def test_an_address_in_the_place_of_a_name_is_not_shown(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"An address .*base_url=…") as raised:
        resolve_model(address)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("address", ["me:hunter2@host/db", "sk-half"])
def test_what_is_no_address_of_a_server_is_not_shown(address: str) -> None:
    model = OpenAIChatModel("m", api_key="none", base_url=address, retries=0)
    with pytest.raises(ModelError, match="a base_url without https://") as raised:
        Agent(model, replace_default_middleware=True).run("hi")
    assert address not in str(raised.value)
