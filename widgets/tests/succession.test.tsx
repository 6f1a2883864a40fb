// A view that JupyterLab draws anew, as it does with each change of an output, goes on as it was.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { emptyState } from "../dev/scenes";
import { el, model, one, settle, show, type } from "./page";
import { render } from "../src/panel";

/** Tells of an element once it is on the page. */
class OnThePage {
  #over = false;
  constructor(private tell: (entries: object[]) => void) {}
  observe(element: Element): void {
    if (this.#over) return;
    if (element.isConnected) this.tell([{ contentRect: { width: 500 } }]);
    else setTimeout(() => this.observe(element), 1);
  }
  disconnect(): void {
    this.#over = true;
  }
}
beforeAll(() => void vi.stubGlobal("ResizeObserver", OnThePage));
afterAll(() => void vi.unstubAllGlobals());

/** A further element that shows the same. */
function drawn(): HTMLElement {
  const next = document.createElement("div");
  render({ model: model.asModel(), source: { model: model.asModel(), early: null }, el: next, signal: new AbortController().signal });
  return next;
}

/** What the jupyterlab-manager does: a word takes the place of the view, and some time later the next view that of the word. */
async function drawAnew(place: Element): Promise<HTMLElement> {
  place.textContent = "Loading widget...";
  await settle();
  expect(place.textContent).not.toContain("Loading"); // meanwhile it is there
  const next = drawn();
  await settle();
  expect(next.childNodes).toHaveLength(0); // what will be here is not drawn twice
  place.textContent = "";
  place.append(next);
  await settle();
  return next;
}

test("the draft, the caret and the focus are there each time", async () => {
  const page = el.parentElement!;
  const place = page.appendChild(document.createElement("div"));
  place.append(el);
  await show(emptyState());
  const composer = one("composer") as HTMLTextAreaElement;
  composer.focus();
  await type(composer, "How many?");
  composer.setSelectionRange(3, 3);
  for (const _ of [1, 2]) {
    const next = await drawAnew(place);
    expect([...place.children]).toEqual([next]);
    expect(next.querySelectorAll(".sagents-panel")).toHaveLength(1);
    expect(next.contains(composer)).toBe(true);
    expect(document.activeElement).toBe(composer);
    expect([composer.value, composer.selectionStart]).toEqual(["How many?", 3]);
  }
  place.remove();
});

test("what its host takes away for good, or puts elsewhere, is left to it", async () => {
  const place = document.body.appendChild(document.createElement("div"));
  place.append(el);
  await show(emptyState());
  place.textContent = "Error displaying widget: model not found";
  await settle();
  expect(place.textContent).toContain("Error");
  document.body.append(el);
  await settle();
  expect(el.parentElement).toBe(document.body);
  place.remove();
});

test("a view that is shown somewhere else while one is drawn anew is drawn there", async () => {
  const place = document.body.appendChild(document.createElement("div"));
  place.append(el);
  await show(emptyState());
  place.textContent = "Loading widget...";
  await settle();
  const other = document.body.appendChild(drawn());
  await settle();
  for (const each of [el, other]) expect(each.querySelectorAll(".sagents-panel")).toHaveLength(1);
  document.body.append(el);
  place.remove();
  other.remove();
});
