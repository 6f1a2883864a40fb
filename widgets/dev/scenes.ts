// States worth looking at. Each is what a kernel could send as a snapshot.
import type { ActionRequest, Entry, Message, Part, ViewState } from "../src/protocol";

const START = 1795305274.8;
let seq = 0;

export function emptyState(over: Partial<ViewState> = {}): ViewState {
  return {
    session_id: "conversation-1", status: "idle", error: null, model: "demo", context_window: null, entries: [], earlier: 0,
    past: [], partial: null, tools: {}, todos: [], interrupt: null, decided: {}, files: [], usage: {}, runs: {}, queued: [], branches: {}, agents: {},
    ...over,
  };
}

const entry = (message: Message): Entry => ({ seq: ++seq, run_id: "r1", ts: START + seq, message });
const user = (text: string) => entry({ role: "user", parts: [{ type: "text", text }] });
const agent = (...parts: Part[]) => entry({ role: "assistant", parts, usage: { input_tokens: 3120, output_tokens: 240 } });
const text = (content: string): Part => ({ type: "text", text: content });
const call = (id: string, name: string, args: object): Part => ({ type: "tool_call", id, name, arguments: args as never });
const results = (...list: [string, string, string, boolean?, object?][]) =>
  entry({
    role: "tool",
    parts: list.map(([tool_call_id, name, content, is_error, more]) => ({ type: "tool_result", tool_call_id, name, content, is_error, ...more })),
  });

const REPORT = `# Penguins

Three species, **344** birds. The heaviest are *Gentoo*.

| Species | Birds | Mass (g) |
|---|--:|--:|
| Adelie | 152 | 3,701 |
| Chinstrap | 68 | 3,733 |
| Gentoo | 124 | 5,076 |

## Method

1. Read \`penguins.csv\`
2. Drop rows without a mass:
   \`\`\`python
   frame = frame.dropna(subset=["body_mass_g"])
   \`\`\`
3. Group by species

> Two rows had no sex; they are kept.
`;

const ANSWER = `The data is clean but for two rows. Here is how the masses compare:

\`\`\`python
import pandas as pd

# Mean body mass of each species
frame = pd.read_csv("penguins.csv")
means = frame.groupby("species")["body_mass_g"].mean().round(0)
print(means.sort_values(ascending=False))
\`\`\`

**Gentoo** are about 1.4 kg heavier than the others, see [the data set](https://allisonhorst.github.io/palmerpenguins/).

| Species | Birds | Mean mass (g) |
|---|--:|--:|
| Gentoo | 124 | 5,076 |
| Chinstrap | 68 | 3,733 |
| Adelie | 152 | 3,701 |

- The difference holds for both sexes
- \`flipper_length_mm\` explains most of it`;

const todos: ViewState["todos"] = [
  { id: 1, content: "Look at the data", status: "completed" },
  { id: 2, content: "Compare body mass of the species", status: "completed" },
  { id: 3, content: "Write the report with a table and a short method section", status: "in_progress" },
  { id: 4, content: "Plot flipper length against mass" },
  { id: 5, content: "Ask for a second opinion", status: "cancelled" },
];
const files: ViewState["files"] = [
  { path: "/data/penguins.csv", size: 15_210, modified: START },
  { path: "/notes/ideas.md", size: 120, modified: START },
  { path: "/plot.png", size: 48_213, modified: START },
  { path: "/report.md", size: REPORT.length, modified: START },
  { path: "/summary.py", size: 310, modified: START },
];
export const contents: Record<string, string | null> = {
  "/report.md": REPORT,
  "/notes/ideas.md": "- flippers\n- islands\n",
  "/data/penguins.csv": `species,island,body_mass_g\n${Array.from({ length: 260 }, (_, i) => `${["Adelie", "Gentoo", "Chinstrap"][i % 3]},"Torgersen, north",${3200 + 7 * i}`).join("\n")}\n`,
  "/summary.py": 'import pandas as pd\n\n\ndef summary(frame: pd.DataFrame) -> pd.DataFrame:\n    """Mean mass of each species."""\n    return frame.groupby("species").mean(numeric_only=True)\n',
  "/plot.png": null,
};

const running = { r1: { status: "running", started: Date.now() / 1000 - 12, ended: null } };
const ended = (status: string) => ({ r1: { status, started: START, ended: START + 14.2 } });
const talk = [
  user("Which penguins are the heaviest? Write a short report."),
  agent(
    { type: "thinking", text: "The user wants a comparison by species. I read the file first, then group." },
    text("I will look at the data first."),
    call("c1", "read_file", { file_path: "/data/penguins.csv", limit: 20 }),
    call("c2", "run_python", { code: "frame = pd.read_csv('penguins.csv')\nframe.groupby('species').body_mass_g.mean()" }),
    call("c3", "search_web", { query: "palmer penguins mean body mass by species" }),
  ),
  results(
    ["c1", "read_file", "species,island,body_mass_g\nAdelie,Torgersen,3750\nAdelie,Torgersen,3800"],
    ["c2", "run_python", "species\nAdelie       3701\nChinstrap    3733\nGentoo       5076"],
    ["c3", "search_web", "ConnectionError: no network in this kernel", true],
  ),
];
const tools: ViewState["tools"] = {
  c1: { name: "read_file", status: "completed", display_text: "Reading penguins.csv", duration: 0.012 },
  c2: { name: "run_python", status: "completed", display_text: null, duration: 1.84 },
  c3: { name: "search_web", status: "failed", display_text: "Searching the web", duration: 3.2 },
};
const usage = { input_tokens: 12_480, output_tokens: 1_934, cache_read_tokens: 8_200, cost_usd: 0.0421 };

const states = ["running", "completed", "failed", "rejected", "cancelled", "skipped", "interrupted"];
const waiting = (requests: ActionRequest[]): ViewState =>
  emptyState({
    status: "interrupted", tools, todos, files, usage, runs: ended("interrupted"),
    entries: [...talk, agent(text("Now the rest."), ...requests.map((r) => call(r.tool_call_id, r.tool_name, r.arguments ?? {})))],
    interrupt: { id: "i1", type: "hitl", run_id: "r1", action_requests: requests },
  });
const write: ActionRequest = {
  tool_call_id: "c8", tool_name: "write_file", display_text: "Writing the report", digest: "d8",
  arguments: { file_path: "/report.md", content: REPORT + REPORT, overwrite: true },
};
const edit: ActionRequest = {
  tool_call_id: "c9", tool_name: "edit_file", digest: "d9", allowed_decisions: ["approve", "reject"],
  arguments: { file_path: "/summary.py", old_string: "    return frame\n", new_string: "    # admin\u202e\u2066 nimda\u2069\u200b\n    return frame.sort_values('mass')\n", options: { replace_all: false, tags: ["a\u0000b"] } },
};
const python: ActionRequest = {
  tool_call_id: "c6", tool_name: "run_python", display_text: "Running Python", digest: "d6",
  arguments: { code: 'import pandas as pd\n\nframe = pd.read_csv("penguins.csv")\n# Mean mass of each species\nmeans = frame.groupby("species")["body_mass_g"].mean()\nmeans.plot.barh()\n' },
};
const query: ActionRequest = {
  tool_call_id: "c5", tool_name: "run_query", digest: "d5",
  arguments: { query: "SELECT species, AVG(mass) AS mass FROM penguins WHERE year = 2026 GROUP BY species ORDER BY 2 DESC", limit: 100, warehouse: "birds" },
};
const lines: ActionRequest = {
  tool_call_id: "c4", tool_name: "edit_lines", display_text: "Editing /summary.py", digest: "d4",
  arguments: { file_path: "/summary.py", start_line: 5, end_line: 6, new_content: '    """Median mass of each species, heaviest first."""\n    medians = frame.groupby("species").median(numeric_only=True)\n    return medians.sort_values("body_mass_g", ascending=False)' },
};
const done = agent(text(ANSWER));
// A picture of 2 × 1 pixels.
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGNkYGBgYGAAAAAHAAGFvJb8AAAAAElFTkSuQmCC";
const TRACEBACK = 'Traceback (most recent call last):\n  File "<cell>", line 3, in <module>\n    frame.groupby("specie")\n  File "/lib/pandas/core/frame.py", line 9183, in groupby\n    raise KeyError(key)\nKeyError: \'specie\'';
const WIDE = `| ${Array.from({ length: 14 }, (_, i) => `measurement ${i}`).join(" | ")} |\n|${"---|".repeat(14)}\n| ${Array.from({ length: 14 }, (_, i) => 1000 * i + 0.25).join(" | ")} |`;

export const scenes: Record<string, ViewState> = {
  empty: emptyState(),
  streaming: emptyState({
    status: "running", entries: talk, tools, todos, files, usage, runs: running, queued: [{ run_id: "r9", when: "queue", text: "And for 2025?" }],
    partial: { run_id: "r1", seq: 50, parts: [{ type: "text", text: ANSWER.slice(0, 230) }] },
  }),
  calling: emptyState({
    status: "running", entries: talk.slice(0, 1), usage, runs: running,
    partial: {
      run_id: "r1", seq: 50,
      parts: [
        { type: "thinking", text: "First the data." },
        { type: "text", text: "I will look at the data first." },
        { type: "tool_call", index: 0, id: "c1", name: "read_file", text: '{"file_path": "/data/peng' },
      ],
    },
  }),
  done: emptyState({ entries: [...talk, done], tools, todos, files, usage, runs: ended("completed") }),
  tools: emptyState({
    status: "running", runs: running, usage,
    entries: [user("Show me all cards."), agent(text("One of each."), ...states.map((status) => call(status, `tool_${status}`, { path: `/${status}.md`, n: 3 })))],
    tools: Object.fromEntries(
      states.map((status) => [
        status,
        status === "running"
          ? { name: "x", status, display_text: null, progress: { text: "Row 340 of 1,000", fraction: 0.34 } }
          : { name: "x", status, display_text: null, duration: 0.4 },
      ]),
    ),
  }),
  approval: waiting([write]),
  approvals: waiting([edit, write]),
  "approval-python": waiting([python]),
  "approval-query": waiting([query]),
  "approval-lines": waiting([lines]),
  decided: emptyState({
    status: "running", runs: running, usage, todos, files, tools: {
      c4: { name: "edit_lines", status: "completed", display_text: "Editing /summary.py", duration: 0.02 },
      c6: { name: "run_python", status: "completed", display_text: "Running Python", duration: 1.4 },
      c8: { name: "write_file", status: "rejected", display_text: "Writing the report" },
      t1: { name: "task", status: "running", display_text: "Delegating to researcher", progress: { text: "Reading /data/penguins.csv", fraction: null } },
      t2: { name: "task", status: "completed", display_text: "Delegating to critic", duration: 14 },
    },
    decided: { c4: { type: "edit", by: "user" }, c6: { type: "approve", by: "user", always: true }, c8: { type: "reject", by: "user", message: "Not on a Sunday." } },
    entries: [
      ...talk,
      agent(...[lines, python, write].map((r) => call(r.tool_call_id, r.tool_name, r.arguments ?? {}))),
      results(
        ["c4", "edit_lines", "Replaced lines 5 to 6.", false, { metadata: { edited_arguments: { ...lines.arguments, end_line: 7 } } }],
        ["c6", "run_python", "<Axes: ylabel='species'>", false, { images: [{ media_type: "image/png", data: PICTURE }] }],
        ["c8", "write_file", "A person rejected this call, so it was not run. They said: Not on a Sunday."],
      ),
      agent({ type: "thinking", text: "Two opinions are better than one." }, call("t1", "task", { instructions: "Find what others say about penguins.", subagent_type: "researcher" }), call("t2", "task", { instructions: "Read the report and say what is wrong with it.", subagent_type: "critic" })),
      results(["t2", "task", "The report is **sound**, but:\n\n- it has no plot\n- it names no source"]),
    ],
  }),
  quiet: emptyState({
    runs: ended("completed"), usage, files,
    entries: [
      user("What is in the files?"),
      agent({ type: "thinking", text: "I list them first, and then read each of them in turn." }, call("q0", "write_todos", { merge: false, todos: [] })),
      results(["q0", "write_todos", "1 todo"]),
      agent(call("q1", "ls", {})), results(["q1", "ls", "[]"]),
      agent({ type: "thinking", text: "Now the first." }, call("q2", "read_file", { file_path: "/report.md" }), call("q3", "read_file", { file_path: "/summary.py" })),
      results(["q2", "read_file", "# Penguins"], ["q3", "read_file", "import pandas"]),
      agent(call("q4", "search_text", { pattern: "species" })), results(["q4", "search_text", "/report.md:3"]),
      agent(call("q5", "run_python", { code: "frame.groupby('specie')" })), results(["q5", "run_python", TRACEBACK, true]),
      agent(call("q6", "write_todos", { merge: true, todos: [] })),
      results(["q6", "write_todos", "All done", false, { metadata: { todos: todos.slice(0, 2) } }]),
      agent(text(`There are three species.\n\n${WIDE}\n\nThe mean is $\\bar{x} = \\frac{1}{n}\\sum x_i$ and costs $5 and $6.\n\n$$E = mc^2$$`)),
    ],
  }),
  question: waiting([{ tool_call_id: "q", tool_name: "ask_user", digest: "q", allowed_decisions: ["respond", "reject"], arguments: { question: "Which species shall I plot?", options: [{ label: "All", value: "all" }, { label: "Gentoo", value: "g" }], allow_other: true } }]),
  doubt: emptyState({
    status: "interrupted",
    entries: [user("Pay the rent."), agent(text("I pay the rent."), call("t1", "transfer", { amount: 900, to: "landlord" }))],
    interrupt: {
      id: "i1", type: "in_doubt", run_id: "",
      message: "The process ended when this had begun: transfer. Look whether it ran, and say 'ran', 'did not run', 'retry'.",
      action_requests: [{ tool_call_id: "t1", tool_name: "transfer", digest: "dt", allowed_decisions: ["respond"], arguments: { amount: 900, to: "landlord" } }],
    },
  }),
  traceback: emptyState({ status: "error", entries: talk, tools, runs: ended("error"), error: TRACEBACK }),
  error: emptyState({
    status: "error", entries: talk, tools, todos, runs: ended("error"), usage,
    error: "AuthenticationError: the key for anthropic was not accepted (401). Set ANTHROPIC_API_KEY and run the cell again.",
  }),
  cancelled: emptyState({
    status: "cancelled", runs: ended("cancelled"), usage, tools,
    entries: [...talk, entry({ role: "assistant", parts: [{ type: "text", text: "Gentoo are the heav" }], stop_reason: "aborted" })],
  }),
  long: emptyState({ entries: Array.from({ length: 8 }, () => [user("And again, in other words?"), agent(text(ANSWER))]).flat(), usage, earlier: 212 }),
};
