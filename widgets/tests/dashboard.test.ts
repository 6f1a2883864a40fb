import { expect, test } from "vitest";
import { problemsIn } from "../src/dashboard/blueprints";
import { within } from "../src/dashboard/confirm";
import type { Schedule, ScheduleRun, Thread } from "../src/dashboard/hub";
import { addressOf, placeOf, type Place } from "../src/dashboard/place";
import { problemsIn as problemsInSchedule, whenOf, writtenOf } from "../src/dashboard/schedule-form";
import { nextOf, stateOf } from "../src/dashboard/schedules";
import { statusOf, treeOf } from "../src/dashboard/threads";
import { distance, exactly } from "../src/dashboard/time";

const thread = (id: string, parent = "", more: Partial<Thread> = {}): Thread => ({
  id,
  agentType: "guide",
  createdAt: "2026-01-01T00:00:00Z",
  ...(parent && { parent: { threadId: parent } }),
  ...more,
});

test("every place has an address that leads back to it", () => {
  const places: Place[] = [
    { page: "agencies" },
    { page: "new", agency: "a1" },
    { page: "thread", agency: "a1", thread: "t/1 ü" },
    { page: "blueprint", agency: "a1", name: "" },
    { page: "blueprint", agency: "a1", name: "poet" },
    { page: "schedules", agency: "a1" },
    { page: "schedule", agency: "a1", schedule: "s1" },
    { page: "edit-schedule", agency: "a1", schedule: "" },
    { page: "edit-schedule", agency: "a1", schedule: "s1" },
  ];
  for (const place of places) expect(placeOf(addressOf(place))).toEqual(place);
});

test("an address that leads nowhere leads to the next place above", () => {
  expect(placeOf("")).toEqual({ page: "agencies" });
  expect(placeOf("#code=abc")).toEqual({ page: "agencies" });
  expect(placeOf("#/agency/a1/thread/")).toEqual({ page: "new", agency: "a1" });
  expect(placeOf("#/agency/a1/schedule/")).toEqual({ page: "new", agency: "a1" });
  expect(placeOf("#/agency/a1/thread/%E0%A4%A")).toEqual({ page: "thread", agency: "a1", thread: "%E0%A4%A" });
});

test("threads stand below who began them, in the order they come in, and on top where that one is gone", () => {
  const tree = treeOf([thread("c2", "p"), thread("lone", "gone"), thread("g", "c1"), thread("p"), thread("c1", "p")]);
  expect(tree.map((node) => node.thread.id)).toEqual(["lone", "p"]);
  expect(tree[1]!.children.map((node) => node.thread.id)).toEqual(["c2", "c1"]);
  expect(tree[1]!.children[1]!.children.map((node) => node.thread.id)).toEqual(["g"]);
});

test("a thread that waits says for whom", () => {
  expect(statusOf(thread("a"))).toEqual(["idle", "New"]);
  expect(statusOf(thread("a", "", { status: "paused", reason: "hitl" }))[1]).toBe("Needs approval");
  expect(statusOf(thread("a", "", { status: "paused", reason: "subagent" }))[1]).toBe("Waits for others");
  expect(statusOf(thread("a", "", { status: "paused", reason: "error" }))[1]).toBe("Paused");
});

test("what is wrong with a blueprint is told of its field", () => {
  const good = { name: "poet", description: "", prompt: "Write.", tags: "", model: "", config: "{}" };
  expect(problemsIn(good)).toEqual({});
  expect(Object.keys(problemsIn({ ...good, name: "two words", prompt: " ", config: "[]" }))).toEqual(["name", "prompt", "config"]);
  expect(problemsIn({ ...good, config: "{" }).config).toContain("not valid JSON");
});

const schedule = (more: Partial<Schedule>): Schedule => ({
  ...{ id: "s1", name: "News", agentType: "guide", input: "Look.", status: "active", nextRunAt: null, words: "", lastRun: null },
  ...{ type: "cron", cron: "0 7 * * 1-5", runAt: null, intervalMs: null, timezone: "Europe/Oslo", overlapPolicy: "skip", maxRetries: 0 },
  ...more,
});

test("what a schedule is made of is shown as it was written, and told as it was kept", () => {
  const cron = { type: "cron", cron: "0 7 * * 1-5", runAt: null, intervalMs: null, timezone: "Europe/Oslo" };
  expect(whenOf(writtenOf(schedule({})))).toEqual(cron);
  const once = { ...cron, type: "once" as const, cron: null, runAt: "2026-12-01T08:00:30.000Z" };
  expect(whenOf(writtenOf(schedule(once)))).toEqual(once);
  for (const [intervalMs, every, unit] of [[90_000, "90", "seconds"], [7_200_000, "2", "hours"], [1_500, "1.5", "seconds"]] as const) {
    const often = { ...cron, type: "interval" as const, cron: null, intervalMs };
    expect(writtenOf(schedule(often))).toMatchObject({ every, unit });
    expect(whenOf(writtenOf(schedule(often)))).toEqual(often);
  }
});

test("what a page knows to be wrong with a schedule is told of its field, and the hub is not asked", () => {
  const good = writtenOf(schedule({}));
  expect(problemsInSchedule(good)).toEqual({});
  expect(Object.keys(problemsInSchedule({ ...good, name: " ", agentType: "", input: "\n" }))).toEqual(["name", "agentType", "input"]);
  for (const every of ["", "soon", "0", "-1", "1e999"]) expect(whenOf({ ...good, type: "interval", every })).toBeNull();
  expect(whenOf({ ...good, type: "once", at: "" })).toBeNull();
  expect(problemsInSchedule({ ...good, at: "", every: "" })).toEqual({});
});

test("a run that waits for people says so, as its thread does", () => {
  const run = { status: "running" } as ScheduleRun;
  expect(stateOf(run)).toEqual(["running", "Running"]);
  expect(stateOf(run, thread("t", "", { status: "paused", reason: "hitl" }))).toEqual(["interrupted", "Needs approval"]);
  expect(stateOf({ ...run, status: "skipped" })[1]).toBe("Left out");
});

test("of schedules the one is next that begins first, paused ones are none", () => {
  const later = schedule({ nextRunAt: "2026-12-02T07:00:00+01:00" });
  const first = schedule({ nextRunAt: "2026-12-02T05:30:00Z" });
  expect(nextOf([later, schedule({}), first])).toBe(first);
  expect(nextOf([schedule({})])).toBeUndefined();
});

test("how far a moment is away is said in its largest unit, and never rounded to what it is not", () => {
  const at = (seconds: number) => distance(seconds * 1_000, 0);
  expect([at(0.4), at(1), at(59), at(90), at(7_199), at(25 * 3_600)]).toEqual(["now", "in 1 sec.", "in 59 sec.", "in 1 min.", "in 1 hr.", "in 1 day"]);
  expect([at(0), at(-59), at(-60), at(-47 * 3_600)]).toEqual(["just now", "just now", "1 min. ago", "1 day ago"]);
});

test("a moment is told in the zone of its schedule, which is named where it is not the person's own", () => {
  expect(exactly("2031-12-01T06:00:00Z", "Asia/Tokyo")).toBe("Mon, 1 Dec 2031, 15:00 Asia/Tokyo");
  expect(exactly("2031-12-01T06:00:00Z", "Mars/Olympus")).toContain("Dec 2031");
});

test("a name that would turn a sentence round stands still in it", () => {
  expect(within("a\u202eb\u2069")).toBe("\u2068ab\u2069");
});
