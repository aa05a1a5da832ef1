import { mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { HostError } from "../../model/errors.ts";
import type { RunEvent } from "../../model/event.ts";
import { type Journal, openJournal } from "./journal.ts";
import { type LogFile, openLogFile } from "./log-file.ts";

const directories: string[] = [];
afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true });
});

function setUp({ memoryBytes = 1_000_000, maxBytes = 100_000_000, wrap = (file: LogFile): LogFile => file } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "drover-journal-"));
  directories.push(directory);
  const path = join(directory, "r.1.jsonl");
  const journal = openJournal({
    run_id: "r",
    attempt: 1,
    now: () => new Date(0),
    memoryBytes,
    maxBytes,
    open: () => wrap(openLogFile(path, { create: true })),
  });
  return { journal, path };
}

const line = (text: string): RunEvent => ({ type: "output", stream: "stdout", text });
const completed = { status: "completed", exit_code: 0, text: null } as const;

/** Ships everything in batches, as a shipper would. */
function shipAll(journal: Journal, maxBytes: number): { ns: number[]; batches: number } {
  const ns: number[] = [];
  for (let batches = 0; ; batches++) {
    const { events, isComplete } = journal.next(maxBytes);
    ns.push(...events.map(({ n }) => n));
    if (events.length > 0) journal.ack(events.at(-1)!.n);
    if (isComplete && events.length === 0) return { ns, batches };
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

test("writes each event to the file at once, numbered without gaps, and the outcome last", () => {
  const { journal, path } = setUp();
  journal.append(line("a"));
  expect(readFileSync(path, "utf8")).toContain('"n":1');
  journal.append(line("b"));
  journal.finish(completed);
  const lines = readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text) as { n?: number; outcome?: unknown; last_n?: number });
  expect(lines.map(({ n }) => n)).toEqual([1, 2, undefined]);
  expect(lines.at(-1)).toMatchObject({ outcome: completed, last_n: 2 });
});

test("reads events that do not fit into memory back from the file, in order and each only once", () => {
  const { journal } = setUp({ memoryBytes: 500 });
  for (let i = 0; i < 1000; i++) journal.append(line(`line ${i} é`));
  const first = journal.next(300);
  expect(first.isComplete).toBe(false);
  journal.ack(first.events.at(-1)!.n);
  for (let i = 0; i < 10; i++) journal.append(line("while shipping"));
  const { ns } = shipAll(journal, 4000);
  expect([...first.events.map(({ n }) => n), ...ns]).toEqual(upTo(1010));
  expect(journal.unshippedBytes).toBe(0);
});

test("limits a batch to its size, but always includes one event", () => {
  const { journal } = setUp();
  journal.append(line("x".repeat(10_000)));
  journal.append(line("y"));
  expect(journal.next(100).events.map(({ n }) => n)).toEqual([1]);
});

test("sends events again if the coordinator has fewer events than it once acknowledged", () => {
  const { journal } = setUp({ memoryBytes: 500 });
  for (let i = 0; i < 100; i++) journal.append(line(`line ${i}`));
  shipAll(journal, 1000);
  journal.ack(40);
  expect(shipAll(journal, 1000).ns).toEqual(upTo(100).slice(40));
});

test("a full log refuses more output, but still accepts an error", () => {
  const { journal } = setUp({ maxBytes: 100_000 });
  let appended = 0;
  while (journal.append(line("x".repeat(1000)))) appended++;
  expect(appended).toBeGreaterThan(10);
  expect(journal.append({ type: "error", message: "full" })).toBe(true);
  expect(journal.lastN).toBe(appended + 1);
});

test("after a disk failure, ships the remaining events from memory without a gap and keeps the outcome", async () => {
  let failing = false;
  const full = new HostError({ code: "DROVER-STA-002", message: "no space" });
  const { journal, path } = setUp({
    wrap: (file) => ({
      ...file,
      get size() {
        return file.size;
      },
      append(text) {
        if (failing) throw full;
        file.append(text);
      },
    }),
  });
  journal.append(line("a"));
  failing = true;
  expect(() => journal.append(line("b"))).toThrow("no space");
  expect(journal.writeError).toBe(full);
  await expect(journal.sync()).rejects.toThrow("no space");
  journal.append({ type: "error", message: "stopped" });
  journal.finish(completed);
  expect(journal.outcome).toEqual(completed);
  expect(shipAll(journal, 1000).ns).toEqual([1, 2]);
  expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(1);
});
