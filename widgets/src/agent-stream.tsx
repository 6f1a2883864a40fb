// What a sub-agent says and does, inside the card of the call that it is.
import { createContext } from "preact";
import { useMemo } from "preact/hooks";
import { ownersOf, resultsByEntry } from "./calls";
import { FaintLine } from "./faint";
import { count } from "./format";
import { Turn, type About } from "./turns";
import type { AgentState, Entry, ToolResult } from "./protocol";

/** Whether what is drawn is inside a sub-agent: of its results the page has the beginnings only. */
export const InsideAgent = createContext(false);

type Props = {
  agent: AgentState;
  /** Where the call stands in the conversation. */
  place: string;
  /** Whether nothing more comes. */
  over: boolean;
  /** What it has answered, which stands below. */
  answer?: ToolResult;
};

export function AgentStream({ agent, place, over, answer }: Props) {
  const { entries, partial, tools, agents, earlier } = agent;
  const results = useMemo(() => resultsByEntry(entries), [entries]);
  const owners = useMemo(() => ownersOf(entries), [entries]);
  const about: About = (entry, call) => {
    const mine = owners.get(call.id) === entry;
    const result = results.get(entry)?.[call.id];
    return { info: mine ? tools[call.id] : undefined, result, decided: result?.decision, over, agent: mine ? agents[call.id] : undefined };
  };
  // Its task stands above, its answer below.
  const last = answer && !answer.is_interrupt ? entries.at(-1) : undefined;
  const shown = entries
    .map((entry, index) => ({ entry, key: earlier + index }))
    .filter(({ entry }) => entry.message.role === "assistant" && !(entry === last && !asks(entry)));
  if (shown.length === 0 && !partial && earlier === 0) return null;
  return (
    <InsideAgent.Provider value={true}>
      <div class="sagents-agent-stream" data-testid="agent-stream">
        <div class="sagents-label">What it did</div>
        {earlier > 0 && <FaintLine>{count(earlier, "earlier message")} not shown here</FaintLine>}
        {shown.map(({ entry, key }) => (
          <Turn key={key} entry={entry} place={`${place}/${key}`} about={about} />
        ))}
        {partial && !over && <Turn key={earlier + entries.length} partial={partial} place={`${place}/${earlier + entries.length}`} />}
      </div>
    </InsideAgent.Provider>
  );
}

const asks = ({ message }: Entry) => message.parts?.some((part) => part.type === "tool_call") ?? false;
