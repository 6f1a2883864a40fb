"""The wire between a page and its kernel, broken on purpose.

It is broken inside the page, in front of a real WebSocket to a real server: messages of ours are
lost, come twice or in another order, and the line is cut. All else that JupyterLab and its kernel
say to each other passes.
"""

from __future__ import annotations

from typing import Literal

from playwright.sync_api import Page

Way = Literal["in", "out"]
Fault = Literal["drop", "double", "swap"]

# The bundle is not among them: it comes once, and a page that misses it says so.
OURS = [
    *("snapshot", "events", "reply", "error", "closed", "ping", "pong", "hello"),
    *("send", "withdraw", "retry", "decide", "cancel", "read_changes", "models"),
]

BROKEN = (
    f"const OURS = new Set({OURS});"
    + """
(() => {
  const Real = WebSocket;
  const text = new TextDecoder();
  const sockets = new Set();
  const faults = { in: [], out: [] };
  const held = { in: [], out: [] };
  let offline = false;

  // Of the protocol v1.kernel.websocket.jupyter.org: offsets, then the channel, header, parent,
  // metadata and content.
  const isOurs = (frame) => {
    if (!(frame instanceof ArrayBuffer)) return false;
    const view = new DataView(frame);
    const at = (i) => Number(view.getBigUint64(8 * (1 + i), true));
    const part = (i) => JSON.parse(text.decode(new Uint8Array(frame, at(i), at(i + 1) - at(i))));
    if (part(1).msg_type !== "comm_msg") return false;
    const { data } = part(4);
    return OURS.has((data?.content ?? data)?.type);
  };
  const pass = (way, frame, deliver) => {
    if (!isOurs(frame)) return deliver();
    const fault = faults[way].shift();
    if (fault === "drop") return;
    if (fault === "swap") return void held[way].push(deliver);
    deliver();
    if (fault === "double") deliver();
    for (const late of held[way].splice(0)) late();
  };

  globalThis.WebSocket = class extends Real {
    constructor(url, protocols) {
      super(url, protocols);
      if (!String(url).includes("/channels")) return;
      sockets.add(this);
      this.addEventListener("close", () => sockets.delete(this));
      if (offline) super.close();
    }
    set onmessage(hear) {
      super.onmessage = (event) => pass("in", event.data, () => hear.call(this, event));
    }
    send(frame) {
      pass("out", frame, () => this.readyState === Real.OPEN && super.send(frame));
    }
  };
  globalThis.sagentsWire = {
    faults,
    cut: () => {
      offline = true;
      for (const socket of sockets) socket.close();
    },
    letGo: () => {
      offline = false;
      for (const way of ["in", "out"]) {
        faults[way].length = 0;
        for (const late of held[way].splice(0)) late();
      }
    },
  };
})();
"""
)
"""What a page has to run before all else."""


class Wire:
    """The wire of one page, which has run :data:`BROKEN`."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def fail(self, way: Way, fault: Fault) -> None:
        """Have the next message of ours on that way fail so; asked again, one after it too."""
        self._page.evaluate("([way, fault]) => sagentsWire.faults[way].push(fault)", [way, fault])

    def cut(self) -> None:
        """Cut the line, and every new one, until all is let go."""
        self._page.evaluate("sagentsWire.cut()")

    def let_go(self) -> None:
        """Nothing fails any more, and what was held back arrives."""
        self._page.evaluate("sagentsWire.letGo()")
