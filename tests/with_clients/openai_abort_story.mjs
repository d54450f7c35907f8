// Played by the Node of tools/make-clients: npm's `openai` streams, and aborts midway when told to; then it asks again.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [home, url, key] = process.argv.slice(2);
const OpenAI = createRequire(`${home}/`)("openai").default;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const ask = { model: "stoker-demo", messages: [{ role: "user", content: "Who are you?" }], max_tokens: 16, temperature: 0 };
const told = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const leaving = new AbortController();

const endless = { ...ask, stream: true, max_tokens: 100000, ignore_eos: true };
let pieces = 0;
for await (const _ of await client.chat.completions.create(endless, { signal: leaving.signal })) {
  pieces += 1;
  if (pieces !== 5) continue;
  console.log("in the middle");
  await told.next();
  leaving.abort();
}
console.log("aborted");
await told.next();
console.log((await client.chat.completions.create(ask)).choices[0].message.content);
process.stdin.destroy();
