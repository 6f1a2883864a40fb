// Which code has colours, known without what colours it.

/** The languages that have colours, and what else each is called. */
export const LANGUAGES = {
  bash: ["sh", "zsh", "console", "shell"],
  javascript: ["js", "jsx", "mjs", "cjs", "ts", "tsx", "typescript"],
  json: ["jsonc", "json5"],
  markdown: ["md", "mkdown", "mkd"],
  python: ["py", "gyp", "ipython"],
  r: [],
  sql: [],
  yaml: ["yml"],
};
const NAMES = new Set([...Object.keys(LANGUAGES), ...Object.values(LANGUAGES).flat()]);

export const isLanguage = (name: string) => NAMES.has(name.toLowerCase());

const EXTENSIONS: Record<string, string> = { ipynb: "json", jsonl: "json", pyi: "python" };

/** That of a file, by how its name ends: most endings are names of languages too. */
export function languageOf(path: string): string {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return EXTENSIONS[ending] ?? (isLanguage(ending) ? ending : "");
}
