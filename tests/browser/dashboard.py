"""The page of a hub in a browser window, over agents that say what a test wants to see."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.servers import HubServer
from tests.browser.windows import HostPage, new_context

AGENTS = '''
import asyncio, pathlib
import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint

here = pathlib.Path(__file__).parent

def send_letter(to: str, text: str) -> str:
    """Send a letter."""
    with (here / "letters").open("a") as sent:
        sent.write(f"{to}: {text}\\n")
    return f"Sent to {to}."

class Speaker(sa.ChatModel):
    """Writes letters, hands on work, or says a piece and, once a file is there, the other."""
    name = "speaker"
    async def stream(self, request):
        last, id = request.messages[-1], f"call-{len(request.messages)}"
        say = sa.Message.assistant
        if last.role == "tool":
            yield say(f"Done: {last.tool_results[0].text}")
        elif "hand on" in last.text:
            task = {"subagentType": "clerk", "description": "A letter for the other"}
            yield say(tool_calls=[sa.ToolCall(id, "task", task)])
        elif "letter" in last.text:
            letter = {"to": "Ada", "text": "All is well."}
            yield say(tool_calls=[sa.ToolCall(id, "send_letter", letter)])
        elif "slowly" in last.text:
            yield "It begins, "
            while not (here / "go").exists():
                await asyncio.sleep(0.02)
            yield "and ends."
            yield say("It begins, and ends.")
        else:
            usage = sa.Usage(input_tokens=1200, output_tokens=34, cost_usd=0.0125)
            yield say(f"You said {last.text!r}, with `code` and $x^2$.", usage=usage)

system = AgentSystem(Speaker()).defaults().add_tool(send_letter)
system.add_agent(Blueprint("assistant", "Help.", "Answers, plans, and keeps files."))
gated = {"hitl": {"tools": ["send_letter"]}}
system.add_agent(Blueprint("clerk", "Write letters.", "Writes letters.", config=gated))
'''


class HubPage(HostPage):
    """A window on a hub."""

    # What the browser says of a line that broke: tests break it.
    OF_THE_HOST = ("net::ERR_CONNECTION", "WebSocket connection to")

    def __init__(self, browser: Browser, server: HubServer, *, bypass_csp: bool = False) -> None:
        self.provoked = "\0"  # the status of a refusal that a test means to have
        self.context = new_context(browser, bypass_csp=bypass_csp)
        super().__init__(self.context.new_page(), Path())
        self.server = server
        self.waiting = self.page.get_by_test_id("waiting")
        # Threads that were looked at before are there too, out of sight.
        self.panel = self.page.locator(".hub-thread:not([hidden])")
        self.card = self.panel.get_by_test_id("approval")
        self.status = self.panel.get_by_test_id("status")

    def open(self, place: str = "") -> Page:
        """Come in by the token, and go there."""
        self.page.goto(self.server.address(place))
        self.page.get_by_label("Token").fill(self.server.token)
        self.page.get_by_role("button", name="Open the hub").click()
        return self.page

    def make_agency(self, name: str) -> str:
        """A new one, and go there; gives its secret."""
        self.page.get_by_label("Name of a new agency").fill(name)
        self.page.get_by_role("button", name="Create").click()
        secret = self.page.get_by_role("region", name=f"Secret of {name}").locator("code")
        said = secret.inner_text()
        self.page.get_by_role("link", name=name, exact=True).click()
        return said

    def begin(self, blueprint: str, message: str) -> Locator:
        """A new thread, once it is shown; gives its place in the tree."""
        page = self.page
        page.get_by_role("complementary").get_by_role("link", name="New", exact=True).click()
        page.get_by_label("Blueprint", exact=True).select_option(blueprint)
        page.get_by_label("First message").fill(message)
        page.get_by_label("First message").press("Enter")
        expect(self.panel.get_by_role("heading", level=1)).to_have_text(message)
        return page.get_by_test_id("thread").filter(has_text=message).first

    @property
    def place(self) -> str:
        """Where it is, behind "#"."""
        return self.page.url.partition("#")[2]


@contextlib.contextmanager
def opened(browser: Browser, hub: HubServer, number: int) -> Iterator[list[HubPage]]:
    """So many windows; nothing may have been wrong in them, and nothing was asked of others."""
    (hub.root / "letters").unlink(missing_ok=True)
    windows = [HubPage(browser, hub) for _ in range(number)]
    yield windows
    for window in windows:
        window.context.close()
        # What a test provokes the console may tell of later than the page.
        assert [said for said in window.console if window.provoked not in said] == []
        assert window.foreign_requests == []


def letters(hub: HubServer, *said: str) -> None:
    """These were sent since it was asked last."""
    sent = hub.root / "letters"
    assert (sent.read_text().splitlines() if sent.exists() else []) == list(said)
    sent.unlink(missing_ok=True)
