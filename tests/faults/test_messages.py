"""Nothing that was said is lost without a word: faults that were seen from outside."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models.providers.anthropic import AnthropicModel
from sagents_nb.models.providers.openai import OpenAIModel
from tests.talking import PATIENCE, agent_of

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE = base64.b64encode(PNG).decode()


def test_b03_text_beside_an_image_reaches_the_provider_and_is_there_after_reopening(
    tmp_path: Path,
) -> None:
    store = sa.ConversationStore(f"sqlite:///{tmp_path / 'c.db'}")
    agent = agent_of("ok")
    session = sa.Session(agent, id="c", store=store)
    session.send(sa.Message.user(["Describe this:", sa.ImagePart(IMAGE)])).result(PATIENCE)
    (request,) = agent.model.requests  # type: ignore[attr-defined]
    body = AnthropicModel("claude-sonnet-4-5", api_key="k").body(request, {})
    content = body["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image"]
    assert content[0]["text"] == "Describe this:"
    session.close()
    again = sa.Session.open("c", agent=agent, store=store)
    assert [m.text for m in again.messages] == ["Describe this:", "ok"]
    assert again.info()["problems"] == []


@pytest.mark.parametrize(
    "content", [5, None, [None], ["text", 5], {"type": "sound"}, b"text", [[]]]
)
def test_b03_what_is_no_part_is_refused_and_named(content: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="text, a part such as ImagePart") as refused:
        sa.Message.user(content)
    if content == ["text", 5]:
        assert "Part 2 of a message is of type int" in str(refused.value)


def test_b03_a_message_that_was_made_by_hand_is_looked_at_before_it_is_sent() -> None:
    agent = agent_of("never")
    with pytest.raises(sa.ConfigurationError, match="Part 1 of a user message"):
        agent.run(sa.Message("user", ("text",)))  # type: ignore[arg-type]
    with pytest.raises(sa.ConfigurationError, match="Part 1 of a user message"):
        sa.Session(agent).send(sa.Message("user", ("text",)))  # type: ignore[arg-type]
    assert agent.model.requests == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"type": "text", "text": "Look."}, sa.TextPart("Look.")),
        ({"type": "input_text", "text": "Look."}, sa.TextPart("Look.")),
        (
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{IMAGE}"}},
            sa.ImagePart(IMAGE, "image/jpeg"),
        ),
        (
            {"type": "input_image", "image_url": "https://x.no/a"},
            sa.ImagePart(url="https://x.no/a"),
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/gif", "data": IMAGE},
            },
            sa.ImagePart(IMAGE, "image/gif"),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x.no/a"}},
            sa.ImagePart(url="https://x.no/a"),
        ),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "UERG"},
            },
            sa.FilePart("UERG", "application/pdf"),
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a"},
            },
            sa.FilePart("YQ==", "text/plain"),
        ),
        (
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"},
            },
            sa.FilePart("UERG", "application/pdf", "a.pdf"),
        ),
        (
            {"type": "input_file", "filename": "a.pdf", "file_url": "https://x.no/a.pdf"},
            sa.FilePart(url="https://x.no/a.pdf", name="a.pdf"),
        ),
        ({"type": "image", "data": IMAGE, "mime_type": "image/png"}, sa.ImagePart(IMAGE)),
        (PNG, sa.ImagePart(IMAGE)),
    ],
)
def test_b03_a_providers_part_is_taken_as_it_is_written(given: Any, part: Any) -> None:
    assert sa.Message.user([given]).parts == (part,)
    assert sa.Message.user(given).parts == (part,)
    assert sa.Message.user(["Look:", given]).parts == (sa.TextPart("Look:"), part)


def test_b03_images_of_libraries_and_files_are_taken(tmp_path: Path) -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    (tmp_path / "a.png").write_bytes(PNG)
    for given in (
        tmp_path / "a.png",
        Image.new("RGB", (2, 2)),
        Image.new("CMYK", (2, 2)),
        Figure(),
    ):
        (text, image) = sa.Message.user(["What is it?", given]).parts
        assert text == sa.TextPart("What is it?")
        assert isinstance(image, sa.ImagePart)
        assert image.mime_type == "image/png"
        assert base64.b64decode(image.data or "").startswith(b"\x89PNG")


def test_b03_a_text_is_always_text_and_a_path_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.txt").write_text("words")
    path = str(tmp_path / "a.png")
    assert sa.Message.user([path]).parts == (sa.TextPart(path),)
    with pytest.raises(sa.ConfigurationError, match="read a text file with"):
        sa.Message.user(["Look:", tmp_path / "a.txt"])
    with pytest.raises(sa.ConfigurationError, match="cannot be read"):
        sa.Message.user(tmp_path / "none.png")


@pytest.mark.parametrize(
    "prompt",
    [
        {"role": "user", "content": "Hello."},
        [{"role": "user", "content": "Hello."}],
        {"role": "user", "content": [{"type": "text", "text": "Hello."}]},
        ["Hello."],
        [{"type": "text", "text": "Hello."}],
        {"type": "text", "text": "Hello."},
    ],
)
def test_b03_a_prompt_may_be_written_as_providers_write_it(prompt: Any) -> None:
    agent = agent_of("one", "two")
    agent.run(prompt)
    sa.Session(agent).send(prompt).result(PATIENCE)
    for request in agent.model.requests:  # type: ignore[attr-defined]
        assert [(m.role, m.text) for m in request.messages] == [("user", "Hello.")]


def test_b03_a_dict_with_more_than_role_and_content_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="'function_calls'"):
        agent_of("never").run([{"role": "user", "content": "", "function_calls": [1]}])


def test_b03_openai_is_sent_all_parts_too() -> None:
    agent = agent_of("ok")
    agent.run(["Describe this:", PNG])
    (request,) = agent.model.requests  # type: ignore[attr-defined]
    body = OpenAIModel("gpt-5", api_key="k").body(request, {})
    content = body["input"][-1]["content"]
    assert [part["type"] for part in content] == ["input_text", "input_image"]


@pytest.mark.parametrize("prompt", ["", "  \n", [], [""], sa.State(), sa.Message.user("")])
def test_b24_nobody_is_asked_with_nothing(prompt: Any) -> None:
    agent = agent_of("never")
    with pytest.raises((sa.ConfigurationError, sa.NotRunning)):
        agent.run(prompt)
    with pytest.raises(sa.ConfigurationError):
        sa.Session(agent).send(prompt)
    assert agent.model.requests == []  # type: ignore[attr-defined]


def test_b24_a_state_that_ends_with_an_answer_is_not_asked_about() -> None:
    agent = agent_of("never")
    state = sa.State(messages=[sa.Message.user("x"), sa.Message.assistant("y")])
    for given in ({"prompt": state}, {"prompt": [], "state": state}):
        with pytest.raises(sa.NotRunning, match="the state ends with an answer"):
            agent.run(**given)
    assert agent.model.requests == []  # type: ignore[attr-defined]
    assert agent_of("fine").run("and now?", state=state).text == "fine"
