"""The page of a hub and its files: what they are, and what a page may do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sagents_nb.hub import AgentSystem, Hub
from sagents_nb.hub.agencies import digest_of
from sagents_nb.hub.web.app import app
from sagents_nb.hub.web.pages import ASSETS, page
from sagents_nb.hub.web.settings import Settings

PAGE, _ = page(behind_jupyter=False, of_notebook=False)


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub(AgentSystem("demo"), "sqlite://")
    yield made
    made.close()


def get(hub: Hub, path: str) -> tuple[int, dict[str, str], bytes]:
    """What somebody without a token is answered."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8765")],
        "client": ("127.0.0.1", 1),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(hub, Settings(token=digest_of("canary")))(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(each.get("body", b"") for each in sent[1:])


def test_the_page_has_no_script_and_no_style_of_its_own_and_its_policy_takes_none(hub: Hub) -> None:
    status, headers, body = get(hub, "/")
    assert (status, body.decode()) == (200, PAGE)
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", PAGE) == []
    policy = headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert not any("unsafe" in each or "*" in each for each in policy)


def test_all_that_the_page_names_is_there_beside_it_and_nothing_else_is(hub: Hub) -> None:
    named = re.findall(r'(?:href|src)="assets/([^"]+)"', PAGE)
    assert named
    assert set(named) <= set(ASSETS)
    for name in ASSETS:
        status, headers, body = get(hub, f"/assets/{name}")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        assert (status, headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert headers["x-content-type-options"] == "nosniff"
        assert body
    for name in ("loader.js", "dashboardxjs", "../pages.py", ""):
        assert get(hub, f"/assets/{name}")[0] == 401
