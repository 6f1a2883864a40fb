// A line of words, and the button that sends it; Enter does so too.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button";

type Props = {
  /** The test id of the field. */
  id: string;
  label: string;
  verb: string;
  kind: "primary" | "danger";
  disabled: boolean;
  onSend: (text: string) => void;
  children?: ComponentChildren;
};

export function LineForm({ id, label, verb, kind, disabled, onSend, children }: Props) {
  const [text, setText] = useState("");
  return (
    <div class="sagents-reject">
      <input
        data-testid={id}
        aria-label={label}
        placeholder={label}
        value={text}
        disabled={disabled}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && !event.isComposing && onSend(text)}
      />
      <Button kind={kind} data-testid={`${id}-send`} disabled={disabled} onClick={() => onSend(text)}>
        {verb}
      </Button>
      {children}
    </div>
  );
}
