// Cells that the page runs are told to the kernel, once each.
import { beforeEach, expect, test } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import { Comm } from "../src/comm";
import { Store } from "../src/store";

type Hear = (kernel: unknown, message: object) => void;
let hear: Hear[];
let kernel: object;

beforeEach(() => {
  hear = [];
  kernel = { anyMessage: { connect: (one: Hear) => hear.push(one) } };
});

function modelOf(session_id: string, of: object | null = kernel): FakeModel {
  const model = new FakeModel(emptyState(), { session_id });
  model.answer = () => {};
  return Object.assign(model, { widget_manager: { kernel: of } });
}
const storeOf = (model: FakeModel) => new Store(new Comm(model.asModel()));
const told = (model: FakeModel) => model.sent.filter(({ type }) => type === "ran");

function pass(direction: "send" | "recv", msg_type: string, msg_id: string, metadata?: object): void {
  for (const one of hear) one(kernel, { direction, msg: { header: { msg_type, msg_id }, metadata } });
}

test("a cell that is run is told, and nothing else that passes", () => {
  const model = modelOf("s1");
  storeOf(model);
  pass("send", "execute_request", "m1", { cellId: "c1" });
  pass("recv", "execute_request", "m2", { cellId: "c1" });
  pass("send", "execute_request", "m3");
  pass("send", "execute_request", "m4", {});
  pass("send", "comm_msg", "m5", { cellId: "c1" });
  expect(told(model)).toEqual([{ type: "ran", cell: "c1", request: "m1" }]);
});

test("it is told once, by a session that the kernel has still", () => {
  const [first, second] = [modelOf("s1"), modelOf("s2")];
  const closed = storeOf(first);
  storeOf(second);
  expect(hear).toHaveLength(1);
  pass("send", "execute_request", "m1", { cellId: "c1" });
  closed.close();
  pass("send", "execute_request", "m2", { cellId: "c1" });
  expect(told(first).map(({ request }) => request)).toEqual(["m1"]);
  expect(told(second).map(({ request }) => request)).toEqual(["m2"]);
});

test("hosts that do not say what passes are left alone", () => {
  for (const other of [null, {}]) storeOf(modelOf("s1", other));
  expect(hear).toEqual([]);
});
