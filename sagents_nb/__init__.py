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
        "AgentError BudgetExceeded Busy ConfigurationError FailuresExceeded InvalidDecision "
        "MaxRunsExceeded MiddlewareError "
        "ModelError NotFound NotRunning Owned ReplayMiss SagentsError StaleApproval StaleOwner "
        "StoreError UntilToolNotCalled"
    ),
    "budget": "Budget SharedBudget",
    "tools": "Tool ToolOutput tool",
    "context": "RunContext ToolContext",
    "models": (
        "AnthropicModel ChatModel DemoModel FallbackModel Limited ModelRequest OpenAIChatModel "
        "OpenAIModel RecordedModel ResponseCache RetryingModel ScriptedModel default_model "
        "resolve_model"
    ),
    "middleware": (
        "AskUser CompiledSubAgent ConversationTitle DebugLog FileSystem HumanInTheLoop Middleware "
        "PatchToolCalls SubAgentConfig SubAgents Summarization TodoList"
    ),
    "files": (
        "CallbackStorage DiskStorage FileChanged FileError FileMissing FileStorage FsspecStorage "
        "InvalidPath Mount PathTaken ReadOnly SQLStorage VirtualFilesystem filesystems "
        "open_filesystem"
    ),
    "frames": "load_frame plot_timeline plot_usage save_frame to_frame",
    "agent": "Agent",
    "loop.agent_loop": "AgentContext AgentLoopConfig agent_loop",
    "result": "RunResult",
    "session": "Run Session sessions",
    "store": "ConversationStore Scope",
    "notebook": "ApprovalView ChatView FilesView NotebookTools TodoView",
}
# What is seldom needed, and not listed where people look for what they need.
_SELDOM = (
    "ActionRequest AgentContext AgentLoopConfig CallbackStorage DebugLog FallbackModel "
    "FileChanged FileMissing FileStorage FsspecStorage InvalidDecision InvalidPath "
    "ModelRequest Owned PatchToolCalls PathTaken ProviderPart ReadOnly ReplayMiss "
    "RetryingModel RunContext SQLStorage SharedBudget StaleOwner TextDelta ThinkingDelta "
    "ToolCallDelta VirtualFilesystem agent_loop load_ipython_extension "
    "unload_ipython_extension"
)
_HOME = {name: module for module, names in _EXPORTS.items() for name in names.split()}

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension", *sorted(_HOME)]

if TYPE_CHECKING:
    from . import events as events
    from .agent import Agent as Agent
    from .budget import Budget as Budget
    from .budget import SharedBudget as SharedBudget
    from .context import RunContext as RunContext
    from .context import ToolContext as ToolContext
    from .errors import AgentError as AgentError
    from .errors import BudgetExceeded as BudgetExceeded
    from .errors import Busy as Busy
    from .errors import ConfigurationError as ConfigurationError
    from .errors import FailuresExceeded as FailuresExceeded
    from .errors import InvalidDecision as InvalidDecision
    from .errors import MaxRunsExceeded as MaxRunsExceeded
    from .errors import MiddlewareError as MiddlewareError
    from .errors import ModelError as ModelError
    from .errors import NotFound as NotFound
    from .errors import NotRunning as NotRunning
    from .errors import Owned as Owned
    from .errors import ReplayMiss as ReplayMiss
    from .errors import SagentsError as SagentsError
    from .errors import StaleApproval as StaleApproval
    from .errors import StaleOwner as StaleOwner
    from .errors import StoreError as StoreError
    from .errors import UntilToolNotCalled as UntilToolNotCalled
    from .files import CallbackStorage as CallbackStorage
    from .files import DiskStorage as DiskStorage
    from .files import FileChanged as FileChanged
    from .files import FileError as FileError
    from .files import FileMissing as FileMissing
    from .files import FileStorage as FileStorage
    from .files import FsspecStorage as FsspecStorage
    from .files import InvalidPath as InvalidPath
    from .files import Mount as Mount
    from .files import PathTaken as PathTaken
    from .files import ReadOnly as ReadOnly
    from .files import SQLStorage as SQLStorage
    from .files import VirtualFilesystem as VirtualFilesystem
    from .files import filesystems as filesystems
    from .files import open_filesystem as open_filesystem
    from .frames import load_frame as load_frame
    from .frames import plot_timeline as plot_timeline
    from .frames import plot_usage as plot_usage
    from .frames import save_frame as save_frame
    from .frames import to_frame as to_frame
    from .interrupts import ActionRequest as ActionRequest
    from .interrupts import Approve as Approve
    from .interrupts import Edit as Edit
    from .interrupts import Interrupt as Interrupt
    from .interrupts import Reject as Reject
    from .interrupts import Respond as Respond
    from .loop.agent_loop import AgentContext as AgentContext
    from .loop.agent_loop import AgentLoopConfig as AgentLoopConfig
    from .loop.agent_loop import agent_loop as agent_loop
    from .messages import FilePart as FilePart
    from .messages import ImagePart as ImagePart
    from .messages import JsonPart as JsonPart
    from .messages import Message as Message
    from .messages import ProviderPart as ProviderPart
    from .messages import TextDelta as TextDelta
    from .messages import TextPart as TextPart
    from .messages import ThinkingDelta as ThinkingDelta
    from .messages import ThinkingPart as ThinkingPart
    from .messages import ToolCall as ToolCall
    from .messages import ToolCallDelta as ToolCallDelta
    from .messages import ToolResult as ToolResult
    from .messages import Usage as Usage
    from .middleware import AskUser as AskUser
    from .middleware import CompiledSubAgent as CompiledSubAgent
    from .middleware import ConversationTitle as ConversationTitle
    from .middleware import DebugLog as DebugLog
    from .middleware import FileSystem as FileSystem
    from .middleware import HumanInTheLoop as HumanInTheLoop
    from .middleware import Middleware as Middleware
    from .middleware import PatchToolCalls as PatchToolCalls
    from .middleware import SubAgentConfig as SubAgentConfig
    from .middleware import SubAgents as SubAgents
    from .middleware import Summarization as Summarization
    from .middleware import TodoList as TodoList
    from .models import AnthropicModel as AnthropicModel
    from .models import ChatModel as ChatModel
    from .models import DemoModel as DemoModel
    from .models import FallbackModel as FallbackModel
    from .models import Limited as Limited
    from .models import ModelRequest as ModelRequest
    from .models import OpenAIChatModel as OpenAIChatModel
    from .models import OpenAIModel as OpenAIModel
    from .models import RecordedModel as RecordedModel
    from .models import ResponseCache as ResponseCache
    from .models import RetryingModel as RetryingModel
    from .models import ScriptedModel as ScriptedModel
    from .models import default_model as default_model
    from .models import resolve_model as resolve_model
    from .notebook import ApprovalView as ApprovalView
    from .notebook import ChatView as ChatView
    from .notebook import FilesView as FilesView
    from .notebook import NotebookTools as NotebookTools
    from .notebook import TodoView as TodoView
    from .result import RunResult as RunResult
    from .session import Run as Run
    from .session import Session as Session
    from .session import sessions as sessions
    from .state import State as State
    from .state import Todo as Todo
    from .store import ConversationStore as ConversationStore
    from .store import Scope as Scope
    from .tools import Tool as Tool
    from .tools import ToolOutput as ToolOutput
    from .tools import tool as tool

__getattr__ = face(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*__all__, "events"}.difference(_SELDOM.split()))


def load_ipython_extension(shell: Any) -> None:
    """Make ``%%agent`` and ``%agent`` available; called by ``%load_ext sagents_nb``."""
    from .notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take them away again; called by ``%unload_ext sagents_nb``."""
    from .notebook.extension import unload

    unload(shell)
