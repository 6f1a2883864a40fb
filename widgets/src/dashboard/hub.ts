// What a page asks a hub, and what it is answered; see sagents_nb/hub/web/routes.py.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { Socket } from "../socket";

export type Agency = { id: string; name: string; createdAt: string; /** Whether it has the conversations of a notebook, and nothing else. */ notebook?: boolean };
export type Thread = {
  id: string;
  agentType: string;
  createdAt: string;
  parent?: { threadId: string };
  title?: string;
  status?: string;
  /** Why it waits, or what went wrong. */
  reason?: string;
  since?: string;
  /** Of a conversation of a notebook whether a kernel serves it: one that is "away" can only be read. */
  kernel?: "here" | "away";
};
export type Blueprint = {
  name: string;
  description: string;
  prompt: string;
  tags: string[];
  model: string | null;
  config: Record<string, unknown>;
  /** That of the code is 0. */
  version: number;
  updatedAt: string | null;
};
export type Approval = { agencyId: string; agency: string; threadId: string; agentType: string; title: string; since: string | null; tools: string[] };
export type Usage = { agencyId: string; threads: number; modelCalls: number; inputTokens: number; outputTokens: number; costUsd: number | null };

export type ScheduleRun = {
  id: string;
  /** The thread that does it. */
  agentId: string | null;
  status: string;
  retryCount: number;
  error: string | null;
  scheduledAt: string;
  startedAt: string | null;
  completedAt: string | null;
};
/** When one begins: the one field that its type has, and a zone for cron. */
export type When = { type: "once" | "cron" | "interval"; runAt: string | null; cron: string | null; intervalMs: number | null; timezone: string };
export type ScheduleFields = When & { name: string; agentType: string; input: string; overlapPolicy: "skip" | "queue" | "allow"; maxRetries: number };
export type Schedule = ScheduleFields & {
  id: string;
  status: "active" | "paused" | "disabled";
  nextRunAt: string | null;
  /** When it begins, as people say it. */
  words: string;
  lastRun: ScheduleRun | null;
};
export type Preview = { words: string; times: string[] };

/** What a hub refuses, in its own words; status 0 is one that does not answer. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const AWAY = "The hub does not answer; it is tried again.";

/** Whether Jupyter has let in whoever looks at the page: it needs no token, and has none. */
export const insideJupyter = document.documentElement.dataset.door === "jupyter";

/** Whether it is the page of a notebook's kernel, which has the agencies of notebooks alone. */
export const ofNotebook = document.documentElement.dataset.agencies === "notebooks";

/** One word of a path. */
const word = encodeURIComponent;
const base64 = (text: string) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
/** A proxy may have the hub below a path. */
const addressOf = (path: string) => new URL(path, document.baseURI);

async function answered<T>(method: string, path: string, token: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(addressOf(path), { method, headers, body: body === undefined ? null : JSON.stringify(body), redirect: "manual" });
  } catch {
    throw new Refused(0, AWAY);
  }
  // A hub leads nowhere else: who has been signed out by what is before it is led to where people sign in.
  if (response.type === "opaqueredirect") throw new Refused(401, "You are signed out.");
  const said = await response.json().catch(() => null);
  if (!said && response.status >= 500) throw new Refused(0, AWAY); // what is before it says so, since it cannot
  if (!response.ok) throw new Refused(response.status, said?.error ?? `The hub answered ${response.status}.`);
  return said as T;
}

/** The token that a code of the address stands for. */
export const exchange = async (code: string): Promise<string> => (await answered<{ token: string }>("POST", "auth/exchange", "", { code })).token;

/** A hub, as who has its token sees it; the token is nowhere but here. */
export class Hub {
  /** Whether it has answered last. */
  away = false;
  #token: string;

  constructor(
    token: string,
    /** Is told when the token opens nothing any more, and of each change of `away`. */
    private tell: { refused: () => void; changed: () => void },
  ) {
    this.#token = token;
  }

  agencies = async () => (await this.#ask<{ agencies: Agency[] }>("GET", "agencies")).agencies;
  usage = async () => (await this.#ask<{ usage: Usage[] }>("GET", "usage")).usage;
  approvals = async () => (await this.#ask<{ approvals: Approval[] }>("GET", "approvals")).approvals;
  createAgency = (name: string) => this.#ask<Agency & { secret: string }>("POST", "agencies", name ? { name } : {});
  deleteAgency = (agency: string) => this.#ask("DELETE", `agency/${word(agency)}`);

  threads = async (agency: string) => (await this.#ask<{ agents: Thread[] }>("GET", `agency/${word(agency)}/agents`)).agents;
  createThread = (agency: string, agentType: string, input: string) =>
    this.#ask<Thread>("POST", `agency/${word(agency)}/agents`, { agentType, ...(input && { input }) });
  deleteThread = (agency: string, thread: string) => this.#ask("DELETE", threadAt(agency, thread));

  blueprints = async (agency: string) => (await this.#ask<{ blueprints: Blueprint[] }>("GET", `agency/${word(agency)}/blueprints`)).blueprints;
  versions = async (agency: string, name: string) =>
    (await this.#ask<{ blueprints: Blueprint[] }>("GET", `agency/${word(agency)}/blueprints/${word(name)}/versions`)).blueprints;
  saveBlueprint = (agency: string, fields: Partial<Blueprint>) => this.#ask<Blueprint>("POST", `agency/${word(agency)}/blueprints`, fields);
  deleteBlueprint = (agency: string, name: string) => this.#ask("DELETE", `agency/${word(agency)}/blueprints/${word(name)}`);

  schedules = async (agency: string) => (await this.#ask<{ schedules: Schedule[] }>("GET", `agency/${word(agency)}/schedules`)).schedules;
  scheduleRuns = async (agency: string, schedule: string) => (await this.#ask<{ runs: ScheduleRun[] }>("GET", `${scheduleAt(agency, schedule)}/runs`)).runs;
  previewSchedule = (agency: string, when: When) => this.#ask<Preview>("POST", `agency/${word(agency)}/schedule_preview`, when);
  /** Without an id it is a new one. */
  saveSchedule = (agency: string, schedule: string, fields: ScheduleFields) =>
    schedule ? this.#ask<Schedule>("PATCH", scheduleAt(agency, schedule), fields) : this.#ask<Schedule>("POST", `agency/${word(agency)}/schedules`, fields);
  pauseSchedule = (agency: string, schedule: string) => this.#ask("POST", `${scheduleAt(agency, schedule)}/pause`, {});
  resumeSchedule = (agency: string, schedule: string) => this.#ask("POST", `${scheduleAt(agency, schedule)}/resume`, {});
  triggerSchedule = (agency: string, schedule: string) => this.#ask<ScheduleRun>("POST", `${scheduleAt(agency, schedule)}/trigger`, {});
  deleteSchedule = (agency: string, schedule: string) => this.#ask("DELETE", scheduleAt(agency, schedule));

  /** The way to a thread, for the store of a panel. */
  socket(agency: string, thread: string): Socket {
    const address = addressOf(`${threadAt(agency, thread)}/stream`);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    return new Socket(
      // A page sends no headers with a socket: the token is one of the protocols that it offers.
      () => new WebSocket(address, ["sagents.v1", ...(this.#token ? [`sagents.token.${base64(this.#token)}`] : [])]),
      async () => {
        try {
          await this.#ask("GET", `${threadAt(agency, thread)}/state`);
        } catch (error) {
          if (error instanceof Refused && error.status === 404) return false;
          throw error;
        }
        return true;
      },
    );
  }

  async #ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    try {
      const answer = await answered<T>(method, path, this.#token, body);
      this.#heard(true);
      return answer;
    } catch (error) {
      this.#heard(!(error instanceof Refused && error.status === 0));
      if (error instanceof Refused && error.status === 401) this.tell.refused();
      throw error;
    }
  }

  #heard(yes: boolean): void {
    if (this.away !== yes) return;
    this.away = !yes;
    this.tell.changed();
  }
}

const scheduleAt = (agency: string, schedule: string) => `agency/${word(agency)}/schedules/${word(schedule)}`;
const threadAt = (agency: string, thread: string) => `agency/${word(agency)}/agent/${word(thread)}`;

export const HubContext = createContext<Hub>(null!);
export const useHub = () => useContext(HubContext);

/** What was asked last, null until it is answered; `again` asks at once. */
type Watched<T> = { value: T | null; problem: Refused | null; again: () => Promise<void> };

/**
 * Asks now, whenever one of `about` is another, and then every so many milliseconds. A page that nobody sees asks nothing
 * until it is looked at again, or every `unseen` milliseconds.
 */
export function useWatched<T>(ask: () => Promise<T>, about: unknown[], every: number, unseen = Infinity): Watched<T> {
  const [state, setState] = useState<{ value: T | null; problem: Refused | null }>({ value: null, problem: null });
  const turn = useRef(0);
  const shown = useRef("");
  const again = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const value = await ask();
      if (mine !== turn.current) return; // it was overtaken
      const text = JSON.stringify(value);
      if (text === shown.current) return; // and nothing is drawn anew
      shown.current = text;
      setState({ value, problem: null });
    } catch (problem) {
      if (!(problem instanceof Refused)) throw problem;
      if (mine !== turn.current || problem.status === 0) return; // the page says that the hub is away
      shown.current = "";
      setState({ value: null, problem });
    }
  }, about);
  useEffect(() => {
    shown.current = "";
    setState({ value: null, problem: null });
    let timer: ReturnType<typeof setTimeout>;
    let over = false;
    const on = async () => {
      clearTimeout(timer);
      await again();
      const pause = document.visibilityState === "visible" ? every : unseen;
      if (!over && pause < Infinity) timer = setTimeout(on, pause);
    };
    const look = () => document.visibilityState === "visible" && void on();
    document.addEventListener("visibilitychange", look);
    void on();
    return () => {
      over = true;
      turn.current += 1;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [again]);
  return { ...state, again };
}

/** One thing at a time that is done, and why it was not. */
export function useDoing() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const run = async <T>(work: () => Promise<T>): Promise<T | null> => {
    setBusy(true);
    setError("");
    try {
      return await work();
    } catch (problem) {
      if (!(problem instanceof Refused)) throw problem;
      setError(problem.message);
      return null;
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, run };
}
