// The entry of the page of a hub: the way in, and then agencies, their threads and blueprints.
import { render } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { count } from "../format";
import { colours } from "../highlight";
import { askBy } from "../parts";
import { typesetter } from "../typesetter";
import { Agencies } from "./agencies";
import { BlueprintEditor, BlueprintList } from "./blueprints";
import { Hub, HubContext, insideJupyter, useHub, useWatched, type Agency, type Schedule } from "./hub";
import { addressOf, toHeading, usePlace, type Place } from "./place";
import { EditSchedule, nextOf, OneSchedule, Schedules } from "./schedules";
import { SignedOut, SignIn } from "./sign-in";
import { Threads } from "./thread";
import { NewThread, ThreadTree } from "./threads";
import { Ago } from "./time";
import { Waiting } from "./waiting";

function App() {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const hubOf = (token: string) => {
    const refused = () => {
      setHub(null);
      setWhy("That token opens nothing here, or not any more. A hub that begins anew has a new one.");
    };
    return new Hub(token, { refused, changed: () => redraw(null as never) });
  };
  const [hub, setHub] = useState<Hub | null>(() => (insideJupyter ? hubOf("") : null));
  const [why, setWhy] = useState("");
  const enter = (token: string) => setHub(hubOf(token));
  const leave = () => {
    setWhy("");
    setHub(null);
  };
  if (!hub) return insideJupyter ? <SignedOut /> : <SignIn why={why} onToken={enter} />;
  return (
    <HubContext.Provider value={hub}>
      <Dashboard away={hub.away} onLeave={insideJupyter ? null : leave} />
    </HubContext.Provider>
  );
}

const EVERY = 2_000;
/** Somebody is told of what waits also while the page is out of sight. */
const UNSEEN = 10_000;

type DashboardProps = { away: boolean; /** Null where it is not the hub that somebody signed in to. */ onLeave: (() => void) | null };

function Dashboard({ away, onLeave }: DashboardProps) {
  const hub = useHub();
  const place = usePlace();
  const agencies = useWatched(hub.agencies, [hub], 5_000);
  const approvals = useWatched(hub.approvals, [hub], EVERY, UNSEEN);
  const waiting = approvals.value ?? [];
  const agency = place.page === "agencies" ? null : place.agency;
  const listed = agencies.value?.find(({ id }) => id === agency);
  // A notebook that shows nothing any more takes its agency away, and nothing of what is open of it.
  const last = useRef(listed);
  if (listed) last.current = listed;
  const known = listed ?? (last.current?.id === agency && last.current?.notebook ? last.current : undefined);

  // Who follows a link reads on from the heading of where it leads.
  const first = useRef(true);
  useEffect(() => {
    if (first.current) return void (first.current = false);
    if (place.page !== "thread" && !document.activeElement?.closest("main")) toHeading();
  }, [JSON.stringify(place)]);

  return (
    <>
      <header class="hub-top">
        <nav class="hub-crumbs" aria-label="Where you are">
          <a href="#/" aria-current={agency ? undefined : "page"}>
            Hub
          </a>
          {agency && (
            <>
              <span aria-hidden="true">/</span>
              <a href={addressOf({ page: "new", agency })} aria-current={place.page === "new" ? "page" : undefined}>
                {known?.name ?? "Agency"}
              </a>
            </>
          )}
          {agency && place.page.endsWith("schedule") && (
            <>
              <span aria-hidden="true">/</span>
              <a href={addressOf({ page: "schedules", agency })}>Schedules</a>
            </>
          )}
        </nav>
        <span class="hub-space" />
        <Waiting approvals={waiting} current={place.page === "thread" ? place.thread : ""} where={known?.name ?? ""} />
        {onLeave && (
          <Button kind="plain" onClick={onLeave}>
            Sign out
          </Button>
        )}
      </header>
      {/* There is a place for it at all times, so that it is read out. */}
      <p class="hub-notice" role="status" data-testid="away" hidden={!away}>
        {away && "The hub does not answer; it is tried again."}
      </p>
      {agency === null ? (
        <Agencies agencies={agencies.value} again={agencies.again} waiting={(id) => waiting.filter(({ agencyId }) => agencyId === id).length} />
      ) : agencies.value && !known ? (
        <main class="hub-page">
          <h1>No such agency</h1>
          <p class="hub-empty">
            It was deleted, or never was. <a href="#/">All agencies</a>
          </p>
        </main>
      ) : (
        <InAgency key={agency} agency={known ?? { id: agency, name: "This agency", createdAt: "" }} place={place as InAgencyProps["place"]} onChange={approvals.again} />
      )}
    </>
  );
}

type InAgencyProps = { agency: Agency; place: Exclude<Place, { page: "agencies" }>; onChange: () => Promise<void> };

function InAgency({ agency: { id, name, notebook = false }, place, onChange }: InAgencyProps) {
  const hub = useHub();
  const threads = useWatched(() => hub.threads(id), [hub, id], EVERY);
  const blueprints = useWatched(() => hub.blueprints(id), [hub, id], 5_000);
  const schedules = useWatched(() => hub.schedules(id), [hub, id], EVERY);
  const thread = place.page === "thread" ? place.thread : "";
  const blueprint = place.page === "blueprint" ? place.name : null;
  // What was looked at stays, out of sight, while something else is.
  const last = useRef("");
  if (thread) last.current = thread;
  const again = async () => void (await Promise.all([schedules.again(), threads.again()]));
  const scheduling = { agency: id, schedules: schedules.value, threads: threads.value, again };
  return (
    <div class="hub-agency" data-page={place.page}>
      <aside class="hub-side" aria-label={name}>
        <section>
          <div class="hub-side-head">
            <h2>{notebook ? "Conversations" : "Threads"}</h2>
            {!notebook && (
              <a class="sagents-button" href={addressOf({ page: "new", agency: id })} aria-current={place.page === "new" ? "page" : undefined}>
                New
              </a>
            )}
          </div>
          {threads.problem && <p class="hub-empty">{threads.problem.message}</p>}
          {threads.value && <ThreadTree agency={id} threads={threads.value} current={thread} />}
        </section>
        <section hidden={notebook}>
          <div class="hub-side-head">
            <h2>Blueprints</h2>
            <a class="sagents-button" href={addressOf({ page: "blueprint", agency: id, name: "" })} aria-current={blueprint === "" ? "page" : undefined} aria-label="New blueprint">
              New
            </a>
          </div>
          {blueprints.problem && <p class="hub-empty">{blueprints.problem.message}</p>}
          {blueprints.value && <BlueprintList agency={id} blueprints={blueprints.value} current={blueprint} />}
        </section>
        <section hidden={notebook}>
          <div class="hub-side-head">
            <h2>Schedules</h2>
            <a
              class="sagents-button"
              href={addressOf({ page: "edit-schedule", agency: id, schedule: "" })}
              aria-current={place.page === "edit-schedule" && !place.schedule ? "page" : undefined}
              aria-label="New schedule"
            >
              New
            </a>
          </div>
          {schedules.problem && <p class="hub-empty">{schedules.problem.message}</p>}
          {schedules.value && <AllSchedules agency={id} schedules={schedules.value} current={place.page === "schedules"} />}
        </section>
      </aside>
      <main class="hub-main">
        {place.page === "new" && notebook && (
          <div class="hub-page">
            <h1>{name}</h1>
            <p class="hub-empty">Conversations begin in the notebook. While its kernel serves them they are seen, answered, stopped and talked to here as well.</p>
          </div>
        )}
        {place.page === "new" && !notebook && <NewThread agency={id} name={name} blueprints={blueprints.value} onMade={() => void threads.again()} />}
        {blueprint !== null && <BlueprintEditor key={blueprint} agency={id} name={blueprint} onChanged={blueprints.again} />}
        {place.page === "schedules" && <Schedules {...scheduling} />}
        {place.page === "schedule" && <OneSchedule key={place.schedule} id={place.schedule} {...scheduling} />}
        {place.page === "edit-schedule" && <EditSchedule key={place.schedule} id={place.schedule} blueprints={blueprints.value} {...scheduling} />}
        {last.current && (
          <div class="hub-threads" hidden={!thread}>
            <Threads agency={id} id={thread || last.current} threads={threads.value} onChange={() => void Promise.all([threads.again(), onChange()])} />
          </div>
        )}
      </main>
    </div>
  );
}

/** The way to them, and what begins next. */
function AllSchedules({ agency, schedules, current }: { agency: string; schedules: Schedule[]; current: boolean }) {
  const next = nextOf(schedules);
  const none = schedules.length === 0;
  return (
    <a class="hub-row" href={addressOf({ page: "schedules", agency })} aria-current={current ? "page" : undefined} data-testid="all-schedules">
      <span class="hub-row-name">{none ? "None yet" : count(schedules.length, "schedule")}</span>
      <span class="hub-row-about">
        <span>{next ? `Next: ${next.name}` : none ? "Threads that begin by themselves" : "Nothing is to begin"}</span>
        {next && <Ago at={next.nextRunAt} />}
      </span>
    </a>
  );
}

// Parts that a page is given once it needs them: files beside this one, as the page's policy wants it.
const PARTS = { math: typesetter, colours };
askBy(async ({ type }) => {
  const part = PARTS[type as keyof typeof PARTS];
  try {
    part.use(await import(/* @vite-ignore */ new URL(`${type}.js`, import.meta.url).href));
  } catch (error) {
    console.error("[sagents_nb]", error); // what was written is shown as it is
  }
});

const root = document.body.appendChild(document.createElement("div"));
root.className = "sagents-panel sagents-hub";
render(<App />, root);
