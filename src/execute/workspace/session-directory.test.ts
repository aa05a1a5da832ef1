import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createInvocation } from "../../../test/fixtures/execute/memory-port.ts";
import { openSessionDirectory } from "./session-directory.ts";

let stateDirectory: string;
let root: string;
beforeEach(() => {
  stateDirectory = mkdtempSync(join(tmpdir(), "drover-sessions-"));
  // The marks of sessions are kept beside the directory.
  root = join(stateDirectory, "sessions");
  mkdirSync(root);
  mkdirSync(join(root, "origin"));
  for (let index = 0; index < 500; index += 1) writeFileSync(join(root, "origin", `file-${index}`), "x");
});
afterEach(() => rmSync(stateDirectory, { recursive: true, force: true }));

const owner = { runner_id: "r", store_id: "s" };
const options = (signal: AbortSignal) => ({ root, owner, label: "work directory", signal });
const fork = (session_id: string, signal = new AbortController().signal) =>
  openSessionDirectory(
    createInvocation("run", {}, { mode: "fork", session_id, forked_from: "origin" }),
    options(signal),
  );
const resume = (signal = new AbortController().signal) =>
  openSessionDirectory(createInvocation("run", {}, { mode: "resume", session_id: "origin" }), options(signal));

test("a resume waits until all copies of its session are done", async () => {
  const order: string[] = [];
  const [first, second] = [fork("one"), fork("two")];
  const resumed = resume().then(() => order.push("resumed"));
  await Promise.all([first.then(() => order.push("copied")), second.then(() => order.push("copied")), resumed]);
  expect(order).toEqual(["copied", "copied", "resumed"]);
});

test("a stop ends the wait for a copy, and other sessions do not wait", async () => {
  const forkResult = fork("one");
  const controller = new AbortController();
  const resumeResult = resume(controller.signal);
  controller.abort();
  expect(await resumeResult).toEqual({ ok: false, reason: null });
  const other = openSessionDirectory(
    createInvocation("run", {}, { mode: "start", session_id: "other" }),
    options(new AbortController().signal),
  );
  expect(await Promise.race([other.then(() => "other"), forkResult.then(() => "forked")])).toBe("other");
  await forkResult;
});
