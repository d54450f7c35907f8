// Hears what is so now, and keeps nothing of what was: each connection begins with everything.

const SILENCE_MS = 40_000, RETRY_MS = 2000;

export class Feed {
  #source = null;
  #timer = 0;
  #isOpen = false;

  // `onChange(pieces)`: what is so now; `onLost()`: it is not known any more; `onRefused()`: the session may be over.
  constructor({ onChange, onLost, onRefused }) {
    Object.assign(this, { onChange, onLost, onRefused });
    this.pieces = new Map();
  }

  open() {
    this.close();
    this.#isOpen = true;
    const source = this.#source = new EventSource("/api/events");
    source.addEventListener("message", (event) => this.#take(JSON.parse(event.data)));
    source.addEventListener("still", () => this.#wait());
    source.addEventListener("error", () => this.#fail(source));
    this.#wait();
  }

  close() {
    this.#isOpen = false;
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { this.onLost(); this.open(); }, SILENCE_MS);
  }

  #take(told) {
    this.#wait();
    if (told.whole) this.pieces.clear();
    for (const [name, piece] of Object.entries(told.pieces)) this.pieces.set(name, piece);
    const names = new Set(told.names);
    for (const name of [...this.pieces.keys()]) if (!names.has(name)) this.pieces.delete(name);
    this.onChange(this.pieces);
  }

  // The browser comes back by itself where the connection broke, and gives up where it was refused.
  #fail(source) {
    if (source !== this.#source) return;
    this.onLost();
    if (source.readyState !== EventSource.CLOSED) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#isOpen && this.onRefused(), RETRY_MS);
  }
}

export function cards(pieces) {
  return [...pieces].filter(([name]) => name.startsWith("service/")).map(([, card]) => card);
}
