// Diagrams in Mermaid, drawn by the host where it can: JupyterLab registers a renderer of its own.
// Only the image that it makes gets into the page, where nothing in it runs or loads. But while it
// draws, Mermaid puts the diagram into the page itself, so what could ask a server for something,
// and would tell it what the model knows, is not handed to it: that is shown as the code it is.
import type { AnyModel } from "@anywidget/types";

const MIME = "text/vnd.mermaid";
/** Characters: laying out takes time by more than the square. */
const LONGEST = 8_000;

/** As much as is needed of JupyterLab's `IRenderMimeRegistry`. */
type RenderMime = {
  getFactory?(type: string): unknown;
  createRenderer(type: string): { node: HTMLElement; renderModel(model: unknown): Promise<void>; dispose(): void };
  createModel(options: { data: Record<string, string>; trusted: boolean }): unknown;
};

const FOREIGN = [
  /\/\/|\b(?:https?|data|javascript):/i, // addresses
  /\b(?:url|src|image|image-set|cross-fade|attr)\s*\(|@\s*import/i, // CSS that loads
  /\\(?!n)|&(?:#|\w+;)|#\w+;/, // ways to write these otherwise
  /@\s*\{|%%\s*\{|^\s*---/, // data of a node, such as its image, and settings, such as style sheets
  /<(?!(?:br\s*\/?|\/?[bi])>)[a-z!/?]/i, // HTML
];

/** Whether a diagram is text and shapes, and nothing of it is to be fetched. */
export function isPlainDiagram(source: string): boolean {
  const text = source.replace(/<<\w+>>/g, "");
  return source.length <= LONGEST && !FOREIGN.some((form) => form.test(text));
}

/** The image of a diagram, as wide as it was drawn, in pixels. */
export type Diagram = { src: string; width?: number };

/** The image of a diagram; null where the host draws none, or not this one. */
export async function drawDiagram(model: AnyModel, source: string): Promise<Diagram | null> {
  const { rendermime } = (model as { widget_manager?: { rendermime?: RenderMime } }).widget_manager ?? {};
  if (!rendermime?.getFactory?.(MIME) || !isPlainDiagram(source)) return null;
  const renderer = rendermime.createRenderer(MIME);
  try {
    await renderer.renderModel(rendermime.createModel({ data: { [MIME]: source }, trusted: false }));
    const { src = "", width = 0 } = renderer.node.querySelector("img") ?? {};
    return src.startsWith("data:image/svg+xml,") ? { src, width: width || undefined } : null;
  } catch (error) {
    console.error("[sagents_nb]", error);
    return null;
  } finally {
    renderer.dispose();
  }
}
