// The arguments of a tool call, exactly: short values as JSON, longer text as the text it is.
import { count } from "./format";
import { TextBlock, Visible } from "./text-block";
import { canonicalJson, hasInexactNumber } from "./visible";
import type { Json, JsonObject } from "./protocol";

const SHORT = 72;

/** Arguments that stand for what goes and what comes, of the tools that change text. */
const TONES: Record<string, "added" | "removed"> = { old_string: "removed", new_string: "added" };

export function Arguments({ tool, values }: { tool: string; values: JsonObject }) {
  const rows = Object.keys(values)
    .sort()
    .map((name) => [name, values[name]!] as const);
  const short = rows.filter(([, value]) => isShort(value));
  const long = rows.filter(([, value]) => !isShort(value));
  // The old text reads before the new one.
  long.sort(([a], [b]) => Number(b === "old_string") - Number(a === "old_string"));
  if (rows.length === 0) return <p class="sagents-faint">No arguments</p>;
  return (
    <div class="sagents-arguments">
      {short.length > 0 && (
        <dl class="sagents-short">
          {short.map(([name, value]) => (
            <div key={name}>
              <dt>
                <Visible text={name} />
              </dt>
              <dd>{canonicalJson(value, 0)}</dd>
            </div>
          ))}
        </dl>
      )}
      {long.map(([name, value]) => (
        <div key={name} class="sagents-long">
          <div class="sagents-label">
            <Visible text={name} />
            <span class="sagents-faint">{kind(value)}</span>
          </div>
          {typeof value === "string" ? (
            <TextBlock text={value} tone={tool === "edit_file" ? TONES[name] : undefined} />
          ) : (
            <TextBlock text={canonicalJson(value)} />
          )}
        </div>
      ))}
      {hasInexactNumber(values) && (
        <p class="sagents-error-text">A number here is too large for this page to show all its digits.</p>
      )}
    </div>
  );
}

function isShort(value: Json): boolean {
  if (typeof value === "string") return value.length <= SHORT && !value.includes("\n");
  return canonicalJson(value, 0).length <= SHORT;
}

function kind(value: Json): string {
  if (typeof value !== "string") return "JSON";
  return count(value.split("\n").length - (value.endsWith("\n") ? 1 : 0), "line");
}
