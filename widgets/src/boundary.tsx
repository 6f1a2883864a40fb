// What cannot be drawn takes nothing with it: something plain stands in its place, and all the rest
// of the panel goes on.
import { Component, type ComponentChildren } from "preact";
import { Faint } from "./faint";
import { TextBlock } from "./text-block";
import type { Part } from "./protocol";

type Props = { instead: ComponentChildren; children: ComponentChildren; stage?: string };

/** What could not be drawn is tried again once it is at another `stage`. */
export class Boundary extends Component<Props, { failed: boolean; stage?: string }> {
  state = { failed: false };

  static getDerivedStateFromError = () => ({ failed: true });

  static getDerivedStateFromProps = ({ stage }: Props, state: { stage?: string }) =>
    stage === state.stage ? null : { failed: false, stage };

  componentDidCatch(error: unknown): void {
    console.error("[sagents_nb]", error);
  }

  render() {
    return this.state.failed ? this.props.instead : this.props.children;
  }
}

type TurnProps = { role: string; parts: unknown[]; stage: string; children: ComponentChildren };

/** A message, or its text as it came. */
export function TurnBoundary({ role, parts, stage, children }: TurnProps) {
  return (
    <Boundary instead={<PlainTurn role={role} parts={parts} />} stage={stage}>
      {children}
    </Boundary>
  );
}

function PlainTurn({ role, parts }: { role: string; parts: unknown[] }) {
  return (
    <article class="sagents-turn" data-testid="entry" data-role={role}>
      <Faint>{role}; shown as plain text, because it cannot be drawn</Faint>
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
