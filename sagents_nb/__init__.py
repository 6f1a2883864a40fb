"""An agent in your notebook kernel: streaming, approvals, files, and a transcript you can keep.

``import sagents_nb as sa``; every public name is an attribute of the package and is loaded on
first use, so that the import itself costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lazy import face

__version__ = "0.1.0"

_EXPORTS = {
    "messages": (
        "FilePart ImagePart JsonPart Message ProviderPart TextDelta TextPart ThinkingDelta "
        "ThinkingPart ToolCall ToolCallDelta ToolResult Usage"
    ),
    "state": "State Todo",
    "interrupts": "ActionRequest Approve Edit Interrupt Reject Respond",
    "errors": (
        "AgentError BudgetExceeded Busy ConfigurationError DocumentError FailuresExceeded "
        "InvalidDecision MaxRunsExceeded MiddlewareError "
        "ModelError NotFound NotRunning Owned ReplayMiss SagentsError StaleApproval StaleOwner "
        "StoreError UntilToolNotCalled"
    ),
    "budget": "Budget SharedBudget",
    "citations": "Citation Location",
    "tools": "Tool ToolOutput tool",
    "context": "RunContext ToolContext",
    "models": (
        "AnthropicModel ChatModel DemoModel FallbackModel Limited ModelRequest OpenAIChatModel "
        "OpenAIModel Priced RecordedModel ResponseCache RetryingModel ScriptedModel "
        "default_model resolve_model"
    ),
    "bus": "LocalBus NatsBus",
    "middleware": (
        "AskUser CompiledSubAgent ConfidenceCheck ConversationTitle DebugLog FileSystem "
        "HumanInTheLoop Middleware PatchToolCalls Retrieval SlidingWindow SubAgentConfig SubAgents "
        "Summarization TodoList ToolSearch"
    ),
    "files": (
        "BlobStore CallbackStorage DiskStorage FileChanged FileError FileMissing FileStorage "
        "FsspecStorage InvalidPath Mount NatsStorage PathTaken ReadOnly SQLStorage "
        "VirtualFilesystem filesystems open_filesystem"
    ),
    "documents": "DocumentIndex Passage",
    "frames": "load_frame plot_timeline plot_usage save_frame to_frame",
    "agent": "Agent",
    "loop.agent_loop": "AgentContext AgentLoopConfig agent_loop",
    "result": "RunResult",
    "session": "Run Session sessions",
    "store": "ConversationStore Scope",
    "tasks": "Artifact TaskRecord",
    "registry": "AgentCard AgentRegistry Delegation Task TaskContext",
    "notebook": "ApprovalView ChatView FilesView NotebookTools TodoView",
}
# What is seldom needed, and not listed where people look for what they need.
_SELDOM = (
    "ActionRequest AgentCard AgentContext AgentLoopConfig CallbackStorage Citation DebugLog "
    "FallbackModel FileChanged FileMissing FileStorage FsspecStorage InvalidDecision InvalidPath "
    "JsonPart Location ModelRequest NatsStorage Owned Passage PatchToolCalls PathTaken "
    "ProviderPart ReadOnly ReplayMiss RetryingModel RunContext SQLStorage SharedBudget StaleOwner "
    "TaskRecord ThinkingDelta ToolCallDelta "
    "UntilToolNotCalled VirtualFilesystem agent_loop load_ipython_extension "
    "unload_ipython_extension"
)
_HOME = {name: module for module, names in _EXPORTS.items() for name in names.split()}

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension", *sorted(_HOME)]

if TYPE_CHECKING:
    from .agent import Agent as Agent
    from .session import Session as Session
    from .tools import tool as tool

__getattr__ = face(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*__all__, "events"}.difference(_SELDOM.split()))


def load_ipython_extension(shell: Any) -> None:
    """Make ``%%agent`` and ``%agent`` known in ``shell``; called by ``%load_ext sagents_nb``."""
    from .notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take them away again from ``shell``; called by ``%unload_ext sagents_nb``."""
    from .notebook.extension import unload

    unload(shell)
