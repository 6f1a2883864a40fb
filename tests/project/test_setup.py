"""What is written is a whole project: it passes its own tests, and ours of its style."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sagents_nb.cli import main
from tests.project.projects import ACCOUNTS, ROOT, files_of, run

pytestmark = pytest.mark.spec("S1.14.4")

TESTS = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
# It differs by nothing but names from one project to another; a kernel takes its time to start.
WITHOUT_NOTEBOOK = ("--ignore", "tests/test_chat_notebook.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "my-agents"


def passed(said: str) -> int:
    """How many tests passed, where none failed."""
    found = re.search(r"(\d+) passed in", said)
    assert found is not None, said
    return int(found[1])


@pytest.mark.soak
@pytest.mark.spec("S1.14.5")
def test_a_project_whose_conversations_are_a_users_passes_its_tests(folder: Path) -> None:
    assert main(["setup", str(folder), "--yes"]) == 0
    before = files_of(folder)
    assert set(before) >= {"my_agents/scope.py", "my_agents/coordinator.py", "notebooks/chat.ipynb"}
    assert passed(run(folder, *TESTS)) == 9
    assert files_of(folder) == before  # they leave nothing behind


@pytest.mark.spec("S1.14.5")
def test_a_project_without_owners_passes_its_tests_and_knows_of_none(folder: Path) -> None:
    assert main(["setup", str(folder), "--yes", "--owner-type", "none"]) == 0
    texts = {name: text.decode().lower() for name, text in files_of(folder).items()}
    assert "my_agents/scope.py" not in texts
    for name, text in texts.items():
        assert not re.search(r"\bowner|\bscope\b|user_id", text), name
    assert passed(run(folder, *TESTS, *WITHOUT_NOTEBOOK)) == 7


@pytest.mark.spec("S1.14.5")
def test_a_project_with_a_class_a_field_and_a_prefix_of_its_own_passes_its_tests(
    tmp_path: Path,
) -> None:
    (tmp_path / "accounts.py").write_text(ACCOUNTS)
    options = ["-s", "accounts:Membership", "-t", "team", "-f", "team_id"]
    more = ["--table-prefix", "crew_", "--package", "crew", "--model", "anthropic:claude-x"]
    assert main(["setup", str(tmp_path), "--yes", *options, *more]) == 0
    assert "from accounts import Membership as Scope" in (tmp_path / "crew/scope.py").read_text()
    assert 'MODEL = "anthropic:claude-x"' in (tmp_path / "crew/factory.py").read_text()
    extras = "sagents-nb[anthropic,notebook,store,testing]"
    assert extras in (tmp_path / "pyproject.toml").read_text()
    assert passed(run(tmp_path, *TESTS, *WITHOUT_NOTEBOOK)) == 8

    said = run(tmp_path, "-m", "crew.migrate")  # into the project's own file, as nothing is set
    assert str(tmp_path / "data" / "agents.db") in said
    assert "crew_conversations" in said
    assert (tmp_path / "data" / ".gitignore").read_text() == "*\n"


PROVIDER = """

class Provider(sa.ChatModel):
    name = "provider"

    async def stream(self, request):
        async for item in sa.DemoModel().stream(request):
            if isinstance(item, sa.Message) and item.text == "6 words":
                item = sa.Message.assistant("Six of them.", usage=item.usage)
            yield item


MODEL = Provider()
"""


@pytest.mark.soak
def test_the_notebook_is_tested_with_another_model_once_its_answers_are_recorded(
    folder: Path,
) -> None:
    main(["setup", str(folder), "--yes"])
    factory = folder / "my_agents" / "factory.py"
    factory.write_text(factory.read_text().replace('MODEL = "demo"\n', PROVIDER))
    run(folder, "-m", "sagents_nb.cli", "test-notebook", "notebooks", "--record")
    assert "Six of them." in (folder / "notebooks" / "chat.ipynb").read_text()
    assert passed(run(folder, *TESTS, "tests/test_chat_notebook.py")) == 1
    (folder / "notebooks" / "chat.cassette.json").unlink()
    with pytest.raises(AssertionError, match=r"Six of them(?s:.)*1 failed"):
        run(folder, *TESTS, "tests/test_chat_notebook.py")  # the demo model says something else


@pytest.mark.parametrize("owner", ["user", "none"])
def test_it_is_as_tidy_as_the_house(folder: Path, owner: str) -> None:
    main(["setup", str(folder), "--yes", "-t", owner])
    rules = ("--config", str(ROOT / "pyproject.toml"))
    run(folder, "-m", "ruff", "check", "--no-cache", *rules, "my_agents")
    run(folder, "-m", "ruff", "check", "--no-cache", ".")
    run(folder, "-m", "ruff", "format", "--no-cache", "--check", ".")


def test_the_notebook_is_small_and_has_no_trace_of_whoever_wrote_it(folder: Path) -> None:
    main(["setup", str(folder), "--yes"])
    text = (folder / "notebooks" / "chat.ipynb").read_text()
    assert len(text) < 30_000
    assert not re.search(r"/home/|/tmp/|/Users/|/work/", text)
    assert any(cell.get("outputs") for cell in json.loads(text)["cells"])
