// Asks the control API. The cookie is the browser's; the word, without which nothing is changed, lies in this page's storage.

const WORD = "stoker-word";

export class Fault extends Error {
  constructor(status, told) {
    const fault = told?.fault, refused = told?.error;
    super(fault?.what ?? refused?.message ?? `the daemon answered ${status}`);
    this.status = status;
    this.why = fault?.why ?? "";
    this.next = fault?.next_step ?? "";
    this.code = refused?.code ?? "";
  }
}

export const word = () => localStorage.getItem(WORD);

export function keepWord(value) {
  if (value) localStorage.setItem(WORD, value);
  else localStorage.removeItem(WORD);
}

export function send(method, path, body, headers = {}, signal = undefined) {
  const said = { ...headers };
  if (method !== "GET" && word()) said["x-stoker-word"] = word();
  if (body !== undefined) said["content-type"] = "application/json";
  return fetch(path, { method, headers: said, body: body === undefined ? undefined : JSON.stringify(body), signal });
}

export async function fault(reply) {
  return new Fault(reply.status, await reply.json().catch(() => null));
}

export async function ask(method, path, body, headers) {
  const reply = await send(method, path, body, headers);
  if (!reply.ok) throw await fault(reply);
  return reply.json();
}

export const service = (name, use) => `/api/services/${encodeURIComponent(name)}/${use}`;
