// Reads a streamed answer event by event.

import { fault, send } from "./api.js";

export async function* stream(path, body, signal) {
  const reply = await send("POST", path, body, {}, signal);
  if (!reply.ok) throw await fault(reply);
  let rest = "";
  for await (const text of reader(reply.body.pipeThrough(new TextDecoderStream()))) {
    const events = (rest + text).split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const data = event.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

async function* reader(source) {
  const from = source.getReader();
  for (;;) {
    const { done, value } = await from.read();
    if (done) return;
    yield value;
  }
}
