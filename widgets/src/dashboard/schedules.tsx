// What begins by itself: the schedules of an agency, each with what is next and what became of the last.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../button";
import { ErrorText } from "../error-text";
import { seconds } from "../format";
import { Confirm, within } from "./confirm";
import { useDoing, useHub, useWatched, type Blueprint, type Schedule, type ScheduleRun, type Thread } from "./hub";
import { addressOf, go } from "./place";
import { ScheduleForm, zoneOf } from "./schedule-form";
import { nameOf, statusOf } from "./threads";
import { Ago, At, exactly } from "./time";

/** Of a run's statuses the one of the panel that looks the same, and what people read. */
const STATUSES: Record<string, [string, string]> = {
  pending: ["waiting", "Waits its turn"],
  running: ["running", "Running"],
  completed: ["completed", "Done"],
  failed: ["error", "Failed"],
  skipped: ["skipped", "Left out"],
};
export function stateOf(run: ScheduleRun, thread?: Thread): [string, string] {
  if (run.status === "running" && thread) return statusOf(thread); // it may wait for people
  return STATUSES[run.status] ?? ["waiting", run.status];
}

/** The one that begins next of those that are active. */
export const nextOf = (schedules: Schedule[]): Schedule | undefined =>
  schedules.filter((each) => each.nextRunAt).sort((a, b) => Date.parse(a.nextRunAt!) - Date.parse(b.nextRunAt!))[0];

type Common = { agency: string; threads: Thread[] | null; again: () => Promise<void> };

export function Schedules({ schedules, ...common }: Common & { schedules: Schedule[] | null }) {
  const { agency } = common;
  return (
    <div class="hub-page">
      <div class="hub-title">
        <h1>Schedules</h1>
        <span class="hub-space" />
        {schedules && schedules.length > 0 && (
          <a class="sagents-button" href={addressOf({ page: "edit-schedule", agency, schedule: "" })}>
            New schedule
          </a>
        )}
      </div>
      {schedules === null ? (
        <p class="hub-empty" role="status">
          Looking…
        </p>
      ) : schedules.length === 0 ? (
        <div class="hub-nothing">
          <p>A schedule begins threads by itself: a report every weekday at seven, a look at the inbox each half hour, a long job tonight.</p>
          <p class="hub-faint">What comes of each is a thread like any other, and what needs an approval waits for you there.</p>
          <a class="sagents-button sagents-primary" href={addressOf({ page: "edit-schedule", agency, schedule: "" })}>
            Make the first schedule
          </a>
        </div>
      ) : (
        <ul class="hub-cards">
          {schedules.map((schedule) => (
            <li key={schedule.id} class="hub-card" data-testid="schedule" data-status={schedule.status}>
              <Head schedule={schedule} {...common}>
                <h2>
                  <a href={addressOf({ page: "schedule", agency, schedule: schedule.id })}>{schedule.name}</a>
                </h2>
              </Head>
              <Facts schedule={schedule} {...common} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** What it is called, and what can be done with it. */
function Head({ agency, schedule, again, children, edit, onDeleted }: Common & { schedule: Schedule; children: ComponentChildren; edit?: boolean; onDeleted?: () => Promise<void> }) {
  const hub = useHub();
  const { id, name, status } = schedule;
  const { busy, error, run } = useDoing();
  const [begun, setBegun] = useState<ScheduleRun | null>(null);
  // Its buttons stay on meanwhile: one that is off loses the focus.
  const toggle = async () => {
    if (busy) return;
    setBegun(null);
    await run(() => (status === "paused" ? hub.resumeSchedule(agency, id) : hub.pauseSchedule(agency, id)));
    await again();
  };
  const trigger = async () => {
    if (busy) return;
    setBegun(null);
    setBegun(await run(() => hub.triggerSchedule(agency, id)));
    await again();
  };
  const remove = async () => {
    await hub.deleteSchedule(agency, id);
    await (onDeleted ?? again)();
  };
  const failed = begun?.status === "failed" ? (begun.error ?? "It could not begin.") : "";
  return (
    <div class="hub-title">
      {children}
      {status !== "active" && <span class="sagents-badge">{status === "paused" ? "Paused" : "Over"}</span>}
      <span class="hub-space" />
      <span class="hub-buttons">
        <Button aria-label={`Run now: ${name}`} onClick={trigger}>
          Run now
        </Button>
        {status !== "disabled" && (
          <Button aria-label={`${status === "paused" ? "Resume" : "Pause"} ${name}`} onClick={toggle}>
            {status === "paused" ? "Resume" : "Pause"}
          </Button>
        )}
        {edit && (
          <a class="sagents-button" href={addressOf({ page: "edit-schedule", agency, schedule: id })} aria-label={`Edit ${name}`}>
            Edit
          </a>
        )}
        <Confirm label="Delete" of={name} question={`Delete ${within(name)}? What it has begun stays.`} verb="Delete" onYes={remove} />
      </span>
      <p class="hub-said" role="status">
        {begun && !failed && (
          <>
            It runs now{begun.agentId && ": "}
            {begun.agentId && <a href={addressOf({ page: "thread", agency, thread: begun.agentId })}>open its thread</a>}
          </>
        )}
      </p>
      <ErrorText text={error || failed} />
    </div>
  );
}

function Facts({ agency, schedule, threads }: Common & { schedule: Schedule }) {
  const { lastRun: last, nextRunAt: next, status } = schedule;
  const zone = zoneOf(schedule);
  const over = status === "paused" ? "Not while it is paused" : "No more";
  return (
    <dl class="hub-facts">
      <div>
        <dt>When</dt>
        <dd>{schedule.runAt ? <>Once, <At at={schedule.runAt} /></> : schedule.words}</dd>
      </div>
      <div>
        <dt>Next run</dt>
        <dd data-testid="next-run">
          {next ? (
            <>
              <Ago at={next} zone={zone} />
              <small>
                <At at={next} zone={zone} />
              </small>
            </>
          ) : (
            <span class="hub-faint">{over}</span>
          )}
        </dd>
      </div>
      <div>
        <dt>Last run</dt>
        <dd data-testid="last-run">
          {last ? (
            <>
              <Result agency={agency} run={last} threads={threads} linked />
              <small>
                <Ago at={last.startedAt ?? last.scheduledAt} zone={zone} />
              </small>
            </>
          ) : (
            <span class="hub-faint">None yet</span>
          )}
        </dd>
      </div>
      <div>
        <dt>Blueprint</dt>
        <dd>{schedule.agentType}</dd>
      </div>
    </dl>
  );
}

/** How a run has ended, or how it is; `linked` to its thread, if it has one. */
function Result({ agency, run, threads, linked }: { agency: string; run: ScheduleRun; threads: Thread[] | null; linked?: boolean }) {
  const thread = threads?.find(({ id }) => id === run.agentId);
  const [status, label] = stateOf(run, thread);
  const shown = (
    <span class="sagents-status" data-status={status}>
      <span class="sagents-dot" />
      {label}
    </span>
  );
  if (!linked || !run.agentId) return shown;
  return <a href={addressOf({ page: "thread", agency, thread: run.agentId })}>{shown}</a>;
}

type OneProps = Common & { schedules: Schedule[] | null; id: string };

/** One of them, with its last runs. */
export function OneSchedule({ schedules, id, ...common }: OneProps) {
  const { agency, threads } = common;
  const hub = useHub();
  const runs = useWatched(() => hub.scheduleRuns(agency, id), [hub, agency, id], 2_000);
  const schedule = schedules?.find((each) => each.id === id);
  if (!schedule) return <Missing agency={agency} looking={schedules === null} />;
  const again = async () => void (await Promise.all([common.again(), runs.again()]));
  const leave = () => {
    go({ page: "schedules", agency }, true);
    return common.again();
  };
  return (
    <div class="hub-page">
      <Head schedule={schedule} {...common} again={again} edit onDeleted={leave}>
        <h1>{schedule.name}</h1>
      </Head>
      <Facts schedule={schedule} {...common} />
      {schedule.input.trim() && (
        <section class="hub-told" aria-label="First message">
          <h2>First message</h2>
          <p>{schedule.input}</p>
        </section>
      )}
      <section aria-label="Runs">
        <h2>Runs</h2>
        {runs.value?.length ? (
          <Runs agency={agency} runs={runs.value} threads={threads} zone={zoneOf(schedule)} />
        ) : (
          <p class="hub-empty" role="status">
            {runs.problem?.message ?? (runs.value ? "It has not run yet." : "Looking…")}
          </p>
        )}
      </section>
    </div>
  );
}

function Runs({ agency, runs, threads, zone }: { agency: string; runs: ScheduleRun[]; threads: Thread[] | null; zone: string }) {
  return (
    <table class="hub-table">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Result</th>
          <th scope="col" class="hub-number hub-wide">
            Took
          </th>
          <th scope="col">Thread</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id} data-testid="schedule-run" data-status={run.status}>
            <th scope="row">
              <At at={run.scheduledAt} zone={zone} />
            </th>
            <td>
              <Result agency={agency} run={run} threads={threads} />
              {run.retryCount > 0 && <small class="hub-faint"> tried {run.retryCount + 1} times</small>}
              {run.error && <p class="hub-why">{run.error}</p>}
            </td>
            <td class="hub-number hub-wide">{run.startedAt && run.completedAt && seconds((Date.parse(run.completedAt) - Date.parse(run.startedAt)) / 1000)}</td>
            <td>
              <ItsThread agency={agency} run={run} threads={threads} zone={zone} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ItsThread({ agency, run, threads, zone }: { agency: string; run: ScheduleRun; threads: Thread[] | null; zone: string }) {
  if (!run.agentId) return <span class="hub-faint">None</span>;
  const thread = threads?.find(({ id }) => id === run.agentId);
  return (
    <a href={addressOf({ page: "thread", agency, thread: run.agentId })} aria-label={`Open the thread of ${exactly(run.scheduledAt, zone)}`} title={thread && nameOf(thread)}>
      Open
    </a>
  );
}

type EditProps = Common & { schedules: Schedule[] | null; blueprints: Blueprint[] | null; id: string };

/** The form of one, or of a new one where there is no id. */
export function EditSchedule({ agency, schedules, blueprints, id, again }: EditProps) {
  const schedule = schedules?.find((each) => each.id === id);
  const looking = blueprints === null || schedules === null;
  if (looking || (id && !schedule)) return <Missing agency={agency} looking={looking} />;
  return (
    <div class="hub-page">
      <h1>{schedule ? `Edit ${schedule.name}` : "New schedule"}</h1>
      {blueprints.length === 0 ? (
        <p class="hub-empty">
          A schedule begins threads of a blueprint: <a href={addressOf({ page: "blueprint", agency, name: "" })}>write the first one</a>.
        </p>
      ) : (
        <ScheduleForm agency={agency} schedule={schedule ?? null} blueprints={blueprints} onSaved={again} />
      )}
    </div>
  );
}

function Missing({ agency, looking }: { agency: string; looking: boolean }) {
  return (
    <div class="hub-page">
      <h1>{looking ? "Schedule" : "No such schedule"}</h1>
      <p class="hub-empty" role="status">
        {looking ? (
          "Looking…"
        ) : (
          <>
            It was deleted, or never was. <a href={addressOf({ page: "schedules", agency })}>All schedules</a>
          </>
        )}
      </p>
    </div>
  );
}
