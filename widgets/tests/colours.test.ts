// Code is plain until what colours it is there, which is asked for with the first that has colours.
import hljs from "highlight.js/lib/core";
import { beforeEach, expect, test, vi } from "vitest";
import { emptyState } from "../dev/scenes";
import * as colouring from "../src/colours";
import { colours } from "../src/highlight";
import { isLanguage, LANGUAGES } from "../src/languages";
import { el, model, one, said, sent, settle, show, waiting, write } from "./page";

const text = (text: string) => emptyState({ entries: [said({ type: "text", text })] });
const codes = () => [...el.querySelectorAll("pre code")].map((code) => code.innerHTML);

beforeEach(() => {
  colours.module = null;
  vi.setSystemTime(Date.now() + 60_000); // or nobody asks again so soon
});

test("text, code of no language and code that is very long ask for nothing", async () => {
  await show(text(`Say \`import\`.\n\n\`\`\`\nx = 1\n\`\`\`\n\n\`\`\`fortran\nx = 1\n\`\`\`\n\n\`\`\`python\n${"x = 1\n".repeat(10_000)}\`\`\`\n`));
  expect(codes()).toHaveLength(3);
  expect(sent("colours")).toEqual([]);
});

test("code is plain, and coloured once that has come, wherever it stands", async () => {
  const inList = "- A list:\n\n  ```python\n  if a < 1: pass\n  ```\n";
  await show(text(`\`\`\`py\nimport a\n\`\`\`\n\n${inList}\n> \`\`\`Python\n> import b\n> \`\`\``));
  expect(sent("colours")).toHaveLength(1);
  expect(codes()).toEqual(["import a", "if a &lt; 1: pass", "import b"]);
  expect(el.querySelector("[class*=hljs-keyword]")).toBeNull();
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  model.receive({ type: "colours" }, [new DataView(new TextEncoder().encode("not a module").buffer)]);
  await settle();
  expect(error).toHaveBeenCalled();
  error.mockRestore();
  expect(codes()[0]).toBe("import a");
  colours.use(colouring);
  await settle();
  const words = [...el.querySelectorAll(".hljs-keyword")].map((word) => word.textContent);
  expect(words).toEqual(["import", "if", "pass", "import"]);
  expect(codes().map((html) => html.replace(/<[^>]*>/g, ""))).toEqual(["import a", "if a &lt; 1: pass", "import b"]);
});

test("what waits for approval is coloured too, and can be read before", async () => {
  await show(waiting({ ...write, arguments: { file_path: "/a.py", content: "import os\n" } }));
  expect(one("approval").textContent).toContain("import os");
  expect(sent("colours")).toHaveLength(1);
  colours.use(colouring);
  await settle();
  expect(one("approval").querySelector(".hljs-keyword")!.textContent).toBe("import");
  await show(text("```python\nimport b\n```"));
  expect(sent("colours")).toEqual([]); // the page has it
  expect(el.querySelector(".hljs-keyword")).not.toBeNull();
});

test("the languages are those that can be coloured, by all their names", () => {
  for (const name of hljs.listLanguages()) {
    expect(LANGUAGES).toHaveProperty(name);
    for (const alias of hljs.getLanguage(name)!.aliases ?? []) expect(isLanguage(alias), alias).toBe(true);
  }
  for (const name of [...Object.keys(LANGUAGES), ...Object.values(LANGUAGES).flat()]) {
    expect(hljs.getLanguage(name), name).toBeDefined();
  }
});

test("the class of a foreign element colours its text, and nothing but that", async () => {
  await show(text('<pre><code class="hljs hljs-in-python sagents-approval">import a &lt;b onclick=x&gt;</code></pre>'));
  colours.use(colouring);
  await settle();
  expect(el.querySelector("pre code")!.className).toBe("hljs hljs-in-python");
  expect(el.querySelector("pre code")!.textContent).toBe("import a <b onclick=x>");
  expect(el.querySelector("pre b")).toBeNull();
});
