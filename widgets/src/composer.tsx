// Where a person writes to the agent.
import { useLayoutEffect, useRef } from "preact/hooks";
import { useHistory } from "./history";
import { Icon } from "./icons";
import type { ViewState } from "./protocol";
import { Queue } from "./queue";
import { useRequest, useStore } from "./use-store";

const MAC = /^(Mac|iP)/.test(globalThis.navigator?.platform ?? "");
const STEER_KEY = MAC ? "⌘ Enter" : "Ctrl+Enter";

const HINTS: Record<string, string> = {
  running: `Enter sends when this run is over, ${STEER_KEY} tells this run now`,
  // The kernel answers the waiting calls as cancelled.
  interrupted: "Message, sent instead of an answer",
};
const KEYS = "Enter sends, Shift and Enter make a new line, Arrow up brings earlier messages.";

export function Composer({ state }: { state: ViewState }) {
  const store = useStore();
  const { ask, busy, slow, error } = useRequest();
  const { text, write, clear, go, recalls } = useHistory(state.entries);
  const area = useRef<HTMLTextAreaElement>(null);
  const brought = useRef(false);
  const now = useRef(text);
  now.current = text;
  const ready = store.open && !busy && text.trim() !== "";
  const running = state.status === "running";

  useLayoutEffect(() => {
    const box = area.current!;
    box.style.height = "auto";
    // What is not laid out yet (a second view, a hidden tab) has no height to measure.
    if (box.scrollHeight > 0) box.style.height = `${box.scrollHeight + 2}px`;
    // The caret stands behind what the arrows brought.
    if (brought.current) box.setSelectionRange(text.length, text.length);
    brought.current = false;
  }, [text]);

  const send = async (when: "queue" | "steer") => {
    if (!ready) return;
    const reply = await ask("send", when === "steer" ? { text, when } : { text });
    // What was typed meanwhile is not lost, nor is what the kernel did not take.
    if (reply && now.current === text) clear();
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    // While an input method composes, Enter picks a candidate.
    if (event.isComposing || event.shiftKey) return;
    const box = area.current!;
    if (event.key === "Enter") {
      event.preventDefault();
      void send(running && (event.ctrlKey || event.metaKey) ? "steer" : "queue");
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey) {
      const step = event.key === "ArrowUp" && onFirstLine(box, recalls()) ? -1 : event.key === "ArrowDown" && recalls() && onLastLine(box) ? 1 : 0;
      if (step === 0 || !go(step)) return;
      event.preventDefault();
      brought.current = true;
    }
  };

  return (
    <div class="sagents-composer">
      <Queue queued={state.queued} active={running} />
      <div class="sagents-composer-box">
        <textarea
          ref={area}
          data-testid="composer"
          rows={1}
          value={text}
          disabled={!store.open}
          placeholder={store.open ? (HINTS[state.status] ?? "Message") : "Closed"}
          aria-label={`Message to the agent. ${running ? `${HINTS.running}. ` : ""}${KEYS}`}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {running && (
          <button
            type="button"
            class="sagents-button sagents-plain sagents-steer"
            data-testid="steer"
            title={`Tell the active run now, before its next step (${STEER_KEY})`}
            disabled={!ready}
            onClick={() => send("steer")}
          >
            Steer
          </button>
        )}
        <button
          type="button"
          class="sagents-send"
          data-testid="send"
          aria-label={running ? "Send when this run is over" : "Send"}
          title={running ? "Send when this run is over (Enter)" : "Send (Enter)"}
          disabled={!ready}
          onClick={() => send("queue")}
        >
          <Icon name="send" />
        </button>
      </div>
      {error && (
        <p class="sagents-error-text" role="alert">
          {error}
        </p>
      )}
      {slow && <p class="sagents-faint">The kernel is busy; the message goes out when it listens again.</p>}
    </div>
  );
}

/** Whether Arrow up has nowhere to go in the text; a draft whose lines are broken is left to the caret. */
function onFirstLine(box: HTMLTextAreaElement, recalled: boolean): boolean {
  const { value, selectionStart, selectionEnd } = box;
  if (selectionStart !== selectionEnd || value.slice(0, selectionStart).includes("\n")) return false;
  if (recalled || selectionStart === 0) return true;
  const style = getComputedStyle(box);
  const padding = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
  const lines = (box.scrollHeight - padding) / parseFloat(style.lineHeight);
  return !(lines > value.split("\n").length + 0.5);
}

const onLastLine = ({ value, selectionStart, selectionEnd }: HTMLTextAreaElement): boolean =>
  selectionStart === selectionEnd && !value.slice(selectionEnd).includes("\n");
