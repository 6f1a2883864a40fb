// Syntax colours for the handful of languages that agents write in notebooks.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import sql from "highlight.js/lib/languages/sql";
import yaml from "highlight.js/lib/languages/yaml";

const languages = { bash, javascript, json, markdown, python, r, sql, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
hljs.registerAliases(["console", "shell"], { languageName: "bash" });
hljs.registerAliases(["ts", "typescript", "tsx"], { languageName: "javascript" });

/** Beyond this the colours cost more time than they are worth. */
const LONGEST = 50_000;

/** HTML of `code` in colours, or null where it stays plain. The text itself is escaped. */
export function highlight(code: string, language: string): string | null {
  if (!language || code.length > LONGEST || !hljs.getLanguage(language)) return null;
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

export const isLanguage = (name: string) => hljs.getLanguage(name) !== undefined;

const EXTENSIONS: Record<string, string> = { ipynb: "json", jsonl: "json", pyi: "python" };

/** That of a file, by how its name ends: most endings are names of languages too. */
export function languageOf(path: string): string {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return EXTENSIONS[ending] ?? (isLanguage(ending) ? ending : "");
}
