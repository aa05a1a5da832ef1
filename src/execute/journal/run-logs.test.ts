import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startLogSweep } from "./log-sweep.ts";
import { createRunLog, findRunLogs } from "./run-logs.ts";

function logOptions(directory: string, runner: string) {
  return { directory, runner, now: () => new Date(), memoryBytes: 1000, maxBytes: 100_000 };
}

it("finds its own logs among those that other runners are creating or have just removed", () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-logs-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const runner of ["own", "other"]) createRunLog(`of-${runner}`, 1, false, logOptions(directory, runner)).close();
  const created = join(directory, "created.1.jsonl");
  writeFileSync(created, "");
  // This entry is listed, but gone when it is opened.
  symlinkSync(join(directory, "nowhere"), join(directory, "removed.1.jsonl"));

  const foundLogs = findRunLogs(logOptions(directory, "own"));
  expect(foundLogs.map(({ journal }) => journal.run_id)).toEqual(["of-own"]);
  for (const { journal } of foundLogs) journal.close();
  expect(existsSync(created)).toBe(true);
});

it("does not ship a kept log again, and removes it when it is old", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-logs-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const logs = logOptions(directory, "own");
  const createFinishedLog = (run_id: string, keepsFile: boolean) => {
    const journal = createRunLog(run_id, 1, keepsFile, logs);
    journal.append({ type: "assistant", text: "hello" });
    journal.finish({ status: "completed", exit_code: 0, text: null });
    return journal;
  };
  await createFinishedLog("kept", true).markShipped();
  await createFinishedLog("fresh", true).markShipped();
  await createFinishedLog("procedural", false).markShipped();
  createFinishedLog("unshipped", true).close();
  // This log looks as if the runner died before it marked the log as shipped.
  const foundLogs = findRunLogs(logs);
  expect(foundLogs.map(({ journal }) => journal.run_id)).toEqual(["unshipped"]);
  const { journal } = foundLogs[0]!;
  journal.close();

  for (const name of ["kept", "unshipped"]) utimesSync(join(directory, `${name}.1.jsonl`), 1, 1);
  writeFileSync(join(directory, "other.stdout"), "");
  const keepMs = 1000 * 3600;
  const sweep = startLogSweep({
    directory,
    keepMs,
    everyMs: 60_000,
    now: () => new Date(),
    onNotice: (...all) => expect(all).toBe("silence"),
  });
  await expect
    .poll(() => readdirSync(directory).sort())
    .toEqual(["fresh.1.jsonl", "other.stdout", "unshipped.1.jsonl"]);
  await sweep.stop();
});
