// Code in colours: plain, and laid out the same, until what colours it is there.
import { useEffect, useMemo, useState } from "preact/hooks";
import { isLanguage } from "./languages";
import { Part } from "./parts";

type Colours = { colour: (code: string, language: string) => string };

/** The page's one, for this version of the panel. */
export const colours = new Part<Colours>("colours");

/** Beyond this the colours cost more time than they are worth. */
const LONGEST = 50_000;

const hasColours = (code: string, language: string) => code.length <= LONGEST && isLanguage(language);

/** HTML of `code` in colours, null where it stays plain and until it can be coloured. It is `wanted` when it is seen. */
export function useColours(code: string, language: string, wanted = true): string | null {
  const [, drawAgain] = useState({});
  const wants = wanted && hasColours(code, language);
  const { module } = colours;
  useEffect(() => (wants && !module ? colours.whenThere(() => drawAgain({})) : undefined), [wants, !module]);
  return useMemo(() => (wants && module ? module.colour(code, language) : null), [code, language, wants, module]);
}

/** Colours code inside Markdown, now or when it can be; gives what forgets it. */
export function colourMarked(element: Element): () => void {
  const marked = [...element.querySelectorAll("code.hljs")].flatMap((code) => {
    const text = code.textContent ?? "";
    const language = [...code.classList].map((name) => name.slice(MARK.length)).find(isLanguage) ?? "";
    return hasColours(text, language) ? { code, text, language } : [];
  });
  if (marked.length === 0) return () => {};
  return colours.whenThere(({ colour }) => {
    for (const { code, text, language } of marked) code.innerHTML = colour(text, language);
  });
}

/** A class that the sanitiser lets through. */
const MARK = "hljs-in-";
/** The classes of code in that language, which is to be coloured once it is in the page. */
export const classesOf = (language: string) => (isLanguage(language) ? `hljs ${MARK}${language.toLowerCase()}` : "hljs");
