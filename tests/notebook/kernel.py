"""A real kernel in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager

from sagents_nb.notebook.headless import retry_start
from tests.conftest import PRIVATE_PREFIXES
from tests.talking import PATIENCE, until

ROOT = Path(__file__).parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"


class Cell:
    """What one cell put out."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.reply: dict[str, Any] = {}

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The contents of the messages of that type."""
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    @property
    def error(self) -> str:
        """The name of the exception it ended with, or ""."""
        return str(self.reply.get("ename", ""))

    @property
    def text(self) -> str:
        """What it printed."""
        return "".join(content["text"] for content in self.of("stream"))

    @property
    def value(self) -> dict[str, Any]:
        """The data of its value."""
        found: dict[str, Any] = self.of("execute_result")[-1]["data"]
        return found

    @property
    def has_value(self) -> bool:
        """Whether a value was shown below it."""
        return bool(self.of("execute_result"))

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The data of what it displayed."""
        return [content["data"] for content in self.of("display_data")]

    @property
    def updates(self) -> list[dict[str, Any]]:
        """The data of what it displayed anew."""
        return [content["data"] for content in self.of("update_display_data")]


class Python(KernelSpecManager):  # type: ignore[misc]
    """Knows one kernel, that of an environment, by any name."""

    def __init__(self, python: str | Path) -> None:
        super().__init__()
        self._argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """How to start it."""
        return KernelSpec(argv=self._argv, display_name="Python", language="python")


class Kernel:
    """Started with this checkout, and this Python or another, without anybody's keys."""

    def __init__(self, folder: Path, python: str | Path = sys.executable) -> None:
        self.folder = folder
        self.python = str(python)
        retry_start(self._start)

    def _start(self) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(PRIVATE_PREFIXES)}
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.manager = KernelManager(kernel_spec_manager=Python(self.python))
        environment = {**kept, "PYTHONPATH": path, "IPYTHONDIR": str(self.folder)}
        self.manager.start_kernel(env=environment, cwd=str(self.folder))
        self.client = self.manager.client()
        self.client.start_channels()
        try:
            self.client.wait_for_ready(timeout=PATIENCE)
        except RuntimeError:
            self.stop()
            raise

    def stop(self) -> None:
        """End it."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def start(self, code: str, *, front_end: bool = False, cell: str = "") -> str:
        """Run a cell without waiting; ``front_end`` says that somebody could click.

        ``cell`` is the cell's id, as front ends tell it.
        """
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": front_end,
            "stop_on_error": True,
        }
        metadata = {"cellId": cell} if cell else {}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def wait_for(self, name: str) -> None:
        """Wait until code in the kernel has made that file, and remove it."""
        path = self.folder / name
        until(path.exists)
        path.unlink()

    def finish(self, id: str) -> Cell:
        """What the cell put out, once it has ended and the kernel is idle again."""
        cell = Cell()
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != id:
                continue
            cell.messages.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while not cell.reply:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"]["msg_id"] == id:
                cell.reply = reply["content"]
        return cell

    def run(self, code: str, *, front_end: bool = False, cell: str = "") -> Cell:
        """Run a cell to its end."""
        return self.finish(self.start(code, front_end=front_end, cell=cell))

    def ok(self, code: str, *, front_end: bool = False, cell: str = "") -> Cell:
        """Run a cell that must not fail."""
        ran = self.run(code, front_end=front_end, cell=cell)
        assert not ran.error, "\n".join(ran.reply["traceback"])
        return ran
