"""Bytes in files: images for models that see, and a description for all others."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest

import sagents_nb as sa
from sagents_nb.files import FileSystem as Files
from sagents_nb.messages import ContentPart
from sagents_nb.middleware.filesystem import MAX_IMAGE
from sagents_nb.models.base import ModelRequest
from tests.talking import call

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Seeing(sa.ScriptedModel):
    reads_images = True


def read(data: bytes, model: sa.ChatModel, path: str = "/plot.png") -> str | list[ContentPart]:
    """What the tool result holds in the next request."""
    files = Files()
    files.write(path, data)
    session = sa.Session(sa.Agent(model=model), filesystem=files)
    run = session.send("look").result()
    session.close()
    (result,) = [r for m in run.state.messages for r in m.tool_results]
    assert not result.is_error
    content: str | list[ContentPart] = result.content
    return content


def script(path: str = "/plot.png") -> list[object]:
    return [call("read_file", file_path=path), "I see."]


def test_a_model_that_sees_is_handed_the_image() -> None:
    content = read(PNG, Seeing(script()))
    assert content == [
        sa.TextPart("/plot.png (70 bytes):"),
        sa.ImagePart(base64.b64encode(PNG).decode(), "image/png"),
    ]


def test_one_that_does_not_is_told_what_it_is() -> None:
    content = read(PNG, sa.ScriptedModel(script()))
    assert "/plot.png is a binary file (image/png, 70 bytes" in str(content)
    assert "an image that this model is not shown" in str(content)


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\x01\0\x01\0\x80\0\0\xff", "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_the_bytes_tell_what_kind_of_image_it_is(data: bytes, mime_type: str) -> None:
    content = read(data, Seeing(script()))
    assert isinstance(content[1], sa.ImagePart)
    assert content[1].mime_type == mime_type


@pytest.mark.parametrize(
    "data", [b"\0\xff not an image", b"BM\0\0\0\0", PNG + b"\0" * MAX_IMAGE], ids=len
)
def test_what_a_provider_would_refuse_is_not_handed_on(data: bytes) -> None:
    content = read(data, Seeing(script()))
    assert "its content cannot be shown as text" in str(content)


def test_which_models_see(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sa.AnthropicModel("claude-x").reads_images
    assert sa.OpenAIModel("gpt-x").reads_images
    assert sa.OpenAIChatModel("gpt-x").reads_images
    assert not sa.OpenAIChatModel("gemma", base_url="http://127.0.0.1:1/v1").reads_images
    local = sa.OpenAIChatModel("gemma", base_url="http://127.0.0.1:1/v1", reads_images=True)
    assert local.reads_images
    assert not sa.DemoModel().reads_images
    assert sa.RetryingModel(local).reads_images
    assert sa.RecordedModel(local).reads_images
    assert sa.FallbackModel([local, sa.AnthropicModel("x")]).reads_images
    assert not sa.FallbackModel([local, sa.DemoModel()]).reads_images
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert not sa.OpenAIChatModel("gemma").reads_images


def test_a_model_of_ones_own_says_that_it_sees() -> None:
    asked: list[ModelRequest] = []

    class Mine(sa.ChatModel):
        name = "mine"
        reads_images = True

        async def stream(self, request: ModelRequest) -> AsyncIterator[sa.Message]:
            asked.append(request)
            first = len(asked) == 1
            calls = [call("read_file", file_path="/plot.png")] if first else []
            yield sa.Message.assistant("" if first else "seen", tool_calls=calls)

    content = read(PNG, Mine())
    assert isinstance(content[1], sa.ImagePart)
