import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import { createCleanups, poll } from "../../../test/fixtures/execute/registered.ts";
import type { Invocation } from "../../model/executor.ts";
import type { SaveSessionRequest } from "../../model/runner-port.ts";
import { createRedactor } from "../../redact/redactor.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";

const cleanups = createCleanups();
const mib = 1024 * 1024;
const secret = "canary-6f1d20b7e4";

/** Three quarters are random, so that it does not compress well. */
const state = Buffer.from(randomBytes(15 * mib).toString("base64"));
state.write(secret, mib - 5);

async function setUp() {
  const coordinator = createMemoryCoordinator();
  const saves: SaveSessionRequest[] = [];
  const port = {
    ...coordinator.port,
    saveSession: (request: SaveSessionRequest) => (saves.push(request), coordinator.port.saveSession(request)),
  };
  const loaded: { format: string; hash: string; bytes: number }[] = [];
  const executor = defineExecutor({
    name: "large",
    can: { resume: true, fork: true, state: true },
    async execute({ prompt, context }) {
      const from = await context.session.load();
      if (from) loaded.push({ format: from.format, hash: hashBytes(from.bytes), bytes: from.bytes.length });
      while (prompt === "wait" && !context.signal.aborted) await new Promise(setImmediate);
      const bytes = prompt === "grow" ? Buffer.concat([from!.bytes, Buffer.from("and more")]) : state;
      if (prompt !== "look") await context.session.save("large-1", bytes, { files: true, last: true });
      return "ok";
    },
  });
  const fixture = runnerFixture({ port, executor });
  const runner = await fixture.open();
  cleanups.push(fixture.remove, runner.stop);
  const run = (prompt: string, overrides: Partial<Invocation> = {}) =>
    coordinator.submit({ type: "autonomous" }, { prompt, ...overrides });
  const waitForEnd = async (run_id: string) => {
    await poll(() => coordinator.runs.get(run_id)!.outcome).not.toBeNull();
    return coordinator.runs.get(run_id)!.outcome!;
  };
  return { coordinator, run, waitForEnd, saves, loaded };
}

const hashBytes = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

test("saves a state of 20 MiB in redacted parts, and later only the new ones", async () => {
  const { run, waitForEnd, saves, loaded, coordinator } = await setUp();
  const session_id = run("save");
  expect(await waitForEnd(session_id)).toMatchObject({ status: "completed" });
  const redactedState = createRedactor({ variables: { TEST_API_KEY: secret } }).exactBytes(state);
  expect(Buffer.from(redactedState).includes(secret)).toBe(false);
  const takeSentPaths = () =>
    saves.splice(0).flatMap(({ files }) => files.flatMap(({ type, path }) => (type ? [path] : [])));
  const first = takeSentPaths();
  expect(first).toHaveLength(Math.ceil(redactedState.length / mib));

  expect(await waitForEnd(run("grow", { mode: "resume", session_id }))).toMatchObject({ status: "completed" });
  expect(loaded).toEqual([{ format: "large-1", hash: hashBytes(redactedState), bytes: redactedState.length }]);
  expect(takeSentPaths()).toHaveLength(1);
  expect([...coordinator.states.get(session_id)!.files.keys()]).toHaveLength(first.length);

  const fork = run("save", { mode: "fork", session_id: "copy", forked_from: session_id });
  expect(await waitForEnd(fork)).toMatchObject({ status: "completed" });
  expect(takeSentPaths()).toHaveLength(first.length);
  expect(await waitForEnd(run("look", { mode: "resume", session_id: "copy" }))).toMatchObject({ status: "completed" });
  expect(loaded.at(-1)).toEqual({ format: "large-1", hash: hashBytes(redactedState), bytes: redactedState.length });
});

test("refuses to continue from a state with a missing or damaged part", async () => {
  const { run, waitForEnd, coordinator } = await setUp();
  const session_id = run("save");
  await waitForEnd(session_id);
  const { files } = coordinator.states.get(session_id)!;
  const [part] = [...files.values()];
  files.set(part!.path, { ...part!, bytes: Buffer.from("other").toString("base64") });
  const outcome = { status: "failed", reason: "session_not_found" };
  expect(await waitForEnd(run("look", { mode: "resume", session_id }))).toMatchObject(outcome);
  files.delete(part!.path);
  expect(await waitForEnd(run("look", { mode: "resume", session_id }))).toMatchObject(outcome);
});

test("still makes the last save of a stopped run", async () => {
  const { run, waitForEnd, coordinator } = await setUp();
  const run_id = run("wait");
  await poll(() => coordinator.events(run_id).length).toBeGreaterThan(0);
  coordinator.order(run_id, { stop: "user" });
  await waitForEnd(run_id);
  expect(coordinator.states.get(run_id)).toMatchObject({ run_id });
});
