// Parts of the panel that a page is given when the first text needs them, and not before: what
// sets formulas, and what colours code.

/** A view may be gone before its kernel has answered, so another one asks again. */
const PATIENCE = 10_000;

let ask: (name: string) => void = () => {};
const parts = new Map<string, Part<unknown>>();

/** A module of its own; `name` is that of its file, and of the message that asks for it and brings it. */
export class Part<T> {
  /** Null as long as it is not there. */
  module: T | null = null;
  #asked = 0;
  #waiting = new Set<(module: T) => void>();

  constructor(private name: string) {
    parts.set(name, this as Part<unknown>);
  }

  /** Calls `tell` now or when it is there, and asks for it; gives what forgets `tell`. */
  whenThere(tell: (module: T) => void): () => void {
    if (this.module) {
      tell(this.module);
      return () => {};
    }
    this.#waiting.add(tell);
    if (Date.now() - this.#asked > PATIENCE) this.ask();
    return () => void this.#waiting.delete(tell);
  }

  /** Asks for it, if somebody waits for it. */
  ask(): void {
    if (this.#waiting.size === 0) return;
    this.#asked = Date.now();
    ask(this.name);
  }

  /** Takes the module from now on, and tells those that wait. */
  use(module: T): void {
    this.module = module;
    for (const tell of this.#waiting) tell(module);
    this.#waiting.clear();
  }

  async load(script: DataView): Promise<void> {
    if (this.module) return;
    let url = "";
    try {
      url = URL.createObjectURL(new Blob([script as DataView<ArrayBuffer>], { type: "text/javascript" }));
      this.use(await import(/* @vite-ignore */ url));
    } catch (error) {
      console.error("[sagents_nb]", error); // a page that forbids it shows what was written
    } finally {
      URL.revokeObjectURL?.(url);
    }
  }
}

/** Has parts asked for in that way from now on. */
export function askBy(tell: (message: { type: string }) => void): void {
  ask = (type) => tell({ type });
}

/** Asks for what is waited for once more: there is a better way by now. */
export function askAgain(): void {
  for (const part of parts.values()) part.ask();
}

/** Takes a message that brings a part; any other is left alone. */
export function takePart(message: { type: string }, buffers: DataView[] = []): void {
  if (buffers.length === 1) void parts.get(message.type)?.load(buffers[0]!);
}
