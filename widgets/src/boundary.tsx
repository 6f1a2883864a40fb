// What cannot be drawn takes nothing with it: something plain stands in its place, and all the rest
// of the panel goes on.
import { Component, type ComponentChildren } from "preact";
import { TextBlock } from "./text-block";
import type { Part } from "./protocol";

type Props = { instead: ComponentChildren; children: ComponentChildren };

export class Boundary extends Component<Props, { failed: boolean }> {
  state = { failed: false };

  static getDerivedStateFromError = () => ({ failed: true });

  componentDidCatch(error: unknown): void {
    console.error("[sagents_nb]", error);
  }

  render() {
    return this.state.failed ? this.props.instead : this.props.children;
  }
}

type TurnProps = { role: string; parts: unknown[]; children: ComponentChildren };

/** A message, or its text as it came. */
export function TurnBoundary({ role, parts, children }: TurnProps) {
  return <Boundary instead={<PlainTurn role={role} parts={parts} />}>{children}</Boundary>;
}

function PlainTurn({ role, parts }: Omit<TurnProps, "children">) {
  return (
    <article class="sagents-turn" data-testid="entry" data-role={role}>
      <span class="sagents-faint">{role}; shown as plain text, because it cannot be drawn</span>
      <TextBlock text={parts.map(plainText).join("\n\n")} />
    </article>
  );
}

/** A part, of which nothing is taken for granted. */
function plainText(part: unknown): string {
  const { text, name, arguments: values } = (part ?? {}) as Extract<Part, { type: "tool_call" }> & { text?: unknown };
  return text === undefined ? `${name ?? ""} ${plainJson(values)}` : String(text);
}

export function plainJson(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? "";
  } catch (error) {
    return `(cannot be shown: ${error})`;
  }
}
