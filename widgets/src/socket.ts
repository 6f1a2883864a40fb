// A socket of a hub: the way between a page and a thread. It breaks, and comes back by itself.
import type { Diagram } from "./diagrams";
import type { FromKernel } from "./protocol";
import type { Listener, Transport } from "./transport";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
/** The code of a hub that is to be left alone for a moment: it could not tell all that it had. */
const TRY_LATER = 1013;
const LATER = 4_000;
/** A line that says nothing for so long after a question is broken, whatever the browser believes; a hub has as much with a page. */
const PATIENCE = 30_000;

/** Bytes of a message: a hub closes a socket on which more comes, each time that it is said again. */
const MOST_BYTES = 1_048_576;

const OPEN = 1;
const SILENT = "The hub does not answer; it is tried again. What was sent meanwhile goes out once it does.";

export class Socket implements Transport {
  readonly host = "hub";
  readonly heardWhileBusy = true;
  readonly gone = "This thread is closed, or was deleted.";
  silent = SILENT;
  #listener!: Listener;
  #socket: WebSocket | null = null;
  #pause = FIRST_PAUSE;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Since when an answer is waited for. */
  #asked = 0;
  #ended = false;

  /** `connect` makes a socket; of one that was refused `isThere` tells whether the thread is, or throws why not. */
  constructor(
    private connect: () => WebSocket,
    private isThere: () => Promise<boolean>,
  ) {}

  listen(listener: Listener): void {
    this.#listener = listener;
    document.addEventListener("visibilitychange", this.#look);
    addEventListener("online", this.#look);
    this.#open();
  }

  send(message: { id?: string }): void {
    const text = JSON.stringify(message);
    if (new TextEncoder().encode(text).length > MOST_BYTES) {
      const error = { type: "error" as const, id: message.id ?? "", kind: "TooLarge", message: "A hub takes 1 MB at once; send less, such as smaller images." };
      return void setTimeout(() => this.#listener.receive(error));
    }
    if (this.#socket?.readyState !== OPEN) return; // it is said again on the next one
    if (this.#asked && Date.now() - this.#asked >= PATIENCE) return this.#lost(FIRST_PAUSE);
    this.#asked ||= Date.now();
    this.#socket.send(text);
  }

  /** Leaves the thread: nothing is told any more. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#look);
    removeEventListener("online", this.#look);
    this.#drop();
  }

  insertCell(): boolean {
    return false;
  }

  async drawDiagram(): Promise<Diagram | null> {
    return null;
  }

  /** Somebody looks at the page again, or the machine is connected: now is better than later. */
  #look = (): void => {
    if (document.visibilityState !== "visible") return;
    if (this.#socket?.readyState === OPEN) this.#listener.catchUp();
    else if (!this.#socket) this.#open();
  };

  #open(): void {
    clearTimeout(this.#timer);
    const socket = (this.#socket = this.connect());
    let heard = false;
    socket.onopen = () => {
      this.silent = SILENT;
      this.#asked = 0;
      this.#listener.regain();
    };
    socket.onmessage = ({ data }) => {
      heard = true;
      this.#pause = FIRST_PAUSE;
      this.#asked = 0;
      this.#listener.receive(JSON.parse(data) as FromKernel);
      if (!this.#listener.open) this.end();
    };
    socket.onclose = ({ code }) => {
      this.#lost(code === TRY_LATER ? LATER : this.#pause);
      // Why a socket was refused a page is not told; what is between it and a hub may open one first.
      if (!heard) void this.#check();
    };
  }

  #lost(pause: number): void {
    this.#drop();
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
    // Not all pages of a hub that has begun anew come at the same moment.
    this.#timer = setTimeout(() => this.#open(), pause * (0.75 + Math.random() / 2));
    this.#listener.lose();
  }

  async #check(): Promise<void> {
    const there = await this.isThere().catch((error: Error) => {
      this.silent = error.message;
      this.#listener.change();
      return true; // nobody knows
    });
    if (there || this.#ended) return;
    this.end();
    this.#listener.close();
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}
