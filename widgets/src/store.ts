// One store per session model and page: it knows the view state, keeps it in step with the
// kernel, and carries requests. Views only read it and ask it.
import type { AnyModel } from "@anywidget/types";
import { insertCell } from "./cells";
import { controlOf, whenBack, whenLeft } from "./control";
import { drawDiagram, type Diagram } from "./diagrams";
import type { Source } from "./loader";
import { askAgain, takePart } from "./parts";
import { reduce, type FromKernel, type Reply, type ViewState } from "./protocol";
import { whenCellRuns } from "./runs";

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
  /** Asks again, with the same id, so that the kernel does it once. */
  again: ReturnType<typeof setTimeout> | undefined;
};

const GONE = "This conversation is closed; run the cell again to continue.";
/** Levels of lists and objects. A kernel may be unable to read more, and then it gives no answer. */
const DEEPEST = 99;
const isDeep = (value: unknown, levels: number): boolean =>
  value !== null && typeof value === "object" && (levels === 0 || Object.values(value).some((inner) => isDeep(inner, levels - 1)));

const FIRST_PATIENCE = 10_000;
const LONGEST_PATIENCE = 60_000;

export class Store {
  state: ViewState | null = null;
  /** Whether the kernel can still be asked for something. */
  open = true;
  /** Whether the kernel itself is gone, and not only the session closed. */
  lost = false;
  /** Whether it has not answered for so long that it was asked again. */
  silent = false;
  #seq = 0;
  #asked = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #pending = new Map<string, Pending>();
  #subscribers = new Set<() => void>();
  #frame = 0;
  // `crypto.randomUUID` is missing on plain http, where many hubs live.
  #prefix = Math.random().toString(36).slice(2, 10);
  #count = 0;

  constructor(private model: AnyModel) {
    model.on("msg:custom", (message: FromKernel, buffers?: DataView[]) => {
      takePart(message, buffers);
      this.receive(message);
    });
    model.on("destroy", () => this.close());
    const lose = () => {
      this.lost = true;
      this.close();
    };
    // A comm is alive from the start and never comes back, so this is its end: a kernel's restart.
    model.on("comm_live_update", lose);
    whenLeft(model, lose);
    controlOf(model)?.whenItWorks(() => {
      this.#notify();
      askAgain(); // on the first way a kernel that computes has not heard it
    });
    // What was said while the line was broken, or the machine slept, may be lost, and nothing tells.
    whenBack(model, () => this.#catchUp());
    whenCellRuns(model, (ran) => {
      if (this.open) this.tell(ran);
      return this.open;
    });
    this.#hello(0);
  }

  subscribe(notify: () => void): () => void {
    this.#subscribers.add(notify);
    return () => this.#subscribers.delete(notify);
  }

  /** Sends a request; resolves with its reply, rejects with a `RequestError`. */
  request(type: string, fields: object = {}): Promise<Reply> {
    if (!this.open) return Promise.reject(new RequestError("Closed", GONE));
    if (isDeep(fields, DEEPEST)) return Promise.reject(new RequestError("TooDeep", "This nests too deep to be sent."));
    const id = `${this.#prefix}-${++this.#count}`;
    return new Promise((resolve, reject) => {
      const pending: Pending = { resolve, reject, again: undefined };
      this.#pending.set(id, pending);
      this.#persistently(() => this.tell({ type, id, ...fields }), (timer) => (pending.again = timer));
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

  /** Puts a cell below the one of `element`; whether that was possible. */
  insertCell(element: Element, source: string): boolean {
    return insertCell(this.model, element, source);
  }

  /** The image of a diagram; null where the host draws none. */
  drawDiagram(source: string): Promise<Diagram | null> {
    return drawDiagram(this.model, source);
  }

  /** Whether a kernel that computes hears what this page says. */
  get heardWhileBusy(): boolean {
    return controlOf(this.model)?.works ?? false;
  }

  /** Tells the kernel something, on the way on which it hears most. */
  tell(message: object): void {
    const control = controlOf(this.model);
    if (control?.works) control.send({ ...message, session_id: this.model.get("session_id") });
    else this.model.send(message);
  }

  receive(message: FromKernel): void {
    this.#hush(false);
    switch (message.type) {
      case "snapshot":
        // One that was overtaken knows less than this page.
        if (this.state && message.seq < this.#seq) return;
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
  close(): void {
    clearTimeout(this.#retry);
    this.silent = false;
    this.open = false;
    for (const id of [...this.#pending.keys()]) this.#take(id)!.reject(new RequestError("Closed", GONE));
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
      this.#catchUp();
    }
  }

  /** Asks for what this page has not. */
  #catchUp(): void {
    if (this.open && !this.#asked) this.#hello(this.#seq);
  }

  #answered(): void {
    clearTimeout(this.#retry);
    this.#asked = false;
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
    store = new Store(source.model);
    stores.set(source.model, store);
    const early = source.early ?? [];
    source.early = null;
    for (const message of early) store.receive(message as FromKernel);
  }
  return store;
}
