// Copying text, also where the page has no clipboard API: plain http, as on many hubs.
import { useState } from "preact/hooks";
import { BareButton } from "./button";
import { Icon } from "./icons";

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.cssText = "position:fixed;opacity:0";
    document.body.append(area);
    area.select();
    try {
      return document.execCommand("copy");
    } catch {
      return false;
    } finally {
      area.remove();
    }
  }
}

const said = (done: boolean) => (done ? "Copied" : "Not copied");

/** With a `label`, a button that says what it copies. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const [answer, setAnswer] = useState("");
  const copy = async () => {
    setAnswer(said(await copyText(text)));
    setTimeout(() => setAnswer(""), 1500);
  };
  return (
    <BareButton class="sagents-quiet" onClick={copy} aria-label={label ?? "Copy"} title={label ?? "Copy"}>
      {answer || label ? <span>{answer || label}</span> : <Icon name="copy" />}
    </BareButton>
  );
}

/** The same for code inside HTML that is not ours to render. */
export function copyButtonFor(text: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sagents-quiet sagents-copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = said(await copyText(text));
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}
