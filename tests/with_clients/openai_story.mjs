// Played by the Node of tools/make-clients: what npm's `openai` makes of the gateway, as one JSON object.
import { createRequire } from "node:module";

const [home, url, key] = process.argv.slice(2);
const OpenAI = createRequire(`${home}/`)("openai").default;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const ask = { model: "stoker-demo", messages: [{ role: "user", content: "Who are you?" }], max_tokens: 16, temperature: 0 };

async function refusal(asked, request) {
  try {
    await asked.chat.completions.create(request);
  } catch (problem) {
    return [problem.status, problem.code, problem.message];
  }
  return [null, null, "answered"];
}

const models = [];
for await (const model of client.models.list()) models.push(model.id);
const whole = await client.chat.completions.create(ask);
let text = "";
for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
  text += chunk.choices[0]?.delta?.content ?? "";
}
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "Get the current weather of a city.", parameters: city } }];
const weather = [{ role: "user", content: "What is the weather in Lisbon?" }];
const called = await client.chat.completions.create({ ...ask, messages: weather, tools, max_tokens: 128 });
const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-wrong", maxRetries: 0 });
console.log(JSON.stringify({
  models,
  whole: whole.choices[0].message.content,
  stream: text,
  call: called.choices[0].message.tool_calls[0].function,
  unknown: await refusal(client, { ...ask, model: "gpt-4o" }),
  "wrong key": await refusal(stranger, ask),
}));
