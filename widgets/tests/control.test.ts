import { beforeEach, expect, test, vi } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import { Comm } from "../src/comm";
import { controlOf } from "../src/control";
import { Store } from "../src/store";

class FakeComm {
  sent: { type?: string; [field: string]: unknown }[] = [];
  opened = false;
  isDisposed = false;
  onMsg: () => void = () => {};
  open = () => (this.opened = true);
  send = (data: { type?: string }) => void this.sent.push(data);
}

let comms: FakeComm[];
let kernel: { supportsSubshells: boolean; createComm: (target: string) => FakeComm };

function modelOf(kernel: object | undefined): FakeModel {
  const model = new FakeModel(emptyState(), { session_id: "s1" });
  model.answer = () => {};
  return Object.assign(model, { widget_manager: { kernel } });
}

beforeEach(() => {
  vi.useFakeTimers();
  comms = [];
  kernel = {
    supportsSubshells: true,
    createComm: (target) => {
      expect(target).toBe("sagents.control");
      comms.push(new FakeComm());
      return comms.at(-1)!;
    },
  };
});

test("a kernel that answers apart is told on the comm of our own, of all sessions on one", () => {
  const model = modelOf(kernel);
  const store = new Store(new Comm(model.asModel()));
  new Store(new Comm(modelOf(kernel).asModel()));
  expect(comms).toHaveLength(1);
  expect(comms[0]).toMatchObject({ opened: true, sent: [{ type: "ping" }] });
  void store.request("cancel", { run_id: "r1" });
  expect(model.sent.map((message) => message.type)).toEqual(["hello", "cancel"]);
  comms[0]!.onMsg();
  void store.request("cancel", { run_id: "r2" });
  expect(model.sent).toHaveLength(2);
  expect(comms[0]!.sent.at(-1)).toMatchObject({ type: "cancel", run_id: "r2", session_id: "s1" });
});

test("one that does not answer is told on the widget's comm, as is one without comms", () => {
  const model = modelOf(kernel);
  const store = new Store(new Comm(model.asModel()));
  void store.request("cancel");
  expect(model.sent.at(-1)).toMatchObject({ type: "cancel" });
  for (const other of [undefined, {}, { ...kernel, supportsSubshells: false }]) {
    expect(controlOf(modelOf(other).asModel())).toBeNull();
  }
});

test("a kernel that computes is asked again until it answers, ever more seldom", () => {
  const heard = vi.fn();
  const control = controlOf(modelOf(kernel).asModel())!;
  control.whenItWorks(heard);
  vi.advanceTimersByTime(3_600);
  expect(comms[0]!.sent).toHaveLength(4);
  expect(heard).not.toHaveBeenCalled();
  comms[0]!.onMsg();
  expect(heard).toHaveBeenCalledTimes(1);
  expect(control.works).toBe(true);
  vi.advanceTimersByTime(1_000_000);
  expect(comms[0]!.sent).toHaveLength(4);
});

test("it is opened on its subshell, where a kernel that computes learns of it", async () => {
  let started = () => {};
  const createComm = kernel.createComm;
  kernel.createComm = (target) => {
    const subshellStarted = new Promise<void>((resolve) => (started = resolve));
    return Object.assign(createComm(target), { subshellStarted });
  };
  controlOf(modelOf(kernel).asModel());
  vi.advanceTimersByTime(10_000);
  expect(comms[0]).toMatchObject({ opened: false, sent: [] });
  started();
  await vi.advanceTimersByTimeAsync(0);
  expect(comms[0]).toMatchObject({ opened: true, sent: [{ type: "ping" }] });
});

test("a restarted kernel gets a new comm", () => {
  controlOf(modelOf(kernel).asModel());
  comms[0]!.isDisposed = true;
  vi.advanceTimersByTime(100_000);
  expect(comms[0]!.sent).toHaveLength(1);
  expect(controlOf(modelOf(kernel).asModel())?.works).toBe(false);
  expect(comms).toHaveLength(2);
});

test("a page that is connected again asks for what it missed", () => {
  let hear = (_: unknown, _status: string) => {};
  const model = modelOf({ ...kernel, connectionStatusChanged: { connect: (tell: typeof hear) => (hear = tell) } });
  const store = new Store(new Comm(model.asModel()));
  store.receive({ type: "snapshot", seq: 10, state: emptyState() });
  hear(kernel, "connecting");
  expect(model.sent.filter(({ type }) => type === "hello")).toHaveLength(1);
  hear(kernel, "connected");
  expect(model.sent.at(-1)).toEqual({ type: "hello", have: 10 });
});

test("a page whose notebook was closed tells the kernel nothing more", async () => {
  let leave = () => {};
  const left = { ...kernel, isDisposed: false, disposed: { connect: (tell: typeof leave) => (leave = tell) } };
  const model = modelOf(left);
  const store = new Store(new Comm(model.asModel()));
  left.isDisposed = comms[0]!.isDisposed = true;
  leave();
  expect(store.transport.heardWhileBusy).toBe(false);
  expect(comms).toHaveLength(1);
  const told = model.sent.length;
  document.dispatchEvent(new Event("visibilitychange"));
  vi.advanceTimersByTime(100_000);
  expect(model.sent).toHaveLength(told);
  expect(store.lost).toBe(true);
  await expect(store.request("cancel")).rejects.toThrow();
});
