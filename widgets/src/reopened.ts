// An extension of JupyterLab and Notebook 7, which comes with the package.
//
// A widget lives as long as its kernel. Of a notebook that is opened after its end they show "Error
// displaying widget: model not found" where a panel was, and nothing of the transcript beside it
// (ipywidgets issues 1664 and 3823). So panels that no kernel knows become their transcript: at once
// where none runs for the notebook, which spares the page the error, and the reader the time in
// which a new kernel starts.

//
// And a notebook that is opened while a cell of it waits for somebody, in a second tab say, may have
// been saved before: what that cell shows is put there, so that it can be answered.
//
// On a busy machine the same error is shown of panels that their kernel has. ipywidgets looks for a
// model during 2 s, every 100 ms; of models that all come between its last look and the end of that
// time it finds that they are loaded, hence that this one does not exist, and looks no more (8.1.8:
// `get_model` of the manager's base, `renderModel` of WidgetRenderer). Such panels are drawn again.

type Output = {
  data: Record<string, unknown>;
  toJSON(): { data: Record<string, unknown> };
};
type Cell = {
  id?: string;
  sharedModel?: { getSource(): string };
  outputs?: { length: number; trusted: boolean; get(index: number): Output; set(index: number, output: object): void; clear(): void; add(output: object): unknown };
};
type Waiting = { cell: string; data: Record<string, unknown> };
type Comm = {
  subshellStarted?: Promise<void>;
  onMsg: (message: { content: { data: { cells?: Waiting[] } } }) => void;
  open(): unknown;
  send(data: object): unknown;
  close(): unknown;
};
type Kernel = {
  connectionStatus: string;
  supportsSubshells?: boolean;
  createComm(target: string): Comm;
  requestCommInfo(content: { target_name: string }): Promise<{ content: { status: string; comms?: object } }>;
};
/** As much as is needed of JupyterLab's `DocumentRegistry.IContext`. */
export type Context = {
  path: string;
  ready: Promise<void>;
  model: { dirty: boolean; cells: Iterable<Cell> };
  sessionContext: {
    ready: Promise<void>;
    session: { kernel: Kernel | null } | null;
    connectionStatusChanged: { connect(hear: () => void): unknown; disconnect(hear: () => void): unknown };
  };
};
/** As much as is needed of its `NotebookPanel`. */
export type Notebook = { node: Node; content: { widgets: readonly { node: Node }[] } };
/** As much as is needed of its `Session.IManager`. */
export type Sessions = { refreshRunning(): Promise<void>; running(): Iterable<{ path: string }> };
type Application = {
  serviceManager: { sessions: Sessions };
  docRegistry: { addWidgetExtension(factory: string, extension: { createNew(notebook: Notebook, context: Context): void }): unknown };
};

const VIEW = "application/vnd.jupyter.widget-view+json";
const idOf = (data: Record<string, unknown>) => (data[VIEW] as { model_id?: string } | undefined)?.model_id;
const OURS = /^<Panel '\w+' of session /;

const MISSING = "Error displaying widget: model not found";

/** The panels of a notebook, by their models: an output, the list that it is in, and where. */
function* panelsOf({ model }: Context, cells: Iterable<Cell> = model.cells) {
  for (const { outputs } of cells) {
    for (let i = 0; i < (outputs?.length ?? 0); i++) {
      const { data } = outputs!.get(i);
      const id = idOf(data);
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

/** Draws panels again, each once, of which ipywidgets says that there is no model. */
export function drawAgain({ node, content }: Notebook, context: Context): void {
  const drawn = new Set<string>();
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      if ((addedNodes[0] as Text | undefined)?.data !== MISSING) continue;
      const at = content.widgets.findIndex((cell) => cell.node.contains(target));
      const { dirty } = context.model;
      for (const { id, outputs, i } of panelsOf(context, [...context.model.cells].slice(at, at + 1))) {
        if (drawn.has(id)) continue;
        drawn.add(id);
        (target as Element).classList.remove("jupyter-widgets"); // which only the error has
        outputs.set(i, outputs.get(i).toJSON());
      }
      context.model.dirty = dirty;
    }
  }).observe(node, { childList: true, subtree: true });
}

/** Shows what cells of that notebook wait for, where this page has an older save of it. */
export async function showWaiting(context: Context, sessions: Sessions): Promise<void> {
  await context.ready;
  const ours = [...context.model.cells].some((cell) => cell.sharedModel?.getSource().includes("sagents_nb"));
  if (!ours || !(await mayRun(context, sessions))) return;
  const { sessionContext } = context;
  // Not when it is ready, which it is once its kernel tells what it is: after the cell.
  const ask = () => {
    const { kernel } = sessionContext.session ?? {};
    if (kernel?.connectionStatus !== "connected") return;
    sessionContext.connectionStatusChanged.disconnect(ask);
    askWhatWaits(context, kernel).catch(console.warn);
  };
  sessionContext.connectionStatusChanged.connect(ask);
  ask();
}

async function askWhatWaits(context: Context, kernel: Kernel): Promise<void> {
  const comm = kernel.createComm("sagents.control");
  comm.onMsg = ({ content: { data } }) => {
    const { dirty } = context.model;
    for (const { cell, data: shown } of data.cells ?? []) {
      const outputs = [...context.model.cells].find(({ id }) => id === cell)?.outputs;
      if (!outputs || [...Array(outputs.length).keys()].some((i) => idOf(outputs.get(i).toJSON().data ?? {}) === idOf(shown))) continue;
      outputs.clear();
      outputs.trusted = true; // as of a cell that was run: the kernel has just told it
      outputs.add({ output_type: "display_data", data: shown, metadata: {} });
    }
    context.model.dirty = dirty;
    comm.close();
  };
  // Of a kernel that has not told yet what it is that never comes; while its cell waits, it hears this.
  if (kernel.supportsSubshells) await comm.subshellStarted;
  comm.open();
  comm.send({ type: "waiting" });
}

const plugin = {
  id: "sagents-nb:reopened",
  autoStart: true,
  activate: ({ docRegistry, serviceManager: { sessions } }: Application) =>
    void docRegistry.addWidgetExtension("Notebook", {
      createNew: (notebook, context) => {
        drawAgain(notebook, context);
        showTranscripts(context, sessions).catch(console.warn);
        showWaiting(context, sessions).catch(console.warn);
      },
    }),
};

// What module federation calls a container; nothing is shared.
const containers = ((globalThis as { _JUPYTERLAB?: Record<string, object> })._JUPYTERLAB ??= {});
containers["sagents-nb"] = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) };
