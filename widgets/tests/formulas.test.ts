// What is a formula, what is not, and how it gets into the page.
import { expect, test, vi } from "vitest";
import { emptyState } from "../dev/scenes";
import * as katex from "../src/katex";
import { formulaOf } from "../src/formulas";
import { parseMarkdown } from "../src/markdown";
import { typesetter } from "../src/typesetter";
import cases from "../../tests/fixtures/formulas.json";
import { el, model, said, sent, settle, show } from "./page";

/** The formulas of a text, as they were written, and its words without them. */
function formulasIn(text: string): { formulas: string[]; text: string } {
  const page = document.createElement("div");
  page.innerHTML = parseMarkdown(text).map((block) => (block.kind === "html" ? block.html : block.code)).join("");
  const formulas = [...page.querySelectorAll(".hljs-formula")].map((mark) => mark.textContent!);
  return { formulas, text: page.textContent!.trim() };
}

test.each(cases.formulas as [string, string[]][])("%s has formulas", (text, formulas) => {
  expect(formulasIn(text).formulas).toEqual(formulas);
  for (const formula of formulas) expect(formulaOf(formula)).not.toBeNull();
});

test.each(cases.none)("%s has none, and every sign of it stays", (text) => {
  const found = formulasIn(text);
  expect(found.formulas).toEqual([]);
  expect(found.text.match(/\$/g)?.length).toBe(text.match(/\$/g)!.length);
});

test("code is code, whatever it looks like", () => {
  expect(formulasIn("```\n$$a$$\n```").formulas).toEqual([]);
});

test("what stands round a formula is Markdown as ever", () => {
  const [block] = parseMarkdown("*a* $b_1$ _c_ \\* \\( d");
  expect(block).toEqual({ kind: "html", html: '<p><em>a</em> <span class="hljs-formula">$b_1$</span> <em>c</em> * ( d</p>\n' });
});

test("a formula far behind in a long paragraph is found", () => {
  expect(formulasIn(`${"word ".repeat(5_000)}$x$`).formulas).toEqual(["$x$"]);
});

const formula = (text: string) => emptyState({ entries: [said({ type: "text", text })] });

test("the typesetter is asked for with the first formula, and until it comes the formula is what was written", async () => {
  await show(formula("No formula, for $5."));
  expect(sent("math")).toEqual([]);
  await show(formula("The mean $\\bar x$, $\\notatexcommand{$ and $$\\sum_i x_i$$."));
  expect(sent("math")).toHaveLength(1);
  expect(el.textContent).toContain("The mean $\\bar x$");
  expect(el.querySelector("math")).toBeNull();
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  model.receive({ type: "math" }, [new DataView(new TextEncoder().encode("not a module").buffer)]);
  await settle();
  expect(error).toHaveBeenCalled();
  error.mockRestore();
  typesetter.use(katex);
  await settle();
  const set = [...el.querySelectorAll("math")];
  expect(set.map((math) => math.getAttribute("display"))).toEqual([null, "block"]);
  expect(set[0]!.querySelector("annotation")!.textContent).toBe("\\bar x");
  expect(el.textContent).toContain("$\\notatexcommand{$");
});

test("a formula can neither link nor load anything, nor run for ever", () => {
  expect(katex.mathml("\\href{javascript:alert(1)}{x}", false) ?? "").not.toContain("href=");
  expect(katex.mathml("\\includegraphics{https://example.org/a.png}", false) ?? "").not.toContain("<img");
  expect(katex.mathml("\\htmlData{a=b}{<img src=x onerror=alert(1)>}", false) ?? "").not.toContain("<img");
  expect(katex.mathml("\\def\\a{\\a\\a}\\a", false)).toBeNull();
});
