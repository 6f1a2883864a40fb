"""A study in a notebook: recorded, and replayed without its provider; killed, and gone on with."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from sagents_nb.notebook.headless import retry_start
from tests.batch.test_replay import answered
from tests.models.loopback import KEY, Provider
from tests.notebook.testing.test_test_notebook import Notebooks
from tests.talking import PATIENCE

MODELS = '("small", "large")'
STUDY = """
import os
from pathlib import Path
import pandas as pd
import sagents_nb as sa

Path("pid").write_text(str(os.getpid()))
questions = pd.Series([f"Is {{n}} a prime number?" for n in range({rows})])

def answers(name, **options):
    model = sa.resolve_model(f"openai-chat:{{name}}", base_url="{url}/v1")
    agent = sa.Agent(model, replace_default_middleware=True)
    return agent.map(questions, progress=False, **options)
"""
BOTH = f"""
study = pd.concat([answers(name, concurrency=20).assign(model=name) for name in {MODELS}])
print(study.groupby("model").status.value_counts())
print(study.text.iloc[-1])
"""
ONE = 'print((answers("small", concurrency=1, cache="rows.jsonl").status == "completed").sum())'


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    provider.answer = answered
    yield provider
    provider.close()


@pytest.fixture
def notebooks(tmp_path: Path) -> Notebooks:
    return Notebooks(tmp_path)


@pytest.mark.parametrize("rows", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_a_study_of_2_models_is_replayed_without_its_provider(
    rows: int, provider: Provider, notebooks: Notebooks
) -> None:
    notebooks.write("study.ipynb", [STUDY.format(url=provider.url, rows=rows), BOTH])
    recorded = notebooks.run("study.ipynb", "--record", OPENAI_API_KEY=KEY)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    assert len(provider.requests) == 2 * rows
    provider.close()  # the guard in the kernel would refuse a socket all the same
    replayed = notebooks.run("study.ipynb")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert f"large: Is {rows - 1} a prime number?" in (notebooks.folder / "study.ipynb").read_text()


def test_a_kernel_that_is_killed_at_row_60_runs_40_the_next_time(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    def run() -> Any:
        cells = [STUDY.format(url=provider.url, rows=100), ONE]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        place = {"metadata": {"path": str(tmp_path)}}
        client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", resources=place)
        retry_start(client.execute)
        return notebook.cells[1].outputs[0].text

    def killing(request: Any) -> Any:
        if len(provider.requests) == 61:  # 60 rows are done
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        return answered(request)

    provider.answer = killing
    with pytest.raises(DeadKernelError):
        run()
    provider.requests.clear()
    provider.answer = answered
    assert run() == "100\n"
    assert len(provider.requests) == 40
