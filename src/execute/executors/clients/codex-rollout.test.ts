import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readRollout } from "./codex-rollout.ts";

const thread = "01a1e1fc-d61e-7cb2-ae18-2d213749191e";
const endLine = '{"type":"rollout_end"}';
let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), "drover-rollout-"))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

function createDayDirectory(day: string): string {
  const directory = join(home, "sessions", ...day.split("-"));
  mkdirSync(directory, { recursive: true });
  return directory;
}
const toRolloutPath = (day: string): string => join(createDayDirectory(day), `rollout-${day}T01-33-25-${thread}.jsonl`);
const usageLine = (tokens: number): string => JSON.stringify({ type: "token_usage_record", payload: { tokens } });
const startLine = '{"type":"event_msg","payload":{"type":"task_started"}}';

test.each(["2026-11-16", "2026-11-15", "2026-11-17"])("reads only the last turn, in the directory %s", async (day) => {
  const otherLine = '{"type":"event_msg","payload":{"type":"token_count"}}';
  writeFileSync(toRolloutPath(day), [startLine, usageLine(1), startLine, otherLine, usageLine(2), ""].join("\n"));
  expect(await readRollout(home, thread)).toEqual([usageLine(2), endLine]);
});

test("returns only the end line if the thread has no file", async () => {
  expect(await readRollout(home, thread)).toEqual([endLine]);
  expect(await readRollout(home, null)).toEqual([endLine]);
  expect(await readRollout(home, "x")).toEqual([endLine]);
});

test("reports a link instead of following it", async () => {
  writeFileSync(join(home, "elsewhere"), usageLine(3));
  symlinkSync(join(home, "elsewhere"), toRolloutPath("2026-11-16"));
  const lines = await readRollout(home, thread);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("Cannot read");
});
