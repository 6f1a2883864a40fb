"""A page may choose among the models that are offered, and no key ever travels."""

from __future__ import annotations

from typing import Any

import pytest

from sagents_nb.models.providers import SDKS
from tests.panel.pages import ask, held_session, page_of, session_of
from tests.talking import until


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for sdk in SDKS:
        for variable in sdk.variables:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("SAGENTS_MODEL", raising=False)


def models(session: Any) -> list[dict[str, Any]]:
    reply = ask(session, {"type": "models", "id": "1"})
    assert reply["type"] == "reply"
    found: list[dict[str, Any]] = reply["models"]
    return found


def choose(session: Any, name: Any) -> dict[str, Any]:
    return ask(session, {"type": "model", "id": "1", "name": name})


def test_offered_are_the_sessions_own_the_providers_defaults_and_the_demo() -> None:
    offered = models(session_of("Hello."))
    assert [choice["name"].partition(":")[0] for choice in offered] == [
        "",
        "anthropic",
        "openai",
        "demo",
    ]
    assert [choice["missing"] for choice in offered] == [
        "",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "",
    ]
    assert [choice["current"] for choice in offered] == [True, False, False, False]


def test_the_model_of_the_environment_is_offered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGENTS_MODEL", "openai-chat:gemma")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    offered = {choice["name"]: choice["missing"] for choice in models(session_of("Hello."))}
    assert offered["openai-chat:gemma"] == ""


def test_a_key_is_missing_or_not_and_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    offered = models(session_of("Hello."))
    assert offered[1]["missing"] == ""
    assert "sk-very-secret" not in str(offered)


def test_a_choice_answers_from_the_next_run_on_and_the_own_model_can_be_had_back() -> None:
    session = session_of("Mine.", "Mine again.")
    own = session.agent.model
    page = page_of(session)
    assert session.send("One.").result().text == "Mine."
    assert choose(session, "demo") == {"type": "reply", "id": "1"}
    until(lambda: page.state["model"] == "demo")
    assert [c["name"] for c in models(session) if c["current"]] == ["demo"]
    assert models(session)[0]["label"] == own.name
    assert session.send("Two.").result().text != "Mine again."
    assert choose(session, "")["type"] == "reply"
    assert session.agent.model is own
    assert session.send("Three.").result().text == "Mine again."
    assert [message.text for message in session.messages if message.role == "user"] == [
        "One.",
        "Two.",
        "Three.",
    ]


def test_a_model_that_somebody_set_meanwhile_is_the_sessions_own() -> None:
    session = session_of("Hello.")
    choose(session, "demo")
    session.replace(agent=session.agent.with_(model="openai-chat:gemma"))
    assert [(c["label"], c["current"]) for c in models(session) if c["name"] == ""] == [
        ("gemma", True)
    ]


def test_while_a_run_is_active_the_model_stays() -> None:
    session, run, release = held_session("Done.")
    own = session.agent.model
    reply = choose(session, "demo")
    assert (reply["type"], reply["kind"]) == ("error", "Busy")
    assert "is running" in reply["message"]
    assert session.agent.model is own
    release.set()
    assert run.result().text == "Done."
    assert [c["name"] for c in models(session) if c["current"]] == [""]


@pytest.mark.parametrize("name", ["openai:other", "nonsense", None, 3, ["demo"], {}])
def test_what_is_not_offered_cannot_be_chosen(name: Any) -> None:
    session = session_of("Hello.")
    own = session.agent.model
    assert choose(session, name)["kind"] == "ValueError"
    assert session.agent.model is own
