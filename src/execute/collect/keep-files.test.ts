import { mkdtempSync, writeFileSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RunEvent } from "../../model/event.ts";
import type { StopReason } from "../../model/states.ts";
import { keepFiles } from "./keep-files.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-keep-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Keeps two files and calls `duringRead` while the first is being read. */
function setUp(duringRead: () => void) {
  for (const name of ["a", "b"]) writeFileSync(join(directory, name), name);
  const files = ["a", "b"].map((path) => ({
    path,
    size: 1,
    open() {
      if (path === "a") duringRead();
      return open(join(directory, path));
    },
  }));
  const [run, lostSignal] = [new AbortController(), new AbortController()];
  const recorded: RunEvent[] = [];
  let uploads = 0;
  const keep = () =>
    keepFiles(files, {
      run: { run_id: "r", attempt: 1 },
      async upload(_request, content) {
        uploads++;
        for await (const _chunk of content);
        return { upload: "stored" };
      },
      signal: run.signal,
      lostSignal: lostSignal.signal,
      times: { retryMs: 1, retryForMs: 1000, retryForMsAfterStop: 1000, stallMs: 10_000 },
      random: Math.random,
      monotonic: () => performance.now(),
      record: (event) => void recorded.push(event),
      onFenced: () => undefined,
    });
  return { run, lostSignal, recorded, keep, uploads: () => uploads };
}

test.each<StopReason>(["user", "shutdown", "lease_lost", "output_limit", "timeout"])(
  "keeps no files if the run is stopped (%s) while they are read",
  async (reason) => {
    const { run, recorded, keep, uploads } = setUp(() => run.abort(reason));
    expect(await keep()).toMatchObject({ ok: false });
    expect(recorded).toEqual([]);
    expect(uploads()).toBe(0);
  },
);

test.each<[StopReason, boolean]>([
  ["timeout", true],
  ["idle", true],
  ["budget", true],
  ["user", false],
  ["shutdown", false],
  ["lease_lost", false],
  ["output_limit", false],
])("keeps the files of a run that was already stopped (%s): %s", async (reason, ok) => {
  const { run, keep } = setUp(() => undefined);
  run.abort(reason);
  expect(await keep()).toMatchObject({ ok });
});

test("keeps no files of a run that reached its time limit if the attempt is lost during the upload", async () => {
  const { run, lostSignal, recorded, keep } = setUp(() => lostSignal.abort("lease_lost"));
  run.abort("timeout");
  expect(await keep()).toMatchObject({ ok: false });
  expect(recorded).toEqual([]);
});
