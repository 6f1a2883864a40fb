// The comm of a session model: the way between a page and the kernel of its notebook.
import type { AnyModel } from "@anywidget/types";
import { insertCell } from "./cells";
import { controlOf, whenBack, whenLeft } from "./control";
import { drawDiagram, type Diagram } from "./diagrams";
import { askAgain, takePart } from "./parts";
import type { FromKernel } from "./protocol";
import { whenCellRuns } from "./runs";
import type { Listener, Transport } from "./transport";

export class Comm implements Transport {
  readonly host = "kernel";
  readonly gone = "This conversation is closed; run the cell again to continue.";
  readonly silent = "No answer from the kernel. It is busy, or was restarted from another page: then load this one again.";

  constructor(private model: AnyModel) {}

  get heardWhileBusy(): boolean {
    return controlOf(this.model)?.works ?? false;
  }

  listen(listener: Listener): void {
    const { model } = this;
    model.on("msg:custom", (message: FromKernel, buffers?: DataView[]) => {
      takePart(message, buffers);
      listener.receive(message);
    });
    model.on("destroy", () => listener.close());
    const end = () => listener.close(true);
    // A comm is alive from the start and never comes back, so this is its end: a kernel's restart.
    model.on("comm_live_update", end);
    whenLeft(model, end);
    controlOf(model)?.whenItWorks(() => {
      listener.change();
      askAgain(); // on the first way a kernel that computes has not heard it
    });
    // What was said while the line was broken, or the machine slept, may be lost, and nothing tells.
    whenBack(model, () => listener.catchUp());
    whenCellRuns(model, (ran) => {
      if (listener.open) this.send(ran);
      return listener.open;
    });
  }

  /** On the way on which the kernel hears most. */
  send(message: object): void {
    const control = controlOf(this.model);
    if (control?.works) control.send({ ...message, session_id: this.model.get("session_id") });
    else this.model.send(message);
  }

  insertCell(element: Element, source: string): boolean {
    return insertCell(this.model, element, source);
  }

  drawDiagram(source: string): Promise<Diagram | null> {
    return drawDiagram(this.model, source);
  }
}
