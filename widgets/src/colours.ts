// What colours code, in the handful of languages that agents write in notebooks. It is a file of
// its own, which a page is given when the first code of such a language is seen.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import sql from "highlight.js/lib/languages/sql";
import yaml from "highlight.js/lib/languages/yaml";
import { LANGUAGES } from "./languages";

const grammars = { bash, javascript, json, markdown, python, r, sql, yaml };
for (const [name, grammar] of Object.entries(grammars)) hljs.registerLanguage(name, grammar);
for (const [languageName, names] of Object.entries(LANGUAGES)) hljs.registerAliases(names, { languageName });

/** HTML of `code` in colours. The text itself is escaped. */
export const colour = (code: string, language: string): string => hljs.highlight(code, { language, ignoreIllegals: true }).value;
