// A line of words, and the button that sends it; Enter does so too.
import type { ComponentChildren } from "preact";
import { Button } from "./button";

type Props = {
  /** The test id of the field. */
  id: string;
  label: string;
  verb: string;
  kind: "primary" | "danger";
  disabled: boolean;
  text: string;
  onText: (text: string) => void;
  onSend: () => void;
  children?: ComponentChildren;
};

export function LineForm({ id, label, verb, kind, disabled, text, onText, onSend, children }: Props) {
  return (
    <div class="sagents-reject">
      <input
        data-testid={id}
        aria-label={label}
        placeholder={label}
        value={text}
        disabled={disabled}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && !event.isComposing && onSend()}
      />
      <Button kind={kind} data-testid={`${id}-send`} disabled={disabled} onClick={onSend}>
        {verb}
      </Button>
      {children}
    </div>
  );
}
