// The message that is being written.
import { RichText } from "./rich-text";
import { Thinking } from "./turns";
import { Icon } from "./icons";
import { oneLine } from "./format";
import { Line } from "./text-block";
import type { Partial } from "./protocol";

export function PartialTurn({ partial }: { partial: Partial }) {
  const last = partial.parts.length - 1;
  return (
    <article class="sagents-turn" data-testid="partial" data-role="assistant" aria-busy="true">
      {partial.parts.length === 0 && <p class="sagents-shimmer">Thinking…</p>}
      {partial.parts.map((part, index) => {
        if (part.type === "text") return <RichText key={index} text={part.text} streaming />;
        if (part.type === "thinking") return <Thinking key={index} text={part.text} streaming={index === last} />;
        return (
          <div key={index} class="sagents-tool sagents-tool-coming">
            <Icon name="busy" turning />
            <span class="sagents-tool-name">
              <Line text={part.name || "tool"} />
            </span>
            <span class="sagents-tool-summary">
              <Line text={oneLine(part.text.slice(-200), 120)} />
            </span>
          </div>
        );
      })}
    </article>
  );
}
