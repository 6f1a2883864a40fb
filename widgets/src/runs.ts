// Tells the kernel of each cell that this page runs, at once. One that is run again before it has
// ended loses its output, with the panel that it may wait for. The kernel puts that into the new
// output, but the request that would tell it of that comes up only at the end of the one before.
import type { AnyModel } from "@anywidget/types";
import { kernelOf } from "./control";

/** A cell by its id, and the request that runs it by that of its message. */
export type Ran = { type: "ran"; cell: string; request: string };
/** Tells the kernel; false if it cannot any more, and then it is not asked again. */
type Tell = (ran: Ran) => boolean;

type Message = { header: { msg_type: string; msg_id: string }; metadata?: { cellId?: unknown } };
/** As much as is needed of JupyterLab's `Kernel.IKernelConnection`. */
type Kernel = {
  anyMessage?: { connect(hear: (kernel: unknown, message: { direction: "send" | "recv"; msg: Message }) => void): unknown };
};

const tellers = new WeakMap<object, Set<Tell>>();

/** Has one of all that were given for a kernel called for each cell that this page runs there. */
export function whenCellRuns(model: AnyModel, tell: Tell): void {
  const kernel = kernelOf(model) as Kernel | undefined;
  if (!kernel?.anyMessage) return;
  const known = tellers.get(kernel);
  if (known) return void known.add(tell);
  const all = new Set([tell]);
  tellers.set(kernel, all);
  kernel.anyMessage.connect((_, { direction, msg: { header, metadata } }) => {
    if (direction !== "send" || header.msg_type !== "execute_request" || typeof metadata?.cellId !== "string") return;
    const ran: Ran = { type: "ran", cell: metadata.cellId, request: header.msg_id };
    for (const tell of all) {
      if (tell(ran)) break;
      all.delete(tell);
    }
  });
}
