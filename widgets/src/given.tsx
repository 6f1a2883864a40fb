// What the {names} in a person's message stood for: the model was sent all of it, people see a line.
import type { Entry } from "./protocol";
import { useFold } from "./memory";
import { Icon } from "./icons";
import { Line, TextBlock } from "./text-block";

type Field = { name: string; brief: string; text: string };

const isField = (value: unknown): value is Field =>
  typeof value === "object" && value !== null && ["name", "brief", "text"].every((key) => typeof (value as never)[key] === "string");

export function fieldsOf({ message }: Entry): Field[] {
  const fields = message.metadata?.fields;
  return Array.isArray(fields) ? (fields as unknown[]).filter(isField) : [];
}

export function Given({ entry, place }: { entry: Entry; place: number | string }) {
  const [open, fold] = useFold(`${place} given`);
  const fields = fieldsOf(entry);
  if (fields.length === 0) return null;
  return (
    <details class="sagents-thinking sagents-given sagents-fold" data-testid="given" {...fold}>
      <summary>
        <Icon name="chevron" />
        <span class="sagents-thinking-line">
          <Line text={`with ${fields.map(({ name, brief }) => `${name}: ${brief}`).join(", ")}`} />
        </span>
      </summary>
      {open &&
        fields.map(({ name, text }) => (
          <div key={name} class="sagents-long">
            <div class="sagents-label">
              <Line text={name} />
            </div>
            <TextBlock text={text} />
          </div>
        ))}
    </details>
  );
}
