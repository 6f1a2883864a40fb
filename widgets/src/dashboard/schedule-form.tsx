// What a schedule is made of: a form that says, before anything is kept, when it would begin.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { ErrorText } from "../error-text";
import { Field, lookAt } from "./field";
import { Refused, useDoing, useHub, type Blueprint, type Preview, type Schedule, type ScheduleFields, type When } from "./hub";
import { go } from "./place";
import { At, OWN_ZONE } from "./time";

type Unit = keyof typeof UNITS;
const UNITS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1_000 };
const TYPES: [When["type"], string][] = [
  ["cron", "At set times"],
  ["interval", "Every so often"],
  ["once", "Once"],
];
const OVERLAPS: [ScheduleFields["overlapPolicy"], string][] = [
  ["skip", "Leave the new one out"],
  ["queue", "Let the new one wait"],
  ["allow", "Run both"],
];
const RETRIES = ["Leave it at that", "Try again once", "Try again twice", "Try again three times"];

/** As people write it: of the ways to say when, each has its own fields. */
export type Written = Pick<ScheduleFields, "name" | "agentType" | "input" | "type" | "timezone" | "overlapPolicy" | "maxRetries"> & {
  cron: string;
  /** In the time of the person, as the browser's field has it. */
  at: string;
  every: string;
  unit: Unit;
};

const localOf = (moment: Date) => {
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, moment.getSeconds() === 0 ? 16 : 19);
};

function fresh(agentType: string): Written {
  const hour = new Date();
  hour.setHours(hour.getHours() + 1, 0, 0, 0);
  const when = { type: "cron" as const, cron: "0 7 * * 1-5", at: localOf(hour), every: "30", unit: "minutes" as const };
  return { name: "", agentType, input: "", ...when, timezone: OWN_ZONE, overlapPolicy: "skip", maxRetries: 0 };
}

export function writtenOf({ cron, runAt, intervalMs, ...kept }: Schedule): Written {
  const unit = (Object.keys(UNITS) as Unit[]).find((each) => intervalMs !== null && intervalMs % UNITS[each] === 0) ?? "seconds";
  const { name, agentType, input, type, timezone, overlapPolicy, maxRetries } = kept;
  const start = fresh(agentType);
  return {
    ...{ name, agentType, input, type, timezone, overlapPolicy, maxRetries },
    cron: cron ?? start.cron,
    at: runAt === null ? start.at : localOf(new Date(runAt)),
    ...(intervalMs === null ? { every: start.every, unit: start.unit } : { every: String(intervalMs / UNITS[unit]), unit }),
  };
}

/** What is wrong with each field, as far as a page can know: the rest the hub says. */
export function problemsIn({ name, agentType, input, type, at, every, unit }: Written): Partial<Record<keyof Written, string>> {
  const problems: Partial<Record<keyof Written, string>> = {};
  if (!name.trim()) problems.name = "A schedule has a name.";
  if (!agentType) problems.agentType = "A schedule begins threads of a blueprint.";
  if (!input.trim()) problems.input = "Write what its threads are to do.";
  if (type === "once" && Number.isNaN(Date.parse(at))) problems.at = "Choose a day and a time.";
  const ms = Number(every) * UNITS[unit];
  if (type === "interval" && !(every.trim() && ms >= 1_000 && ms < Infinity)) problems.every = "Write a number: a second is the least.";
  return problems;
}

/** When it begins, as the hub is told; null where a page knows better. */
export function whenOf(written: Written): When | null {
  const problems = problemsIn(written);
  if (problems.at || problems.every) return null;
  const { type, at, cron, every, unit, timezone } = written;
  return {
    type,
    runAt: type === "once" ? new Date(at).toISOString() : null,
    cron: type === "cron" ? cron.trim() : null,
    intervalMs: type === "interval" ? Number(every) * UNITS[unit] : null,
    timezone,
  };
}

/** Of the fields the one that a sentence of the hub is about. */
function fieldOf(sentence: string, type: When["type"]): keyof Written | null {
  if (/\btime zone\b/.test(sentence)) return "timezone";
  if (/\bblueprint\b/.test(sentence)) return "agentType";
  if (/\bcron expression\b|\brun_at\b|\binterval\b/.test(sentence)) return ({ once: "at", cron: "cron", interval: "every" } as const)[type];
  return null;
}

/** Until people have written so far that it is worth asking, in milliseconds. */
const PAUSE = 350;

function usePreview(agency: string, when: When | null): { preview: Preview | null; refused: string } {
  const hub = useHub();
  const [said, setSaid] = useState<{ preview: Preview | null; refused: string }>({ preview: null, refused: "" });
  useEffect(() => {
    if (!when) return setSaid({ preview: null, refused: "" });
    let over = false;
    const ask = async () => {
      try {
        const preview = await hub.previewSchedule(agency, when);
        if (!over) setSaid({ preview, refused: "" });
      } catch (problem) {
        if (!(problem instanceof Refused)) throw problem;
        if (!over && problem.status !== 0) setSaid({ preview: null, refused: problem.message });
      }
    };
    const timer = setTimeout(ask, PAUSE);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [hub, agency, JSON.stringify(when)]);
  return said;
}

/** What is being written, in case somebody looks elsewhere meanwhile. */
const drafts = new Map<string, Written>();

type Props = { agency: string; /** Null for a new one. */ schedule: Schedule | null; blueprints: Blueprint[]; onSaved: () => Promise<void> };

export function ScheduleForm({ agency, schedule, blueprints, onSaved }: Props) {
  const hub = useHub();
  const key = `${agency} ${schedule?.id ?? ""}`;
  const kept = useMemo(() => (schedule ? writtenOf(schedule) : fresh(blueprints[0]?.name ?? "")), [schedule, blueprints]);
  const [draft, setDraft] = useState<Written | null>(() => drafts.get(key) ?? null);
  const [tried, setTried] = useState(false);
  const [asked, setAsked] = useState<Written | null>(null);
  const { busy, error: problem, run } = useDoing();
  const form = useRef<HTMLFormElement>(null);
  const written = draft ?? kept;
  const write = (changes: Partial<Written>) => {
    const next = { ...written, ...changes };
    drafts.set(key, next);
    setDraft(next);
  };
  const problems = problemsIn(written);
  const when = whenOf(written);
  const { preview, refused } = usePreview(agency, when);
  const { at, every } = problems;
  const said: Partial<Record<keyof Written, string | undefined>> = { at, every, ...(tried && problems) };
  const error = asked === written ? problem : ""; // of what has been changed since nobody knows
  for (const sentence of [error, refused]) {
    const field = fieldOf(sentence, written.type);
    if (field) said[field] ??= sentence;
  }
  const leave = (id: string, replace = false) => {
    drafts.delete(key);
    go(id ? { page: "schedule", agency, schedule: id } : { page: "schedules", agency }, replace);
  };
  // What was refused is looked at where it stands.
  useEffect(() => {
    const field = fieldOf(error, written.type);
    if (field) lookAt(form.current, field);
  }, [error]);

  const onSubmit = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    setAsked(written);
    const [wrong] = Object.keys(problems);
    if (wrong || !when) return lookAt(form.current, wrong ?? "");
    const { name, agentType, input, overlapPolicy, maxRetries } = written;
    const saved = await run(() => hub.saveSchedule(agency, schedule?.id ?? "", { name: name.trim(), agentType, input, overlapPolicy, maxRetries, ...when }));
    if (!saved) return;
    await onSaved();
    leave(saved.id, true);
  };
  const names = blueprints.map((each) => each.name);
  const kinds = !written.agentType || names.includes(written.agentType) ? names : [written.agentType, ...names];
  return (
    <form class="hub-form" ref={form} onSubmit={onSubmit} noValidate>
      <Field name="name" label="Name" problem={said.name}>
        {(about) => <input {...about} value={written.name} maxLength={200} placeholder="Morning report" onInput={(event) => write({ name: event.currentTarget.value })} />}
      </Field>
      <Field name="agentType" label="Blueprint" hint={blueprints.find((each) => each.name === written.agentType)?.description} problem={said.agentType}>
        {(about) => <Choice {...about} value={written.agentType} options={kinds.map((each) => [each, each])} onChoice={(agentType) => write({ agentType })} />}
      </Field>
      <Field name="input" label="First message" hint="What each of its threads is told, as you would write it." problem={said.input}>
        {(about) => <textarea {...about} rows={3} value={written.input} onInput={(event) => write({ input: event.currentTarget.value })} />}
      </Field>
      <fieldset class="hub-choices">
        <legend>When</legend>
        {TYPES.map(([type, label]) => (
          <label key={type}>
            <input type="radio" name="type" value={type} checked={written.type === type} onChange={() => write({ type })} />
            {label}
          </label>
        ))}
      </fieldset>
      {written.type === "cron" && (
        <div class="hub-pair">
          <Field name="cron" label="Cron expression" hint="Minute, hour, day of the month, month, weekday." problem={said.cron}>
            {(about) => <input {...about} class="hub-code" spellcheck={false} autocomplete="off" value={written.cron} onInput={(event) => write({ cron: event.currentTarget.value })} />}
          </Field>
          <Field name="timezone" label="Time zone" problem={said.timezone}>
            {(about) => <Zones {...about} value={written.timezone} onChoice={(timezone) => write({ timezone })} />}
          </Field>
        </div>
      )}
      {written.type === "interval" && (
        <div class="hub-pair">
          <Field name="every" label="Every" problem={said.every}>
            {(about) => <input {...about} inputMode="decimal" autocomplete="off" value={written.every} onInput={(event) => write({ every: event.currentTarget.value })} />}
          </Field>
          <Field name="unit" label="Unit">
            {(about) => <Choice {...about} value={written.unit} options={Object.keys(UNITS).toReversed().map((unit) => [unit, unit])} onChoice={(unit) => write({ unit: unit as Unit })} />}
          </Field>
        </div>
      )}
      {written.type === "once" && (
        <Field name="at" label="At" hint={`In your time, ${OWN_ZONE}.`} problem={said.at}>
          {(about) => <input {...about} type="datetime-local" value={written.at} onInput={(event) => write({ at: event.currentTarget.value })} />}
        </Field>
      )}
      <div class="hub-preview" role="status" aria-label="When it would begin" data-testid="preview">
        {preview && when && (
          <>
            <p>{written.type === "once" ? "It begins once:" : preview.words}</p>
            <ol>
              {preview.times.map((time) => (
                <li key={time}>
                  <At at={time} zone={zoneOf(written)} />
                </li>
              ))}
            </ol>
          </>
        )}
      </div>
      <div class="hub-pair">
        <Field name="overlapPolicy" label="If the one before still runs">
          {(about) => <Choice {...about} value={written.overlapPolicy} options={OVERLAPS} onChoice={(policy) => write({ overlapPolicy: policy as Written["overlapPolicy"] })} />}
        </Field>
        <Field name="maxRetries" label="If one fails">
          {(about) => (
            <Choice {...about} value={String(written.maxRetries)} options={RETRIES.map((label, times) => [String(times), label])} onChoice={(times) => write({ maxRetries: Number(times) })} />
          )}
        </Field>
      </div>
      {!fieldOf(error, written.type) && <ErrorText text={error} />}
      <div class="hub-buttons">
        <button class="sagents-button sagents-primary" disabled={busy}>
          {schedule ? "Save" : "Create"}
        </button>
        <Button kind="plain" onClick={() => leave(schedule?.id ?? "")}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

/** The zone in which its times are told: for all but cron that is the person's own. */
export const zoneOf = ({ type, timezone }: Pick<When, "type" | "timezone">) => (type === "cron" ? timezone : OWN_ZONE);

type ChoiceProps = { id: string; name: string; "aria-invalid": boolean; "aria-describedby": string; value: string; options: [string, string][]; onChoice: (value: string) => void };

const Choice = ({ options, onChoice, ...about }: ChoiceProps) => (
  <select {...about} onChange={(event) => onChoice(event.currentTarget.value)}>
    {options.map(([value, label]) => (
      <option key={value} value={value}>
        {label}
      </option>
    ))}
  </select>
);

/** All zones that the browser knows, the person's own first, and the one that is kept. */
function Zones({ onChoice, ...about }: Omit<ChoiceProps, "options">) {
  const [first] = useState([...new Set([OWN_ZONE, "UTC", about.value])]);
  const others = useMemo(() => Intl.supportedValuesOf("timeZone").map((zone) => <option key={zone}>{zone}</option>), []);
  return (
    <select {...about} onChange={(event) => onChoice(event.currentTarget.value)}>
      <optgroup label="Yours, and that of the world">
        {first.map((zone) => (
          <option key={zone}>{zone}</option>
        ))}
      </optgroup>
      <optgroup label="All">{others}</optgroup>
    </select>
  );
}
