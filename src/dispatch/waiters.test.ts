import { expect, it } from "vitest";
import { createWaiters, type Seat } from "./waiters.ts";

const facts = (runner_id: string, tags: string[] = []) => ({
  runner_id,
  hostname: "host",
  project_dir: "/",
  executor_profile: "p",
  executor_type: "t",
  tags,
  require_matching_tags: false,
});
const woken = (...seats: Seat[]) => seats.map((seat) => seat.takeWakes().length);
const long = 3_600_000;
const never = new AbortController().signal;

it("wakes one for each run, each in turn, and fills up who is awake once nobody sleeps", () => {
  const waiters = createWaiters();
  const [a, b, c] = [waiters.sit(facts("a"), 2), waiters.sit(facts("b"), 2), waiters.sit(facts("c", ["x"]), 1)];
  waiters.wakeFor({});
  waiters.wakeFor({});
  expect(woken(a, b, c)).toEqual([1, 1, 0]);
  waiters.wakeFor({});
  waiters.wakeFor({});
  expect(woken(a, b, c)).toEqual([1, 0, 1]);
  waiters.wakeFor({ tags: ["x"] });
  waiters.wakeFor({ tags: ["x"] });
  expect(woken(a, b, c)).toEqual([0, 0, 1]);
  for (let i = 0; i < 9; i += 1) waiters.wakeFor({});
  expect(woken(a, b, c)).toEqual([2, 2, 1]);
});

it("passes on what a seat was woken for and did not look after", async () => {
  const waiters = createWaiters();
  const [a, b] = [waiters.sit(facts("a"), 1), waiters.sit(facts("b"), 1)];
  waiters.wakeFor({});
  a.leave([]);
  expect(woken(b)).toEqual([1]);
  const c = waiters.sit(facts("c"), 1);
  b.leave([{}]);
  await c.wait(long, never);
  expect(woken(c)).toEqual([1]);
  expect(waiters.runnerIds).toEqual(["c"]);
});

it("does not sleep over what came before it lay down, and gets up when it is called", async () => {
  const waiters = createWaiters();
  const seat = waiters.sit(facts("a"), 1);
  waiters.wakeRunner("a");
  await seat.wait(long, never);
  expect(woken(seat)).toEqual([0]);
  const asleep = seat.wait(long, never);
  waiters.wakeAll();
  await asleep;
  woken(seat);
  const gone = new AbortController();
  const again = seat.wait(long, gone.signal);
  gone.abort();
  await again;
});

it("wakes one that takes the runs of one agent alone beside another, never in its place", async () => {
  const waiters = createWaiters();
  const picky = waiters.sit({ ...facts("picky"), only_agent: "echo" }, 1);
  const plain = waiters.sit({ ...facts("plain"), only_agent: null }, 1);
  waiters.wakeFor({});
  expect(woken(plain)).toEqual([1]);
  // at once: it was woken
  await picky.wait(long, never);
});
