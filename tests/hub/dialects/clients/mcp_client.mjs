// The steps of argv as the npm SDK of MCP does them in one session; what came of each is a line of JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const { url, token, answers, steps } = JSON.parse(process.argv[2]);
const headers = { Authorization: `Bearer ${token}` };
const capabilities = answers === undefined ? {} : { elicitation: {} };
const client = new Client({ name: "test", version: "1" }, { capabilities });
const asked = [];
if (answers !== undefined) {
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    asked.push(params);
    return answers.shift();
  });
}
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
await client.connect(transport);

let thread_id;
for (const step of steps) {
  const progress = [];
  let came;
  try {
    if (step.tools) {
      came = { tools: (await client.listTools()).tools.map((tool) => tool.name) };
    } else {
      const call = { name: step.name, arguments: { message: step.say, thread_id } };
      const onprogress = ({ message }) => void progress.push(message);
      const result = await client.callTool(call, undefined, { onprogress });
      thread_id = result.structuredContent?.thread_id;
      came = { result, progress, asked: asked.splice(0) };
    }
  } catch (failed) {
    came = { failed: String(failed.message ?? failed) };
  }
  console.log(JSON.stringify(came));
}
await transport.terminateSession();
await client.close();
