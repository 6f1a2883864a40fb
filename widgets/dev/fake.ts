// A session model without a kernel: it answers what the panel asks from a given state.
import type { AnyModel } from "@anywidget/types";
import type { ChangedFile, FileContent, FromKernel, ViewState, WireEvent } from "../src/protocol";

type Sent = { type: string; id?: string; [field: string]: unknown };

export class FakeModel {
  sent: Sent[] = [];
  files: Record<string, string | null> = {};
  /** What is told of a file besides. */
  about: Record<string, Partial<FileContent>> = {};
  changes: ChangedFile[] = [];
  /** Called for each message of the panel; the default answers like a willing kernel. */
  answer: (message: Sent) => void = (message) => this.reply(message);
  #listeners = new Map<string, Set<(...args: never[]) => void>>();
  #seq = 1;

  constructor(
    public state: ViewState,
    private traits: Record<string, unknown> = {},
  ) {}

  get = (name: string) => this.traits[name];
  on = (name: string, callback: (...args: never[]) => void) => {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(callback));
  };
  off = (name: string, callback: (...args: never[]) => void) => {
    this.#listeners.get(name)?.delete(callback);
  };
  send = (message: Sent) => {
    this.sent.push(message);
    this.answer(message);
  };

  receive(message: FromKernel | { type: "bundle" | "math" | "colours" }, buffers: DataView[] = []): void {
    this.fire("msg:custom", message, buffers);
  }

  change(trait: string, value: unknown): void {
    this.traits[trait] = value;
    this.fire(`change:${trait}`);
  }

  fire(name: string, ...args: unknown[]): void {
    for (const callback of this.#listeners.get(name) ?? []) (callback as Function)(...args);
  }

  events(events: WireEvent[]): void {
    const after = this.#seq;
    this.#seq = Math.max(after + 1, ...events.map((event) => event.seq));
    this.receive({ type: "events", after, seq: this.#seq, events });
  }

  reply(message: Sent): void {
    const id = message.id ?? "";
    if (message.type === "hello") {
      setTimeout(() => this.receive({ type: "snapshot", seq: this.#seq, state: this.state }));
    } else if (message.type === "read_file") {
      const path = String(message.path);
      const whole = this.files[path] ?? null;
      const content = whole?.slice(0, 200_000) ?? null;
      const data = message.whole && whole !== null ? { data: base64(whole) } : {};
      const file = { path, content, size: whole?.length ?? 48_213, truncated: content !== whole, ...this.about[path], ...data };
      setTimeout(() => this.receive({ type: "reply", id, file }));
    } else if (message.type === "read_changes") {
      const changes = this.changes.map(({ path, kind }) => ({ path, kind }));
      setTimeout(() => this.receive({ type: "reply", id, changes }));
    } else if (message.type === "read_change") {
      const change = this.changes.find(({ path }) => path === message.path);
      setTimeout(() => this.receive({ type: "reply", id, change }));
    } else if (message.type === "models") {
      const models = [
        { name: "", label: this.state.model, missing: "", current: true },
        { name: "anthropic:claude-sonnet-5-5", label: "anthropic:claude-sonnet-5-5", missing: "ANTHROPIC_API_KEY", current: false },
        { name: "demo", label: "demo", missing: "", current: false },
      ];
      setTimeout(() => this.receive({ type: "reply", id, models }));
    } else if (message.type === "fork") {
      setTimeout(() => this.receive({ type: "reply", id, session_id: "study-fork", code: "%agent load study-fork" }));
    } else if (id) {
      setTimeout(() => this.receive({ type: "reply", id }));
    }
  }

  asModel(): AnyModel {
    return this as unknown as AnyModel;
  }
}

const base64 = (text: string) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
