// An extension of JupyterLab and Notebook 7, which comes with the package.
//
// A widget lives as long as its kernel. Of a notebook that is opened after its end they show "Error
// displaying widget: model not found" where a panel was, and nothing of the transcript beside it
// (ipywidgets issues 1664 and 3823). So panels that no kernel knows become their transcript: at once
// where none runs for the notebook, which spares the page the error, and the reader the time in
// which a new kernel starts.

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
  path: string;
  ready: Promise<void>;
  model: { dirty: boolean; cells: Iterable<Cell> };
  sessionContext: { ready: Promise<void>; session: { kernel: Kernel | null } | null };
};
/** As much as is needed of its `Session.IManager`. */
export type Sessions = { refreshRunning(): Promise<void>; running(): Iterable<{ path: string }> };
type Application = {
  serviceManager: { sessions: Sessions };
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

/** Whether a kernel may run for the notebook: a drive may be named before its path, or not. */
async function mayRun({ path }: Context, sessions: Sessions): Promise<boolean> {
  await sessions.refreshRunning();
  const name = path.split("/").pop()!;
  return [...sessions.running()].some((session) => session.path.includes(name));
}

/** The models that the notebook's kernel has; none without one. */
async function alive(context: Context, sessions: Sessions): Promise<object> {
  if (!(await mayRun(context, sessions).catch(() => true))) return {};
  await context.sessionContext.ready;
  const kernel = context.sessionContext.session?.kernel;
  return (kernel && (await kernel.requestCommInfo({ target_name: "jupyter.widget" })).content.comms) || {};
}

/** Shows the transcripts of those panels that were there when the notebook was opened, and have no kernel. */
export async function showTranscripts(context: Context, sessions: Sessions): Promise<void> {
  await context.ready;
  const opened = new Set([...panelsOf(context)].map(({ id }) => id));
  if (opened.size === 0) return;
  const comms = await alive(context, sessions);
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
  activate: ({ docRegistry, serviceManager: { sessions } }: Application) =>
    void docRegistry.addWidgetExtension("Notebook", {
      createNew: (_, context) => void showTranscripts(context, sessions).catch(console.warn),
    }),
};

// What module federation calls a container; nothing is shared.
const containers = ((globalThis as { _JUPYTERLAB?: Record<string, object> })._JUPYTERLAB ??= {});
containers["sagents-nb"] = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) };
