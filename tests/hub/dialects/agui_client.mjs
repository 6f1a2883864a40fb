// The steps of argv as @ag-ui/client does them, one after the other, with one agent; what came of
// each is a line of JSON. A step says something, answers all that waits, or only looks.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../widgets/package.json", import.meta.url));
const { HttpAgent, buildResumeArray } = require("@ag-ui/client");

const { url, token, threadId, steps } = JSON.parse(process.argv[2]);
const agent = new HttpAgent({ url, threadId, headers: { Authorization: `Bearer ${token}` } });

for (const [number, step] of steps.entries()) {
  const events = [];
  const parameters = { runId: `run-${number}` };
  if (step.say !== undefined) {
    agent.addMessage({ id: `said-${threadId}-${number}`, role: "user", content: step.say });
  }
  if (step.answer !== undefined) {
    const response = { status: "resolved", payload: step.answer };
    const open = agent.pendingInterrupts;
    const responses = Object.fromEntries(open.map((each) => [each.id, response]));
    parameters.resume = buildResumeArray(open, responses);
  }
  let error = null;
  try {
    await agent.runAgent(parameters, { onEvent: ({ event }) => void events.push(event) });
  } catch (failed) {
    error = String(failed.message ?? failed);
  }
  const { messages, state, pendingInterrupts: waiting } = agent;
  console.log(JSON.stringify({ events, messages, state, waiting, error }));
}
