// Kinds of agents: what there is, and a form for one.
import { useState } from "preact/hooks";
import { Button } from "../button";
import { ErrorText } from "../error-text";
import { Confirm } from "./confirm";
import { Field, lookAt } from "./field";
import { useDoing, useHub, useWatched, type Blueprint } from "./hub";
import { addressOf, go } from "./place";
import { Ago } from "./time";

type ListProps = { agency: string; blueprints: Blueprint[]; current: string | null };

export function BlueprintList({ agency, blueprints, current }: ListProps) {
  if (blueprints.length === 0) return <p class="hub-empty">There is no blueprint yet.</p>;
  return (
    <ul class="hub-tree hub-list">
      {blueprints.map((blueprint) => (
        <li key={blueprint.name}>
          <a
            class="hub-row"
            href={addressOf({ page: "blueprint", agency, name: blueprint.name })}
            aria-current={blueprint.name === current ? "page" : undefined}
            data-testid="blueprint"
          >
            <span class="hub-row-name">{blueprint.name}</span>
            <span class="hub-row-about">{versionOf(blueprint)}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

const versionOf = ({ version }: Blueprint) => (version === 0 ? "from the code" : `version ${version}`);

type Fields = { name: string; description: string; prompt: string; tags: string; model: string; config: string };

const NEW: Fields = { name: "", description: "", prompt: "", tags: "", model: "", config: "{}" };
const fieldsOf = ({ name, description, prompt, tags, model, config }: Blueprint): Fields => ({
  name,
  description,
  prompt,
  tags: tags.join(", "),
  model: model ?? "",
  config: JSON.stringify(config, null, 2),
});

const NAME = /^[A-Za-z0-9_-]{1,100}$/;

/** What is wrong with each field, as far as a page can know. */
export function problemsIn({ name, prompt, config }: Fields): Partial<Record<keyof Fields, string>> {
  const problems: Partial<Record<keyof Fields, string>> = {};
  if (!NAME.test(name)) problems.name = "A name has 1 to 100 letters, digits, _ and -.";
  if (!prompt.trim()) problems.prompt = "A prompt says what the agent is to do.";
  try {
    const value: unknown = JSON.parse(config);
    if (value === null || typeof value !== "object" || Array.isArray(value)) problems.config = "The config is an object: {…}.";
  } catch (error) {
    problems.config = `This is not valid JSON: ${(error as Error).message}`;
  }
  return problems;
}

/** What is being written, in case somebody looks elsewhere meanwhile. */
const drafts = new Map<string, Fields>();

type Props = { agency: string; name: string; onChanged: () => Promise<void> };

export function BlueprintEditor({ agency, name, onChanged }: Props) {
  const hub = useHub();
  const isNew = name === "";
  const versions = useWatched(async () => (isNew ? [] : hub.versions(agency, name)), [hub, agency, name], 5_000);
  const newest = versions.value?.[0];
  const inCode = versions.value?.some(({ version }) => version === 0);
  const kept = newest ? fieldsOf(newest) : NEW;
  const key = `${agency} ${name}`;
  const [written, setWritten] = useState<Fields | null>(() => drafts.get(key) ?? null);
  const [tried, setTried] = useState(false);
  const [said, setSaid] = useState("");
  const { busy, error, run } = useDoing();
  const write = (fields: Fields | null) => {
    setWritten(fields);
    setSaid("");
    if (fields) drafts.set(key, fields);
    else drafts.delete(key);
  };
  const fields = written ?? kept;
  const changed = written !== null && JSON.stringify(written) !== JSON.stringify(kept);
  const problems = problemsIn(fields);
  const shown = (field: keyof Fields) => (tried || field === "config" || (field === "name" && fields.name !== "") ? problems[field] : undefined);
  const ofConfig = /\bconfig\b/.test(error);

  const onSubmit = async (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setTried(true);
    const [wrong] = Object.keys(problems);
    if (wrong) return lookAt(form, wrong);
    const { tags, model, config, ...texts } = fields;
    const given = { ...texts, tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean), model: model.trim() || null, config: JSON.parse(config) };
    const saved = await run(() => hub.saveBlueprint(agency, given));
    if (!saved) return;
    write(null);
    setTried(false);
    setSaid(`Saved as version ${saved.version}. Threads that there are already keep theirs.`);
    await Promise.all([versions.again(), onChanged()]);
    if (isNew) go({ page: "blueprint", agency, name: saved.name }, true);
  };
  const remove = async () => {
    await hub.deleteBlueprint(agency, name);
    write(null);
    if (!inCode) go({ page: "new", agency }, true);
    await Promise.all([inCode && versions.again(), onChanged()]);
  };

  if (versions.problem) return <p class="hub-empty">{versions.problem.message}</p>;
  if (!isNew && !versions.value) {
    return (
      <p class="hub-empty" role="status">
        Looking…
      </p>
    );
  }
  const field = (name: keyof Fields, label: string, hint: string, rows = 0) => {
    const onInput = (event: { currentTarget: { value: string } }) => write({ ...fields, [name]: event.currentTarget.value });
    const code = name === "config";
    return (
      <Field name={name} label={label} hint={hint} problem={shown(name) ?? (code && ofConfig ? error : undefined)}>
        {(about) =>
          rows > 0 ? (
            <textarea {...about} value={fields[name]} rows={rows} class={code ? "hub-code" : undefined} spellcheck={!code} onInput={onInput} />
          ) : (
            <input {...about} value={fields[name]} readOnly={name === "name" && !isNew} spellcheck={false} onInput={onInput} />
          )
        }
      </Field>
    );
  };
  const hasKept = newest !== undefined && newest.version > 0;
  return (
    <div class="hub-page">
      <div class="hub-title">
        <h1>{isNew ? "New blueprint" : name}</h1>
        {newest && <span class="hub-faint">{versionOf(newest)}</span>}
        <span class="hub-space" />
        {hasKept && (
          <Confirm
            label={inCode ? "Revert" : "Delete"}
            of={name}
            question={inCode ? "Forget all versions but that of the code?" : `Delete ${name}, with all its versions?`}
            verb={inCode ? "Forget" : "Delete"}
            onYes={remove}
          />
        )}
      </div>
      <form class="hub-form" onSubmit={onSubmit} noValidate>
        {field("name", "Name", isNew ? "By it threads ask for this kind of agent." : "A name stays as it is.")}
        {field("prompt", "Prompt", "What the agent is to do, in its system message.", 8)}
        {field("description", "Description", "For people, and for agents that hand on work.")}
        <div class="hub-pair">
          {field("tags", "Tags", "Which tools and middleware it has, with commas between.")}
          {field("model", "Model", 'Such as "anthropic:claude-sonnet-5-5"; empty is the hub\'s own.')}
        </div>
        {field("config", "Config", 'What its middleware is made with. {"hitl": {"tools": ["write_file"]}} asks before that tool is used.', Math.min(20, Math.max(6, fields.config.split("\n").length + 1)))}
        {!ofConfig && <ErrorText text={error} />}
        <div class="hub-buttons">
          <button class="sagents-button sagents-primary" disabled={busy || !changed}>
            {isNew ? "Create" : "Save"}
          </button>
          {changed && (
            <Button kind="plain" onClick={() => write(null)}>
              Discard changes
            </Button>
          )}
          <span class="hub-faint" role="status">
            {said}
          </span>
        </div>
      </form>
      {!isNew && versions.value && versions.value.length > 1 && (
        <section class="hub-versions" aria-label="Versions">
          <h2>Versions</h2>
          <ol>
            {versions.value.map((version) => (
              <li key={version.version}>
                <span>{version.version === 0 ? "From the code" : `Version ${version.version}`}</span>
                <span class="hub-faint">
                  <Ago at={version.updatedAt} />
                </span>
                {version === newest ? (
                  <span class="hub-faint">in use</span>
                ) : (
                  <Button kind="quiet" aria-label={`Bring back ${version.version === 0 ? "what the code says" : `version ${version.version}`}`} onClick={() => write(fieldsOf(version))}>
                    Bring back
                  </Button>
                )}
              </li>
            ))}
          </ol>
        </section>
      )}
    </div>
  );
}
