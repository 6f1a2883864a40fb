"""The lazy names, for type checkers and editors; tests/test_public_face.py keeps them true."""

from typing import Any

from . import (
    events as events,
)
from .agent import (
    Agent as Agent,
)
from .budget import (
    Budget as Budget,
)
from .budget import (
    SharedBudget as SharedBudget,
)
from .bus import (
    LocalBus as LocalBus,
)
from .bus import (
    NatsBus as NatsBus,
)
from .citations import (
    Citation as Citation,
)
from .citations import (
    Location as Location,
)
from .context import (
    RunContext as RunContext,
)
from .context import (
    ToolContext as ToolContext,
)
from .documents import (
    DocumentIndex as DocumentIndex,
)
from .documents import (
    Passage as Passage,
)
from .errors import (
    AgentError as AgentError,
)
from .errors import (
    BudgetExceeded as BudgetExceeded,
)
from .errors import (
    Busy as Busy,
)
from .errors import (
    ConfigurationError as ConfigurationError,
)
from .errors import (
    DocumentError as DocumentError,
)
from .errors import (
    FailuresExceeded as FailuresExceeded,
)
from .errors import (
    InvalidDecision as InvalidDecision,
)
from .errors import (
    MaxRunsExceeded as MaxRunsExceeded,
)
from .errors import (
    MiddlewareError as MiddlewareError,
)
from .errors import (
    ModelError as ModelError,
)
from .errors import (
    NotFound as NotFound,
)
from .errors import (
    NotRunning as NotRunning,
)
from .errors import (
    Owned as Owned,
)
from .errors import (
    ReplayMiss as ReplayMiss,
)
from .errors import (
    SagentsError as SagentsError,
)
from .errors import (
    StaleApproval as StaleApproval,
)
from .errors import (
    StaleOwner as StaleOwner,
)
from .errors import (
    StoreError as StoreError,
)
from .errors import (
    UntilToolNotCalled as UntilToolNotCalled,
)
from .files import (
    BlobStore as BlobStore,
)
from .files import (
    CallbackStorage as CallbackStorage,
)
from .files import (
    DiskStorage as DiskStorage,
)
from .files import (
    FileChanged as FileChanged,
)
from .files import (
    FileError as FileError,
)
from .files import (
    FileMissing as FileMissing,
)
from .files import (
    FileStorage as FileStorage,
)
from .files import (
    FsspecStorage as FsspecStorage,
)
from .files import (
    InvalidPath as InvalidPath,
)
from .files import (
    Mount as Mount,
)
from .files import (
    NatsStorage as NatsStorage,
)
from .files import (
    PathTaken as PathTaken,
)
from .files import (
    ReadOnly as ReadOnly,
)
from .files import (
    SQLStorage as SQLStorage,
)
from .files import (
    VirtualFilesystem as VirtualFilesystem,
)
from .files import (
    filesystems as filesystems,
)
from .files import (
    open_filesystem as open_filesystem,
)
from .frames import (
    load_frame as load_frame,
)
from .frames import (
    plot_timeline as plot_timeline,
)
from .frames import (
    plot_usage as plot_usage,
)
from .frames import (
    save_frame as save_frame,
)
from .frames import (
    to_frame as to_frame,
)
from .interrupts import (
    ActionRequest as ActionRequest,
)
from .interrupts import (
    Approve as Approve,
)
from .interrupts import (
    Edit as Edit,
)
from .interrupts import (
    Interrupt as Interrupt,
)
from .interrupts import (
    Reject as Reject,
)
from .interrupts import (
    Respond as Respond,
)
from .loop.agent_loop import AgentContext as AgentContext
from .loop.agent_loop import AgentLoopConfig as AgentLoopConfig
from .loop.agent_loop import agent_loop as agent_loop
from .messages import (
    FilePart as FilePart,
)
from .messages import (
    ImagePart as ImagePart,
)
from .messages import (
    JsonPart as JsonPart,
)
from .messages import (
    Message as Message,
)
from .messages import (
    ProviderPart as ProviderPart,
)
from .messages import (
    TextDelta as TextDelta,
)
from .messages import (
    TextPart as TextPart,
)
from .messages import (
    ThinkingDelta as ThinkingDelta,
)
from .messages import (
    ThinkingPart as ThinkingPart,
)
from .messages import (
    ToolCall as ToolCall,
)
from .messages import (
    ToolCallDelta as ToolCallDelta,
)
from .messages import (
    ToolResult as ToolResult,
)
from .messages import (
    Usage as Usage,
)
from .middleware import (
    AskUser as AskUser,
)
from .middleware import (
    CompiledSubAgent as CompiledSubAgent,
)
from .middleware import (
    ConfidenceCheck as ConfidenceCheck,
)
from .middleware import (
    ConversationTitle as ConversationTitle,
)
from .middleware import (
    DebugLog as DebugLog,
)
from .middleware import (
    FileSystem as FileSystem,
)
from .middleware import (
    HumanInTheLoop as HumanInTheLoop,
)
from .middleware import (
    Middleware as Middleware,
)
from .middleware import (
    PatchToolCalls as PatchToolCalls,
)
from .middleware import (
    Retrieval as Retrieval,
)
from .middleware import (
    SlidingWindow as SlidingWindow,
)
from .middleware import (
    SubAgentConfig as SubAgentConfig,
)
from .middleware import (
    SubAgents as SubAgents,
)
from .middleware import (
    Summarization as Summarization,
)
from .middleware import (
    TodoList as TodoList,
)
from .middleware import (
    ToolSearch as ToolSearch,
)
from .models import (
    AnthropicModel as AnthropicModel,
)
from .models import (
    ChatModel as ChatModel,
)
from .models import (
    DemoModel as DemoModel,
)
from .models import (
    FallbackModel as FallbackModel,
)
from .models import (
    Limited as Limited,
)
from .models import (
    ModelRequest as ModelRequest,
)
from .models import (
    OpenAIChatModel as OpenAIChatModel,
)
from .models import (
    OpenAIModel as OpenAIModel,
)
from .models import (
    Priced as Priced,
)
from .models import (
    RecordedModel as RecordedModel,
)
from .models import (
    ResponseCache as ResponseCache,
)
from .models import (
    RetryingModel as RetryingModel,
)
from .models import (
    ScriptedModel as ScriptedModel,
)
from .models import (
    default_model as default_model,
)
from .models import (
    resolve_model as resolve_model,
)
from .notebook import (
    ApprovalView as ApprovalView,
)
from .notebook import (
    ChatView as ChatView,
)
from .notebook import (
    FilesView as FilesView,
)
from .notebook import (
    NotebookTools as NotebookTools,
)
from .notebook import (
    TodoView as TodoView,
)
from .registry import (
    AgentCard as AgentCard,
)
from .registry import (
    AgentRegistry as AgentRegistry,
)
from .registry import (
    Delegation as Delegation,
)
from .registry import (
    Task as Task,
)
from .registry import (
    TaskContext as TaskContext,
)
from .result import (
    RunResult as RunResult,
)
from .session import (
    Run as Run,
)
from .session import (
    Session as Session,
)
from .session import (
    sessions as sessions,
)
from .state import (
    State as State,
)
from .state import (
    Todo as Todo,
)
from .store import (
    ConversationStore as ConversationStore,
)
from .store import (
    Scope as Scope,
)
from .tasks import (
    Artifact as Artifact,
)
from .tasks import (
    TaskRecord as TaskRecord,
)
from .tools import (
    Tool as Tool,
)
from .tools import (
    ToolOutput as ToolOutput,
)
from .tools import (
    tool as tool,
)

__version__: str
__all__: list[str]

def load_ipython_extension(shell: Any) -> None: ...
def unload_ipython_extension(shell: Any) -> None: ...
