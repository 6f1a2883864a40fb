// The way on which a kernel that computes hears commands: a comm of our own.
//
// JupyterLab and Notebook 7 give the messages of each comm target to a subshell, a thread of its
// own. But ipykernel 7.4 takes those of a comm on which a cell has published to the thread where
// that cell runs (ipykernel PR 1565), and on the comms of widgets cells publish all the time. So
// what happens comes in on the widget's comm, and commands go out on this one where that works.
import type { AnyModel } from "@anywidget/types";

type Comm = {
  isDisposed: boolean;
  /** When its subshell is there, in JupyterLab 4.4 and newer; never where they are switched off. */
  subshellStarted?: Promise<void>;
  onMsg: () => void;
  open(): unknown;
  send(data: object): unknown;
};
/** As much as is needed of JupyterLab's `Kernel.IKernelConnection`. */
type Kernel = {
  id?: string;
  supportsSubshells?: boolean;
  createComm(target: string): Comm;
  isDisposed?: boolean;
  disposed?: { connect(hear: () => void): unknown };
  connectionStatusChanged?: { connect(hear: (kernel: unknown, status: string) => void): unknown };
};

const TARGET = "sagents.control";
const FIRST_PATIENCE = 500;
const LONGEST_PATIENCE = 30_000;

export class Control {
  /** Whether the kernel has answered on another thread than the one that runs cells. */
  works = false;
  #comm: Comm;
  #waiting: (() => void)[] = [];

  constructor(kernel: Kernel) {
    this.#comm = kernel.createComm(TARGET);
    this.#comm.onMsg = () => {
      this.works = true;
      for (const tell of this.#waiting.splice(0)) tell();
    };
    const { subshellStarted } = this.#comm;
    if (subshellStarted) subshellStarted.then(() => this.#open()).catch(console.warn);
    else this.#open();
  }

  // On its subshell, so that also a kernel that computes learns of it: else that does not hear what
  // is clicked in the first panel of a page before the cell ends that shows it.
  #open(): void {
    if (this.gone) return;
    this.#comm.open();
    this.#ping(FIRST_PATIENCE);
  }

  get gone(): boolean {
    return this.#comm.isDisposed;
  }

  /** Calls `tell` once it works, if that is later. */
  whenItWorks(tell: () => void): void {
    if (!this.works) this.#waiting.push(tell);
  }

  send(message: object): void {
    this.#comm.send(message);
  }

  // Of a kernel that has not registered the target yet a first ping is lost, and one on the cells'
  // thread is not answered.
  #ping(patience: number): void {
    if (this.works || this.gone) return;
    this.#comm.send({ type: "ping" });
    setTimeout(() => this.#ping(Math.min(2 * patience, LONGEST_PATIENCE)), patience);
  }
}

const controls = new WeakMap<Kernel, Control>();

/** The page's connection to the kernel, where it has one. */
export const kernelOf = (model: AnyModel): Kernel | undefined =>
  (model as { widget_manager?: { kernel?: Kernel } }).widget_manager?.kernel;

/** That of the kernel which the model lives in: one a page; null in hosts that have none, and once the page has left it. */
export function controlOf(model: AnyModel): Control | null {
  const kernel = kernelOf(model);
  if (typeof kernel?.createComm !== "function" || kernel.supportsSubshells === false || kernel.isDisposed) return null;
  const known = controls.get(kernel);
  if (known && !known.gone) return known;
  const control = new Control(kernel);
  controls.set(kernel, control);
  return control;
}

/** Calls `tell` whenever the page is connected to the kernel again, or people look at it again. */
export function whenBack(model: AnyModel, tell: () => void): void {
  kernelOf(model)?.connectionStatusChanged?.connect((_, status) => status === "connected" && tell());
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && tell());
}

/** Calls `tell` when the page leaves the kernel for good, as when its notebook is closed: what is sent then is an error. */
export function whenLeft(model: AnyModel, tell: () => void): void {
  kernelOf(model)?.disposed?.connect(() => tell());
}
