// An extension of JupyterLab and Notebook 7, which comes with the package.
//
// A widget lives as long as its kernel. Of a notebook that is opened after its end they show "Error
// displaying widget: model not found" where a panel was, and nothing of the transcript beside it
// (ipywidgets issues 1664 and 3823). So panels that no kernel knows become their transcript.

type Output = {
  data: Record<string, unknown>;
  toJSON(): { data: Record<string, unknown> };
};
type Cell = {
  type: string;
  outputs?: { length: number; get(index: number): Output; set(index: number, output: object): void };
};
type Kernel = {
  requestCommInfo(content: { target_name: string }): Promise<{ content: { status: string; comms?: object } }>;
};
/** As much as is needed of JupyterLab's `DocumentRegistry.IContext`. */
export type Context = {
  ready: Promise<void>;
  model: { dirty: boolean; cells: Iterable<Cell> };
  sessionContext: { ready: Promise<void>; session: { kernel: Kernel | null } | null };
};
type Application = {
  docRegistry: { addWidgetExtension(factory: string, extension: { createNew(panel: unknown, context: Context): void }): unknown };
};

const VIEW = "application/vnd.jupyter.widget-view+json";
const OURS = /^<Panel '\w+' of session /;

/** The panels of a notebook, by their models: an output, the list that it is in, and where. */
function* panelsOf(context: Context) {
  for (const { outputs } of context.model.cells) {
    for (let i = 0; i < (outputs?.length ?? 0); i++) {
      const { data } = outputs!.get(i);
      const id = (data[VIEW] as { model_id?: string } | undefined)?.model_id;
      if (id && "text/markdown" in data && OURS.test(String(data["text/plain"]))) yield { id, outputs: outputs!, i };
    }
  }
}

/** The models that the kernel has; none without one. */
async function alive(context: Context): Promise<object> {
  await context.sessionContext.ready;
  const kernel = context.sessionContext.session?.kernel;
  return (kernel && (await kernel.requestCommInfo({ target_name: "jupyter.widget" })).content.comms) || {};
}

/** Shows the transcripts of those panels that were there when the notebook was opened, and have no kernel. */
export async function showTranscripts(context: Context): Promise<void> {
  await context.ready;
  const opened = new Set([...panelsOf(context)].map(({ id }) => id));
  if (opened.size === 0) return;
  const comms = await alive(context);
  const { dirty } = context.model;
  for (const { id, outputs, i } of [...panelsOf(context)]) {
    if (!opened.has(id) || id in comms) continue;
    const output = outputs.get(i).toJSON();
    const { [VIEW]: _, ...data } = output.data;
    outputs.set(i, { ...output, data });
  }
  context.model.dirty = dirty; // nobody has changed anything
}

const plugin = {
  id: "sagents-nb:reopened",
  autoStart: true,
  activate: ({ docRegistry }: Application) =>
    void docRegistry.addWidgetExtension("Notebook", { createNew: (_, context) => void showTranscripts(context).catch(console.warn) }),
};

// What module federation calls a container; nothing is shared.
const containers = ((globalThis as { _JUPYTERLAB?: Record<string, object> })._JUPYTERLAB ??= {});
containers["sagents-nb"] = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) };
