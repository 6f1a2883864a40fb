// What a store needs of the way to its session: the comm of a notebook, or a socket of a hub.
import type { Diagram } from "./diagrams";
import type { FromKernel } from "./protocol";

/** Who is told of what comes on that way, and of the way itself. */
export interface Listener {
  /** Whether anything can still be asked for. */
  readonly open: boolean;
  receive(message: FromKernel): void;
  /** Something that was said may have been missed, and nothing tells. */
  catchUp(): void;
  /** The way is broken: what was said last may be lost, and what is said now is. */
  lose(): void;
  /** It is there again, a new one. */
  regain(): void;
  /** The session is gone for good; `ended` where who had it is gone, too. */
  close(ended?: boolean): void;
  /** What the transport says of itself is other now. */
  change(): void;
}

export interface Transport {
  /** What is at the other end, in a word. */
  readonly host: "kernel" | "hub";
  /** Whether that hears what is said while it is at work. */
  readonly heardWhileBusy: boolean;
  /** What people are told who ask for something after the end. */
  readonly gone: string;
  /** And those who get no answer. */
  readonly silent: string;
  /** Tells `listener` from now on; once. */
  listen(listener: Listener): void;
  /** Says something; whether it was heard shows by what is answered. */
  send(message: object): void;
  /** Puts a cell below the one of `element`; whether that was possible. */
  insertCell(element: Element, source: string): boolean;
  /** The image of a diagram; null where none is drawn. */
  drawDiagram(source: string): Promise<Diagram | null>;
}
