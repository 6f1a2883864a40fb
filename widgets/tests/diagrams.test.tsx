// Diagrams in Mermaid: what is drawn, by whom, and what is not handed to be drawn.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { isPlainDiagram } from "../src/diagrams";
import { click, el, find, model, one, said, settle, show } from "./page";

const IMAGE = "data:image/svg+xml,%3Csvg%2F%3E";

/** A host that draws what it is given as that address. */
function host(address: string | Error) {
  const given: unknown[] = [];
  const rendermime = {
    getFactory: (type: string) => (type === "text/vnd.mermaid" ? {} : undefined),
    createModel: (options: object) => options,
    createRenderer: () => ({
      node: document.createElement("div"),
      async renderModel(options: { data: Record<string, string> }) {
        given.push(options);
        if (address instanceof Error) throw address;
        this.node.innerHTML = `<figure><img src="${address}"></figure>`;
      },
      dispose: () => given.push("disposed"),
    }),
  };
  return { given, widget_manager: { rendermime } };
}

async function answer(text: string, { widget_manager }: { widget_manager?: object } = {}) {
  await show(emptyState());
  if (widget_manager) Object.assign(model, { widget_manager });
  model.events([{ type: "message_end", seq: 2, run_id: "r1", ts: 0, message: (said({ type: "text", text }) as { message: object }).message } as never]);
  await settle();
  await settle();
}

test("a diagram is drawn by the host, and its code is a click away", async () => {
  const lab = host(IMAGE);
  await answer("```mermaid\ngraph TD; A-->B\n```", lab);
  expect((one("diagram") as HTMLImageElement).src).toBe(IMAGE);
  expect(lab.given).toEqual([{ data: { "text/vnd.mermaid": "graph TD; A-->B" }, trusted: false }, "disposed"]);
  await click("as-code");
  expect(find("diagram")).toEqual([]);
  expect(el.querySelector(".sagents-code pre")!.textContent).toBe("graph TD; A-->B");
});

test.each([
  ["without a host that draws", undefined],
  ["of a host that fails", host(new Error("Parse error"))],
  ["as an image from elsewhere", host("https://evil.example/x.svg")],
])("%s it is the code as before", async (_, lab) => {
  await answer("```mermaid\ngraph TD; A-->B\n```", lab);
  expect(find("diagram")).toEqual([]);
  expect(el.querySelector(".sagents-code pre")!.textContent).toBe("graph TD; A-->B");
});

test("other code and a diagram that is not finished are not drawn", async () => {
  const lab = host(IMAGE);
  await answer("```python\nx = 1\n```\n\n```mermaid\ngraph TD; A-->B", lab);
  expect(lab.given).toEqual([]);
});

test.each([
  "graph TD; A[Start] --> B{Is it?}; B -- yes --> C((End)) & D",
  "graph LR\n  A[\"two\\nlines\"] --- B[two<br/>lines]\n  style A fill:#f9f,stroke:#333\n  classDef warm fill:rgb(1,2,3)",
  "classDiagram\n  class Shape { <<interface>> +area() float }\n  Shape <|-- Circle",
  "sequenceDiagram\n  Alice->>Bob: Fetch the url of the image\n  Note over Bob: 50 % done; a@b.org",
  "pie title Pets\n  \"Dogs\" : 386\n  \"Cats\" : 85",
])("%s is drawn", (source) => {
  expect(isPlainDiagram(source)).toBe(true);
});

test.each([
  'graph TD; A@{ img: "https://evil.example/x.png", h: 60 }',
  'graph TD; A@{ "img": "x" }',
  "graph TD; A; style A fill:url(https://evil.example/x)",
  "graph TD; A; style A background:u\\rl(\\/\\/evil.example/x)",
  "graph TD; A; style A background:\\75rl(x)",
  "graph TD; A; classDef default background:image-set('x' 1x)",
  "%%{init: {'themeCSS': 'x'}}%%\ngraph TD; A",
  "---\nconfig:\n  themeCSS: x\n---\ngraph TD; A",
  'graph TD; A["<img src=x onerror=alert(1)>"]',
  'graph TD; A["<<img src=x>"]',
  'graph TD; A["&lt;img src=x&gt;"]',
  "graph TD; A[#lt;img src=x#gt;]",
  "graph TD; A; click A href \"https://evil.example\"",
  "graph TD; A; click A href \"javascript:alert(1)\"",
  `graph TD; A[${"x".repeat(8_000)}]`,
])("%s is not", (source) => {
  expect(isPlainDiagram(source)).toBe(false);
});
