// The steps of argv as the npm package of OpenAI does them; what came of each is a line of JSON.
import OpenAI from "openai";

const { baseURL, apiKey, steps } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

async function said(step) {
  const messages = [{ role: "user", content: step.say }];
  const asked = { model: step.model, messages, ...step.more };
  if (!step.stream) {
    const reply = await client.chat.completions.create(asked);
    const [choice] = reply.choices;
    return { text: choice.message.content, reason: choice.finish_reason, usage: reply.usage };
  }
  const pieces = [];
  let reason = null;
  let usage = null;
  const stream_options = { include_usage: true };
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true, stream_options })) {
    pieces.push(chunk.choices[0]?.delta.content ?? "");
    reason = chunk.choices[0]?.finish_reason ?? reason;
    usage = chunk.usage ?? usage;
  }
  return { text: pieces.join(""), pieces: pieces.filter(Boolean).length, reason, usage };
}

for (const step of steps) {
  let came;
  try {
    came = step.models
      ? { models: (await client.models.list()).data.map((model) => model.id) }
      : await said(step);
  } catch (failed) {
    const { status, type, message } = failed;
    came = { failed: failed.constructor.name, status, type, message };
  }
  console.log(JSON.stringify(came));
}
