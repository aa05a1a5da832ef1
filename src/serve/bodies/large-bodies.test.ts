import { afterEach, expect, test } from "vitest";
import type { Worker } from "node:worker_threads";
import { startThread } from "../../define/start-thread.ts";
import { bodyThread } from "./body-message.ts";
import { createLargeBodies, type LargeBodies } from "./large-bodies.ts";

let bodies: LargeBodies;
const threads: Worker[] = [];
const start = (idleMs?: number): LargeBodies => {
  bodies = createLargeBodies(async () => {
    const thread = await startThread(bodyThread);
    threads.push(thread);
    return thread;
  }, idleMs);
  return bodies;
};
afterEach(async () => {
  await bodies.stop();
  threads.length = 0;
});

/** Sends text in chunks of a few bytes. */
const send = (text: string, caller = "a"): Promise<unknown> => {
  const body = bodies.open(caller, "POST /runner/sessions");
  for (let index = 0; index < text.length; index += 7) body.push(Buffer.from(text.slice(index, index + 7)));
  return body.end();
};
const request = (id: string): string => JSON.stringify({ runner_id: "r", epoch: 1, session_ids: [id] });

test("reads bodies that arrive at the same time, each for its own caller", async () => {
  start();
  const ids = Array.from({ length: 20 }, (_, index) => `session-${index}`);
  const values = await Promise.all(ids.map((id, index) => send(request(id), `caller-${index % 3}`)));
  expect(values).toEqual(ids.map((id) => JSON.parse(request(id))));
  expect(threads).toHaveLength(1);
});

test.each([
  ["text that is not JSON", "{", "DROVER-API-001"],
  ["a forbidden key", '{"__proto__": 1}', "DROVER-API-005"],
  ["a number that would be altered", '{"n": 12345678901234567890}', "DROVER-PAR-005"],
  ["a body that the route does not take", '{"sessions": []}', "DROVER-API-006"],
])("refuses %s as the event loop would", async (_, text, code) => {
  start();
  await expect(send(text)).rejects.toMatchObject({ problem: { code, next: expect.any(String) } });
});

test("forgets a body that was cut off and reads the next one", async () => {
  start();
  const incomplete = bodies.open("a", "POST /runner/sessions");
  incomplete.push(Buffer.from('{"runner_id": "cut'));
  incomplete.drop();
  expect(await send(request("s"))).toEqual(JSON.parse(request("s")));
});

test("fails the bodies of a thread that dies and starts another one", async () => {
  start();
  await send(request("first"));
  const waiting = send(request("second"));
  const failed = expect(waiting).rejects.toThrow("has ended");
  await threads[0]!.terminate();
  await failed;
  expect(await send(request("third"))).toEqual(JSON.parse(request("third")));
  expect(threads).toHaveLength(2);
});

test("fails a body whose thread died before the body was complete", async () => {
  start();
  await send(request("first"));
  const body = bodies.open("a", "POST /runner/sessions");
  body.push(Buffer.from('{"runner_id": "r"'));
  await threads[0]!.terminate();
  await expect(body.end()).rejects.toThrow("has ended");
});

test("starts a thread again after it could not be started", async () => {
  let isBroken = true;
  bodies = createLargeBodies(() => (isBroken ? Promise.reject(new Error("no threads left")) : startThread(bodyThread)));
  await expect(send(request("first"))).rejects.toThrow("no threads left");
  isBroken = false;
  expect(await send(request("second"))).toEqual(JSON.parse(request("second")));
});

test("ends an idle thread, and starts one for the next body", async () => {
  start(1);
  await send(request("first"));
  await expect.poll(() => threads[0]!.threadId).toBe(-1);
  expect(await send(request("second"))).toEqual(JSON.parse(request("second")));
});

test("fails bodies after it was stopped", async () => {
  start();
  await bodies.stop();
  await expect(send(request("late"))).rejects.toThrow("stopped");
});
