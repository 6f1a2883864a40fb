"""Options reach the provider in its own words."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.messages import Message
from sagents_nb.models import AnthropicModel, ModelRequest, OpenAIChatModel, OpenAIModel
from tests.models.loopback import MODELS, Answer, Provider, ask, model_for, recorded

STREAMS = {
    "anthropic": "anthropic_tool_use",
    "openai": "openai_responses_text",
    "openai-chat": "openai_chat_text",
}


def body(model: Any, **options: Any) -> dict[str, Any]:
    return model.body(ModelRequest([Message.user("hi")]), dict(options))


@pytest.mark.parametrize(
    ("level", "effort"), [("minimal", "low"), ("low", "low"), ("high", "high"), ("xhigh", "xhigh")]
)
def test_newer_claudes_think_adaptively_with_an_effort(level: str, effort: str) -> None:
    for name in ("claude-sonnet-5-5", "claude-opus-4-6", "claude-fable-5", "claude-sonnet-5"):
        made = body(AnthropicModel(name), thinking=level)
        assert made["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert made["output_config"] == {"effort": effort}
        assert made["max_tokens"] == 32_000


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "claude-haiku-4-5-20251001"])
def test_older_claudes_think_with_a_budget_that_leaves_room_for_the_answer(name: str) -> None:
    for level in ("minimal", "low", "medium", "high", "xhigh"):
        for limit in (None, 1_000, 4_000, 64_000):
            made = body(AnthropicModel(name), thinking=level, max_tokens=limit)
            budget = made["thinking"]["budget_tokens"]
            assert made["thinking"]["type"] == "enabled"
            assert 1_024 <= budget < made["max_tokens"]


def test_thinking_can_be_switched_off_where_the_model_allows_it() -> None:
    assert body(AnthropicModel("claude-sonnet-5"), thinking="off")["thinking"] == {
        "type": "disabled"
    }
    fable = body(AnthropicModel("claude-fable-5"), thinking="off")
    assert fable["thinking"]["type"] == "adaptive"
    assert fable["output_config"] == {"effort": "low"}
    assert "thinking" not in body(AnthropicModel("claude-sonnet-5"))


def test_thinking_in_the_providers_own_form_is_left_alone() -> None:
    own = {"type": "between_tools"}
    assert body(AnthropicModel("claude-sonnet-5"), thinking=own)["thinking"] == own
    made = body(OpenAIModel("gpt-6.1-sol"), thinking="high", reasoning={"summary": "auto"})
    assert made["reasoning"] == {"effort": "high", "summary": "auto"}


def test_openai_is_sent_the_effort() -> None:
    assert body(OpenAIModel("gpt-5.6-terra"), thinking="off")["reasoning"] == {"effort": "none"}
    assert body(OpenAIChatModel("gpt-5"), thinking="minimal")["reasoning_effort"] == "minimal"


def test_max_tokens_has_the_name_that_each_server_knows() -> None:
    assert body(AnthropicModel("m"), max_tokens=5)["max_tokens"] == 5
    assert body(OpenAIModel("m"), max_tokens=5)["max_output_tokens"] == 5
    assert body(OpenAIChatModel("m"), max_tokens=5)["max_completion_tokens"] == 5
    local = OpenAIChatModel("m", base_url="http://127.0.0.1:8080/v1")
    assert body(local, max_tokens=5)["max_tokens"] == 5


def test_models_without_reasoning_are_not_asked_for_it() -> None:
    assert "include" not in body(OpenAIModel("gpt-4.1"))
    assert body(OpenAIModel("gpt-5.6-terra"))["include"] == ["reasoning.encrypted_content"]


def test_a_required_tool_has_the_form_that_each_provider_knows() -> None:
    assert body(AnthropicModel("m"), tool_choice="required")["tool_choice"] == {"type": "any"}
    assert body(OpenAIModel("m"), tool_choice="any")["tool_choice"] == "required"
    assert body(OpenAIChatModel("m"), tool_choice="any")["tool_choice"] == "required"


@pytest.mark.parametrize("name", MODELS)
def test_options_are_passed_on_and_none_leaves_one_out(provider: Provider, name: str) -> None:
    provider.answer = Answer(recorded(STREAMS[name]))
    model = model_for(
        name,
        provider.url,
        temperature=0.5,
        options={"seed": 1, "cache_control": None, "stream_options": None},
        extra_headers={"x-mine": "1"},
        extra_query={"v": "2"},
        extra_body={"from_body": True},
        betas=["a-2026", "b-2026"],
    )
    options = {"seed": 7, "brand_new": {"x": [1]}}
    request = ModelRequest([Message.user("hi")], options=options)
    assert ask(model, request).error is None
    (got,) = provider.requests
    assert got.body["temperature"] == 0.5
    assert got.body["seed"] == 7
    assert got.body["brand_new"] == {"x": [1]}
    assert got.body["from_body"] is True
    assert "cache_control" not in got.body
    assert "stream_options" not in got.body
    assert got.headers["x-mine"] == "1"
    assert got.headers["anthropic-beta"] == "a-2026,b-2026"
    assert got.path.endswith("?v=2")
    assert "timeout" not in got.body
    assert options == {"seed": 7, "brand_new": {"x": [1]}}


def test_budgets_of_yours_take_the_place_of_ours() -> None:
    budgets = {"low": 3_000}
    made = body(AnthropicModel("claude-haiku-4-5"), thinking="low", thinking_budgets=budgets)
    assert made["thinking"] == {"type": "enabled", "budget_tokens": 3_000}
    made = body(AnthropicModel("claude-haiku-4-5"), thinking="high", thinking_budgets=budgets)
    assert made["thinking"]["budget_tokens"] > 3_000
    for model in (
        AnthropicModel("claude-sonnet-5"),
        OpenAIModel("gpt-5"),
        OpenAIChatModel("gpt-5"),
    ):
        assert "thinking_budgets" not in body(model, thinking="low", thinking_budgets=budgets)


def test_requests_of_a_session_share_a_cache_at_openai_and_name_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def key(model: Any, session_id: str, **options: Any) -> Any:
        request = ModelRequest([Message.user("hi")], session_id=session_id)
        return model.body(request, dict(options)).get("prompt_cache_key")

    for kind in (OpenAIModel, OpenAIChatModel):
        mine = key(kind("gpt-5"), "alice@example.org " * 9)
        assert mine == key(kind("gpt-5"), "alice@example.org " * 9)
        assert mine != key(kind("gpt-5"), "bob")
        assert len(mine) <= 64
        assert "alice" not in mine
        assert key(kind("gpt-5"), "") is None
        assert key(kind("gpt-5"), "bob", prompt_cache_key="own") == "own"
        assert key(kind("x", base_url="http://127.0.0.1:1/v1"), "bob") is None
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        assert key(kind("x"), "bob") is None
        monkeypatch.delenv("OPENAI_BASE_URL")


@pytest.mark.parametrize("name", MODELS)
def test_headers_a_timeout_and_retries_are_said_by_name_and_never_sent_as_options(
    provider: Provider, name: str
) -> None:
    provider.answer = Answer(recorded(STREAMS[name]))
    headers = {"x-team": "birds"}
    model = model_for(name, provider.url, headers=headers, timeout=5, retries=2)
    assert ask(model, ModelRequest([Message.user("hi")])).error is None
    (got,) = provider.requests
    assert got.headers["x-team"] == "birds"
    assert not {"headers", "timeout", "retries", "options"} & got.body.keys()
    assert model.retries == 2
    assert headers == {"x-team": "birds"}


def test_a_model_is_asked_again_as_often_as_its_retries_say(provider: Provider) -> None:
    provider.answer = Answer(b'{"error": {"message": "busy"}}', 503, {"retry-after": "0"})
    for retries in (0, 1):
        provider.requests.clear()
        model = model_for("openai-chat", provider.url, retries=retries)
        with pytest.raises(sa.ModelError):
            sa.Agent(model).run("hi")
        assert len(provider.requests) == retries + 1


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("max_retries", "retries"),
        ("default_headers", "headers"),
        ("baseurl", "base_url"),
        ("api_base", "base_url"),
        ("temprature", "temperature"),
        ("max_token", "max_tokens"),
        ("request_timeout", "timeout"),
    ],
)
def test_an_unknown_option_is_refused_with_the_one_that_was_meant(wrong: str, meant: str) -> None:
    for kind in (AnthropicModel, OpenAIModel, OpenAIChatModel):
        with pytest.raises(sa.ConfigurationError, match=f"{wrong!r}: did you mean {meant}=…"):
            kind("m", **{wrong: 1})
    with pytest.raises(sa.ConfigurationError, match="knows no option"):
        sa.resolve_model("openai:gpt-5", **{wrong: "http://typo"})


def test_what_is_newer_than_the_known_options_is_given_as_a_dict() -> None:
    with pytest.raises(sa.ConfigurationError, match=r"options=\{'from_2031': …\}"):
        OpenAIModel("m", from_2031=True)
    assert OpenAIModel("m", options={"from_2031": True}).options == {"from_2031": True}


def test_a_header_of_a_model_is_a_secret_where_its_name_says_so() -> None:
    model = OpenAIChatModel("m", base_url="http://x", headers={"authorization": "Bearer s3cr3t-1"})
    assert "Bearer s3cr3t-1" in model.secrets({})


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://me:pa55word@host:1/v1?api_key=s3cr3t-12#k-1", "https://host:1/v1"),
        ("https://me:pa55word@[::1/v1?api_key=s3cr3t-12", "https://[key]@[::1/v1"),
        ("", None),
    ],
)
def test_the_identity_of_a_model_has_no_secret(
    address: str, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_gateway = {"X-Mine": "a1b2c3d4e5f6", "X-Team": "birds"}
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    model = OpenAIChatModel("m", base_url=address, headers=of_gateway, temperature=0.5)
    identity = model.identity()
    assert identity["base_url"] == told
    headers = {"X-Mine": "[redacted]", "X-Team": "birds"}
    assert identity["options"] == {"temperature": 0.5, "extra_headers": headers}
    assert model.options["extra_headers"] == of_gateway
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:pa55word@host/v1?key=s3cr3t-12")
    assert OpenAIChatModel("m").identity()["base_url"] == "https://host/v1"


def test_a_pickled_model_has_no_key_of_its_address() -> None:
    model = OpenAIChatModel("m", base_url="https://host/v1?api_key=s3cr3t-12")
    assert b"s3cr3t" not in pickle.dumps(model)


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"retries": -1}, {"headers": "x"}])
def test_what_is_no_header_timeout_or_number_of_retries_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match=next(iter(wrong))):
        OpenAIModel("m", **wrong)


@pytest.mark.parametrize("name", ["api_key", "base_url", "headers", "max_retries"])
def test_what_is_an_argument_is_not_sent_in_the_body(name: str) -> None:
    with pytest.raises(sa.ConfigurationError, match="would be sent in the body") as raised:
        OpenAIChatModel("m", options={name: "s3cr3t"})
    assert "s3cr3t" not in str(raised.value)
