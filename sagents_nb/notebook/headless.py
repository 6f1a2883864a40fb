"""Execute a notebook where nobody can click, and print what it says.

``python -m sagents_nb.notebook.headless notebooks/tour.ipynb [--save]``
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from .. import kinds
from ..drives import replace_file, unwritten
from ..errors import ConfigurationError

Started = TypeVar("Started")
_ATTEMPTS = 3


@kinds.checked
def execute(path: Path, save: bool = False, setup: str = "") -> str:
    """Run the notebook in a fresh kernel and return its transcript.

    With ``save`` the outputs are written into the file, without widget state. The code
    ``setup`` is run before the first cell. Raises nbclient's CellExecutionError when a cell
    fails, and ConfigurationError where the file cannot be written; it is as it was then.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        store_widget_state=False,
        # Else it warns that its connection, which stays on this machine, is not encrypted.
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    if setup:
        client.on_notebook_start = partial(_set_up, client, setup)
    retry_start(client.execute)
    if save:
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times, which differ every run
        notebook.metadata.pop("widgets", None)
        try:
            replace_file(path, f"{nbformat.writes(notebook).rstrip()}\n".encode())
        except OSError as error:
            raise unwritten("The notebook", path, error) from error
    return "\n\n".join(text for cell in notebook.cells if (text := _cell_text(cell)))


def retry_start(start: Callable[[], Started]) -> Started:
    """Call ``start``, which starts a kernel; again when the kernel died before it was ready.

    A kernel's ports are chosen before it binds them, and another process may be faster
    (https://github.com/jupyter/jupyter_client/issues/154). No cell has run by then. Raises what
    the third attempt raises.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return start()
        except RuntimeError as error:
            if "died before replying to kernel_info" not in str(error):
                raise
    return start()


async def _set_up(client: NotebookClient, code: str, notebook: Any) -> None:
    kernel: Any = client.kc
    id = kernel.execute(code, silent=True, store_history=False, allow_stdin=False)
    await client.async_wait_for_reply(id)


def _cell_text(cell: Any) -> str:
    source = "".join(cell.source)
    if cell.cell_type == "markdown":
        return source
    prompt = "\n".join(f"    {line}" for line in source.splitlines())
    outputs = [text for output in cell.get("outputs", ()) if (text := _output_text(output))]
    return "\n\n".join([prompt, *outputs])


def _output_text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text).rstrip()
    data = output.get("data", {})
    return str(data.get("text/markdown") or data.get("text/plain") or "").rstrip()


@kinds.checked
def main(arguments: list[str]) -> int:
    """The command; 0 if every cell ran."""
    paths = [Path(a) for a in arguments if not a.startswith("--")]
    if not paths:
        print("Usage: python -m sagents_nb.notebook.headless NOTEBOOK… [--save]", file=sys.stderr)
        return 2
    for path in paths:
        try:
            print(execute(path, "--save" in arguments))
        except (CellExecutionError, ConfigurationError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
