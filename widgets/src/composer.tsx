// Where a person writes to the agent.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import type { ViewState } from "./protocol";
import { Queue } from "./queue";
import { useRequest, useStore } from "./use-store";

const HINTS: Record<string, string> = {
  running: "Message, sent when this run is over",
  // The kernel answers the waiting calls as cancelled.
  interrupted: "Message, sent instead of an answer",
};

export function Composer({ state }: { state: ViewState }) {
  const store = useStore();
  const { ask, busy, slow, error } = useRequest();
  const [text, setText] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  const ready = store.open && !busy && text.trim() !== "";

  useLayoutEffect(() => {
    const box = area.current!;
    box.style.height = "auto";
    // What is not laid out yet (a second view, a hidden tab) has no height to measure.
    if (box.scrollHeight > 0) box.style.height = `${box.scrollHeight + 2}px`;
  }, [text]);

  const send = async () => {
    if (!ready) return;
    const reply = await ask("send", { text });
    // What was typed meanwhile is not lost, nor is what the kernel did not take.
    if (reply) setText((now) => (now === text ? "" : now));
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    // While an input method composes, Enter picks a candidate.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  };

  return (
    <div class="sagents-composer">
      <Queue queued={state.queued} active={state.status === "running"} />
      <div class="sagents-composer-box">
        <textarea
          ref={area}
          data-testid="composer"
          rows={1}
          value={text}
          disabled={!store.open}
          placeholder={store.open ? (HINTS[state.status] ?? "Message") : "Closed"}
          aria-label="Message to the agent. Enter sends, Shift and Enter make a new line."
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <button
          type="button"
          class="sagents-send"
          data-testid="send"
          aria-label="Send"
          title="Send (Enter)"
          disabled={!ready}
          onClick={send}
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
