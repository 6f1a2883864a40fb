// What people wrote while a run went on: it waits, and can be taken back.
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Faint, FaintLine } from "./faint";
import type { Message, Queued } from "./protocol";
import { useRequest, useStore } from "./use-store";

const WHEN: Record<string, string> = {
  queue: "Next",
  steer: "For this run",
  follow_up: "When this run ends",
};

type Props = {
  queued: Queued[];
  active: boolean;
  /** Is given what was taken back. */
  onBack?: (message: Message) => void;
};

export function Queue({ queued, active, onBack }: Props) {
  const store = useStore();
  const { ask, busy, error } = useRequest();
  if (queued.length === 0) return null;
  return (
    <section class="sagents-queue" aria-label="Messages that wait" data-testid="queue">
      {!active && <FaintLine>Not sent yet; these go out with your next message.</FaintLine>}
      <ul>
        {queued.map(({ run_id, when, text }, place) => (
          <li key={place} class="sagents-queued" data-testid="queued">
            <Faint>{active ? (WHEN[when] ?? when) : "Waiting"}</Faint>
            <span class="sagents-queued-text" title={text}>
              {text}
            </span>
            <Button
              kind="quiet"
              disabled={busy || !store.open}
              aria-label={`Take back: ${text.slice(0, 60)}`}
              onClick={async () => {
                const reply = await ask("withdraw", { run_id, when, text });
                if (reply?.message) onBack?.(reply.message);
              }}
            >
              Take back
            </Button>
          </li>
        ))}
      </ul>
      <ErrorText text={error} />
    </section>
  );
}
