from __future__ import annotations

import json
from typing import Any

import pytest

from sagents_nb import Agent, ScriptedModel
from sagents_nb.errors import ConfigurationError
from sagents_nb.files import FileEntry
from sagents_nb.files import FileSystem as Files
from sagents_nb.middleware.filesystem import TOOL_NAMES, FileSystem, default_entry_to_map
from sagents_nb.tools import Tool
from tests.middleware.calling import call, tool_of


def test_there_are_eight_tools_with_described_parameters() -> None:
    tools = FileSystem().tools()
    assert [t.name for t in tools] == [
        "ls",
        "read_file",
        "write_file",
        "edit_file",
        "search_text",
        "edit_lines",
        "delete_file",
        "move_file",
    ]
    for tool in tools:
        assert tool.description
        assert "ctx" not in tool.schema["properties"]
        for name, parameter in tool.schema["properties"].items():
            assert parameter.get("description"), f"{tool.name}.{name}"
    required = {t.name: t.schema.get("required", []) for t in tools}
    assert required["write_file"] == ["file_path", "content"]
    assert required["ls"] == []


@pytest.mark.spec("S1.7.9")
def test_enabled_tools_are_the_only_ones_and_the_prompt_knows() -> None:
    middleware = FileSystem(enabled_tools=["read_file", "ls"])
    assert [t.name for t in middleware.tools()] == ["ls", "read_file"]
    prompt = middleware.system_prompt()
    assert "`ls`, `read_file`." in prompt
    assert "write_file" not in prompt
    assert FileSystem(enabled_tools=[]).system_prompt() == ""
    assert FileSystem(enabled_tools=[]).tools() == []


@pytest.mark.spec("S1.7.9")
@pytest.mark.parametrize(
    "options", [{"enabled_tools": ["ls", "rm"]}, {"custom_tool_descriptions": {"rm": "x"}}]
)
def test_an_unknown_tool_name_is_an_error_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="no file tool 'rm'; the tools are ls, read_file"):
        FileSystem(**options)


@pytest.mark.spec("S1.7.9")
def test_a_custom_description_is_what_the_model_reads() -> None:
    tool = tool_of(FileSystem(custom_tool_descriptions={"ls": "Look around."}), "ls")
    assert tool.spec.description == "Look around."


@pytest.mark.spec("S1.7.9")
def test_entry_to_map_shapes_what_is_told_of_an_entry() -> None:
    def with_genre(entry: FileEntry) -> dict[str, Any]:
        return {**default_entry_to_map(entry), "genre": entry.custom.get("genre")}

    files = Files()
    files.write("/a", "x", custom={"genre": "noir"})
    middleware = FileSystem(entry_to_map=with_genre)
    (entry,) = json.loads(str(call(tool_of(middleware, "ls"), {}, files=files).content))
    assert entry["genre"] == "noir"
    written = call(
        tool_of(middleware, "write_file"), {"file_path": "/b", "content": ""}, files=files
    )
    assert json.loads(str(written.content))["genre"] is None


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_people_read_what_a_tool_does(name: str) -> None:
    arguments = {"file_path": "/a.md", "pattern": "p", "old_path": "/a.md", "new_path": "/b"}
    tool = tool_of(FileSystem(), name)
    assert isinstance(tool, Tool)
    text = tool.display(arguments)
    assert text
    assert "/a.md" in text or "p" in text
    assert tool.display({})


@pytest.mark.spec("S1.7.9")
@pytest.mark.parametrize("scope", ["user", ["user", 1], 3, (), ("user", [1])])
def test_an_agent_with_a_scope_that_is_no_tuple_is_an_error_at_once(scope: Any) -> None:
    with pytest.raises(ConfigurationError, match="scope is a"):
        Agent(ScriptedModel(["hi"]), filesystem_scope=scope)
