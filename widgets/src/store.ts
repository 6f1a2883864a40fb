// One store per session and page: it knows the view state, keeps it in step with the kernel, or
// with the hub, and carries requests. Views only read it and ask it.
import type { AnyModel } from "@anywidget/types";
import { Comm } from "./comm";
import type { Source } from "./loader";
import { reduce, type FromKernel, type Reply, type ViewState } from "./protocol";
import type { Listener, Transport } from "./transport";

export class RequestError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    /** The call whose decision was refused, if it is one call's. */
    readonly toolCallId = "",
  ) {
    super(message);
  }
}

type Pending = {
  resolve: (reply: Reply) => void;
  reject: (error: RequestError) => void;
  /** Until then it is not asked again; with the same id, so that the kernel does it once. */
  again: ReturnType<typeof setTimeout> | undefined;
  ask: () => void;
};

/** Levels of lists and objects. A kernel may be unable to read more, and then it gives no answer. */
const DEEPEST = 99;
const isDeep = (value: unknown, levels: number): boolean =>
  value !== null && typeof value === "object" && (levels === 0 || Object.values(value).some((inner) => isDeep(inner, levels - 1)));

const FIRST_PATIENCE = 10_000;
const LONGEST_PATIENCE = 60_000;

export class Store implements Listener {
  state: ViewState | null = null;
  /** Whether the kernel can still be asked for something. */
  open = true;
  /** Whether the kernel itself is gone, and not only the session closed. */
  lost = false;
  /** Whether it has not answered for so long that it was asked again. */
  silent = false;
  #seq = 0;
  #asked = false;
  /** Whether this page has not heard yet, on the way that it has now, what there is. */
  #anew = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #pending = new Map<string, Pending>();
  #subscribers = new Set<() => void>();
  #frame = 0;
  // `crypto.randomUUID` is missing on plain http, where many hubs live.
  #prefix = Math.random().toString(36).slice(2, 10);
  #count = 0;

  constructor(readonly transport: Transport) {
    transport.listen(this);
    this.#hello(0);
  }

  subscribe(notify: () => void): () => void {
    this.#subscribers.add(notify);
    return () => this.#subscribers.delete(notify);
  }

  /** Sends a request; resolves with its reply, rejects with a `RequestError`. */
  request(type: string, fields: object = {}): Promise<Reply> {
    if (!this.open) return Promise.reject(new RequestError("Closed", this.transport.gone));
    if (isDeep(fields, DEEPEST)) return Promise.reject(new RequestError("TooDeep", "This nests too deep to be sent."));
    const id = `${this.#prefix}-${++this.#count}`;
    return new Promise((resolve, reject) => {
      const ask = () => this.#persistently(() => this.tell({ type, id, ...fields }), (timer) => (pending.again = timer));
      const pending: Pending = { resolve, reject, again: undefined, ask };
      this.#pending.set(id, pending);
      ask();
    });
  }

  /** Asks for what came before the first entry that is here; tells `arrived` just before it is there. */
  async readEarlier(arrived: () => void): Promise<void> {
    const first = this.state?.entries[0];
    const { entries = [] } = await this.request("read_entries", { before: this.state?.earlier ?? 0 });
    // A snapshot that came meanwhile begins elsewhere.
    if (!this.state || this.state.entries[0] !== first || entries.length === 0) return;
    arrived();
    this.#set({ ...this.state, entries: [...entries, ...this.state.entries], earlier: this.state.earlier - entries.length });
  }

  tell(message: object): void {
    this.transport.send(message);
  }

  receive(message: FromKernel): void {
    this.#hush(false);
    switch (message.type) {
      case "snapshot":
        // One that was overtaken knows less than this page; on a new way none was.
        if (this.state && message.seq < this.#seq && !this.#anew) return;
        this.#answered();
        this.#seq = message.seq;
        this.#set(message.state);
        break;
      case "events":
        this.#apply(message);
        break;
      case "reply":
        this.#take(message.id)?.resolve(message);
        break;
      case "error":
        this.#take(message.id)?.reject(new RequestError(message.kind, message.message, message.tool_call_id));
        break;
      case "closed":
        this.close();
        break;
    }
  }

  /** The kernel or the session is gone: nothing can be asked any more. */
  close(ended = false): void {
    this.lost ||= ended;
    clearTimeout(this.#retry);
    this.silent = false;
    this.open = false;
    for (const id of [...this.#pending.keys()]) this.#take(id)!.reject(new RequestError("Closed", this.transport.gone));
    if (this.state) this.#set({ ...this.state, status: "closed", interrupt: null, partial: null });
    else this.#notify();
  }

  #apply({ after, seq, events }: Extract<FromKernel, { type: "events" }>): void {
    if (!this.state) return;
    if (after === this.#seq) {
      this.#answered();
      this.#seq = seq;
      if (events.length > 0) this.#set(events.reduce(reduce, this.state));
    } else if (seq > this.#seq) {
      // Something is missing. What is not new another page of this kernel asked for.
      this.catchUp();
    }
  }

  /** Asks for what this page has not. */
  catchUp(): void {
    if (this.open && !this.#asked) this.#hello(this.#seq);
  }

  lose(): void {
    if (this.open) this.#hush(true);
  }

  /** Asks again for all that was asked on the way before. */
  regain(): void {
    if (!this.open) return;
    this.#answered();
    this.#anew = true;
    this.#hello(this.#seq);
    for (const { again, ask } of this.#pending.values()) {
      clearTimeout(again);
      ask();
    }
  }

  change(): void {
    this.#notify();
  }

  #answered(): void {
    clearTimeout(this.#retry);
    this.#asked = this.#anew = false;
  }

  #hello(have: number): void {
    this.#asked = true;
    this.#persistently(() => this.tell({ type: "hello", have }), (timer) => (this.#retry = timer));
  }

  /** Tells the kernel now and, until the timer is cleared, again: a blocked kernel answers late, a broken connection never. */
  #persistently(tell: () => void, keep: (timer: ReturnType<typeof setTimeout>) => void, patience = FIRST_PATIENCE): void {
    const next = Math.min(2 * patience, LONGEST_PATIENCE);
    const again = () => {
      this.#hush(true);
      this.#persistently(tell, keep, next);
    };
    keep(setTimeout(again, patience));
    tell();
  }

  #hush(silent: boolean): void {
    if (this.silent === silent) return;
    this.silent = silent;
    this.#notify();
  }

  #take(id: string): Pending | undefined {
    const pending = this.#pending.get(id);
    clearTimeout(pending?.again);
    this.#pending.delete(id);
    return pending;
  }

  #set(state: ViewState): void {
    this.state = state;
    this.#notify();
  }

  #notify(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      for (const notify of this.#subscribers) notify();
    });
  }
}

const stores = new WeakMap<AnyModel, Store>();

/** The store of a session model; the first call makes it, and it says hello. */
export function storeFor(source: Source): Store {
  let store = stores.get(source.model);
  if (!store) {
    store = new Store(new Comm(source.model));
    stores.set(source.model, store);
    const early = source.early ?? [];
    source.early = null;
    for (const message of early) store.receive(message as FromKernel);
  }
  return store;
}
