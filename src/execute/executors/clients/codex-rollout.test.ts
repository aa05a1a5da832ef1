import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readRollout } from "./codex-rollout.ts";

const thread = "01a1e1fc-d61e-7cb2-ae18-2d213749191e";
const end = '{"type":"rollout_end"}';
let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), "drover-rollout-"))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

function directoryFor(day: string): string {
  const directory = join(home, "sessions", ...day.split("-"));
  mkdirSync(directory, { recursive: true });
  return directory;
}
const file = (day: string): string => join(directoryFor(day), `rollout-${day}T01-33-25-${thread}.jsonl`);
const used = (tokens: number): string => JSON.stringify({ type: "token_usage_record", payload: { tokens } });
const started = '{"type":"event_msg","payload":{"type":"task_started"}}';

test.each(["2026-11-16", "2026-11-15", "2026-11-17"])("reads only the last turn, in the directory %s", async (day) => {
  const other = '{"type":"event_msg","payload":{"type":"token_count"}}';
  writeFileSync(file(day), [started, used(1), started, other, used(2), ""].join("\n"));
  expect(await readRollout(home, thread)).toEqual([used(2), end]);
});

test("returns no lines without a file", async () => {
  expect(await readRollout(home, thread)).toEqual([end]);
  expect(await readRollout(home, null)).toEqual([end]);
  expect(await readRollout(home, "x")).toEqual([end]);
});

test("reports a link instead of following it", async () => {
  writeFileSync(join(home, "elsewhere"), used(3));
  symlinkSync(join(home, "elsewhere"), file("2026-11-16"));
  const lines = await readRollout(home, thread);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("Cannot read");
});
