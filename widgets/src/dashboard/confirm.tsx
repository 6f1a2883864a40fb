// A button for what cannot be taken back: it asks first, in its own place.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { ErrorText } from "../error-text";
import { useDoing } from "./hub";
import { toHeading } from "./place";

type Props = { label: string; /** What it is about, where the label does not say. */ of: string; question: string; verb: string; onYes: () => Promise<unknown> };

/** A name within a sentence, which it does not turn round. */
export const within = (name: string) => `\u2068${name.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")}\u2069`;

export function Confirm({ label, of, question, verb, onYes }: Props) {
  const [asking, setAsking] = useState(false);
  const { busy, error, run } = useDoing();
  const first = useRef<HTMLButtonElement>(null);
  const was = useRef(false);
  // What was clicked is gone: the focus is on what does no harm, or back.
  useLayoutEffect(() => {
    if (asking !== was.current) first.current?.focus();
    was.current = asking;
  }, [asking]);
  if (!asking) {
    return (
      <Button ref={first} kind="plain" aria-label={`${label} ${of}`} onClick={() => setAsking(true)}>
        {label}
      </Button>
    );
  }
  const onKeyDown = (event: KeyboardEvent) => event.key === "Escape" && setAsking(false);
  const yes = async () => {
    const done = (await run(onYes)) !== null;
    if (done) setAsking(false);
    // A button that was off for a moment has lost the focus, and what is deleted takes it along.
    setTimeout(() => (done ? document.activeElement === document.body && toHeading() : first.current?.focus()));
  };
  return (
    <span class="hub-confirm" role="group" aria-label={question} onKeyDown={onKeyDown}>
      <span>{question}</span>
      <Button ref={first} disabled={busy} onClick={() => setAsking(false)}>
        Keep
      </Button>
      <Button kind="danger" disabled={busy} onClick={yes}>
        {verb}
      </Button>
      <ErrorText text={error} />
    </span>
  );
}
