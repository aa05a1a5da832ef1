import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { sampleRun } from "../../test/fixtures/record/sample.ts";
import type { NumberedEvent, StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { Reads } from "../model/store.ts";
import { openStore, type SqliteStore } from "../record/open.ts";
import { createFeedHub } from "./feed-hub.ts";
import type { FeedSource, Sink } from "./feed.ts";
import { createOwnerLookup } from "./owner-lookup.ts";
import { createGlobalFeedSource, createRunFeedSource } from "./feed-sources.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

test("delivers every event once and in order to every follower, however slow or late", async () => {
  const { store, hub, start, append, finish } = await setUp();
  await start("run-1");
  const readers = Array.from({ length: 20 }, (_, index) =>
    createReader(index % 4 === 0 ? 30 : index % 4 === 1 ? 3 : 0),
  );
  for (const reader of readers.slice(0, 10)) hub.follow(createRunFeedSource(store.read, "run-1"), 0, reader.sink);
  for (let batch = 0; batch < 50; batch += 1) {
    await append("run-1", batch * 40, 40);
    if (batch === 25)
      for (const reader of readers.slice(10)) hub.follow(createRunFeedSource(store.read, "run-1"), 0, reader.sink);
  }
  await finish("run-1");
  for (const reader of readers) {
    const events = await reader.whenEnded;
    expect(events.map((event) => event.seq)).toEqual(Array.from({ length: 2001 }, (_, index) => index + 1));
    expect(events.at(-1)?.event.type).toBe("result");
  }
  expect(hub.followers).toBe(0);
});

test("sends a heartbeat at once to a follower that starts at the end, and then every later event", async () => {
  const { store, hub, start, append } = await setUp();
  await start("run-1");
  let written = "";
  const sink: Sink = {
    write: (bytes) => ((written += Buffer.from(bytes).toString()), true),
    bufferedBytes: 0,
    drained: () => Promise.resolve(),
    end: () => undefined,
  };
  hub.follow(createGlobalFeedSource(store.read, null, createOwnerLookup(store.read)), Number.MAX_SAFE_INTEGER, sink);
  await expect.poll(() => written).toBe(": still here\n\n");
  await append("run-1", 0, 1);
  await expect.poll(() => written).toContain("data: ");
});

test("loses nothing if reads are slow and overtake each other", async () => {
  const log: StoredEvent[] = [];
  const add = (event: StoredEvent["event"]) =>
    log.push({
      run_id: "r",
      seq: log.length + 1,
      attempt: 1,
      n: log.length + 1,
      at: "",
      cursor: log.length + 1,
      event,
    });
  const source: FeedSource = {
    ...createRunFeedSource(noReads, "r"),
    async read(after, limit) {
      const events = log.slice(after, after + limit);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 8));
      return { events, reached: after + events.length };
    },
  };
  const hub = createFeedHub({ tickMs: 1, onError: (error) => expect(error).toBeUndefined() });
  const readers = Array.from({ length: 60 }, (_, index) => createReader(index % 3 === 0 ? 2 : 0));
  const waiting = [...readers];
  for (let n = 0; n < 300; n += 1) {
    add({ type: "output", stream: "stdout", text: String(n) });
    hub.announce(["r"]);
    const next = n % 5 === 0 ? waiting.pop() : undefined;
    if (next) hub.follow(source, 0, next.sink);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  add({
    type: "result",
    status: "completed",
    reason: null,
    error: null,
    exit_code: 0,
    result_text: null,
    result_data: null,
  });
  hub.announce(["r"]);
  for (const reader of readers)
    expect((await reader.whenEnded).map((event) => event.seq)).toEqual(log.map((event) => event.seq));
});

test("a follower that never reads neither delays the others nor uses up memory", async () => {
  const { store, hub, start, append, finish } = await setUp();
  await start("run-1");
  const stuck = createReader(Infinity);
  const quick = createReader(0);
  hub.follow(createRunFeedSource(store.read, "run-1"), 0, stuck.sink);
  hub.follow(createRunFeedSource(store.read, "run-1"), 0, quick.sink);
  for (let batch = 0; batch < 20; batch += 1) await append("run-1", batch * 100, 100);
  await finish("run-1");
  expect(await quick.whenEnded).toHaveLength(2001);
  expect(stuck.writes()).toBeLessThan(3);
});

test("shows a user only their own runs in the feed of all runs, and an admin all of them in cursor order", async () => {
  const { store, hub, start, append } = await setUp();
  await start("run-a", "ann");
  await start("run-b", "bob");
  const owners = createOwnerLookup(store.read);
  const ann = createReader(0);
  const admin = createReader(0);
  hub.follow(createGlobalFeedSource(store.read, "ann", owners), 0, ann.sink);
  hub.follow(createGlobalFeedSource(store.read, null, owners), 0, admin.sink);
  for (let batch = 0; batch < 10; batch += 1) {
    await append("run-a", batch, 1);
    await append("run-b", batch, 1);
  }
  await expect.poll(() => admin.seen().length).toBe(20);
  await expect.poll(() => ann.seen().length).toBe(10);
  expect(ann.seen().every((event) => event.run_id === "run-a")).toBe(true);
  const cursors = admin.seen().map((event) => event.cursor);
  expect(cursors).toEqual([...cursors].sort((a, b) => a - b));
  hub.stop();
  await Promise.all([ann.whenEnded, admin.whenEnded]);
});

test("sends events that are stored in quick succession in few batches", async () => {
  const { store, hub, start, append, finish } = await setUp();
  await start("run-1");
  const reader = createReader(0);
  hub.follow(createRunFeedSource(store.read, "run-1"), 0, reader.sink);
  for (let batch = 0; batch < 100; batch += 1) await append("run-1", batch * 20, 20);
  await finish("run-1");
  expect(await reader.whenEnded).toHaveLength(2001);
  expect(reader.writes()).toBeLessThan(200);
});

test("sends the first event after a quiet period immediately", async () => {
  const hub = createFeedHub({ tickMs: 2 ** 30, onError: (error) => expect(error).toBeUndefined() });
  let log: StoredEvent[] = [];
  const source: FeedSource = {
    ...createRunFeedSource(noReads, "r"),
    read: async (after) => {
      const events = log.filter(({ seq }) => seq > after);
      return { events, reached: events.at(-1)?.seq ?? after };
    },
    readLastPosition: async () => log.length,
  };
  const reader = createReader(0);
  hub.follow(source, 0, reader.sink);
  hub.announce(["r"]);
  await new Promise((resolve) => setImmediate(resolve));
  // The follower has caught up and now receives the shared batches.
  log = [storedEvent(1)];
  hub.announce(["r"]);
  await expect.poll(() => reader.seen().map(({ seq }) => seq)).toEqual([1]);
  hub.stop();
});

test("pauses after a cheap batch only in proportion to the time that it took", async () => {
  const { store, start, append } = await setUp();
  const hub = createFeedHub({ tickMs: 2 ** 30, onError: (error) => expect(error).toBeUndefined() });
  cleanups.push(
    store.changes(({ runs }) => hub.announce(runs)),
    hub.stop,
  );
  await start("run-1");
  const reader = createReader(0);
  hub.follow(createRunFeedSource(store.read, "run-1"), 0, reader.sink);
  for (let n = 1; n <= 5; n += 1) {
    await append("run-1", n - 1, 1);
    await expect.poll(() => reader.seen().map(({ seq }) => seq)).toHaveLength(n);
  }
});

test("sends events that arrive during an expensive batch together", async () => {
  const hub = createFeedHub({ onError: (error) => expect(error).toBeUndefined() });
  const log: StoredEvent[] = [];
  const source: FeedSource = {
    ...createRunFeedSource(noReads, "r"),
    async read(after) {
      const events = log.slice(after);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { events, reached: after + events.length };
    },
    readLastPosition: async () => log.length,
  };
  const reader = createReader(0);
  hub.follow(source, 0, reader.sink);
  for (let n = 1; n <= 200; n += 1) {
    log.push(storedEvent(n));
    hub.announce(["r"]);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await expect.poll(() => reader.seen().length).toBe(200);
  expect(reader.writes()).toBeLessThan(100);
  hub.stop();
});

test("shares pages among readers that are a page behind", async () => {
  const { store, hub, start, append, finish } = await setUp();
  await start("run-1");
  let reads = 0;
  const read = {
    ...store.read,
    events: (...page: Parameters<Reads["events"]>) => ((reads += 1), store.read.events(...page)),
  };
  const readers = Array.from({ length: 20 }, () => createReader(1, 64 * 1024));
  for (const { sink } of readers) hub.follow(createRunFeedSource(read, "run-1"), 0, sink);
  await append("run-1", 0, 1);
  await expect.poll(() => readers.every(({ seen }) => seen().length === 1)).toBe(true);
  const before = reads;
  for (let batch = 0; batch < 50; batch += 1) await append("run-1", 1 + batch * 20, 20);
  await finish("run-1");
  for (const { whenEnded } of readers) expect(await whenEnded).toHaveLength(1002);
  // If each of the 20 read for itself, there would be hundreds of reads.
  expect(reads - before).toBeLessThan(150);
});

test("sends new events to a follower that claims a position past the end, without delaying others", async () => {
  const { store, hub, start, append } = await setUp();
  await start("run-1");
  await append("run-1", 0, 5);
  let reads = 0;
  const countReads = (source: FeedSource): FeedSource => ({
    ...source,
    async read(...page) {
      reads += 1;
      // Yield, because a follower that reads without a pause would starve everything else, including this test.
      await new Promise(setImmediate);
      return source.read(...page);
    },
  });
  const owners = createOwnerLookup(store.read);
  const sources = [
    createRunFeedSource(store.read, "run-1"),
    createGlobalFeedSource(store.read, null, owners),
    createGlobalFeedSource(store.read, "ann", owners),
  ];
  const followers = sources.map((source) => {
    const [ahead, ordinary] = [createReader(0), createReader(0)];
    hub.follow(countReads(source), 900_000_000, ahead.sink);
    return { source: countReads(source), ahead, ordinary };
  });
  await expect.poll(() => reads).toBeGreaterThanOrEqual(3);
  for (const { source, ordinary } of followers) hub.follow(source, 0, ordinary.sink);
  for (const { ordinary } of followers) await expect.poll(() => ordinary.seen().length).toBe(5);
  await append("run-1", 5, 2);
  for (const { ahead, ordinary } of followers) {
    await expect.poll(() => ordinary.seen().length).toBe(7);
    await expect.poll(() => ahead.seen().map(({ seq }) => seq)).toEqual([6, 7]);
  }
  // A log without new events is not read again.
  const before = reads;
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(reads - before).toBeLessThan(10);
});

test("lets a follower continue after events that it had not read were removed", async () => {
  let log = [1, 2, 3, 4].map(storedEvent);
  let reads = 0;
  const source: FeedSource = {
    ...createRunFeedSource(noReads, "r"),
    readLastPosition: async () => log.at(-1)?.seq ?? 0,
    async read(after, limit) {
      reads += 1;
      await new Promise(setImmediate);
      const events = log.filter(({ seq }) => seq > after).slice(0, limit);
      return { events, reached: events.at(-1)?.seq ?? after };
    },
  };
  const hub = createFeedHub({ tickMs: 1, onError: (error) => expect(error).toBeUndefined() });
  const [early, late] = [createReader(0), createReader(0)];
  hub.follow(source, 0, early.sink);
  await expect.poll(() => early.seen().length).toBe(4);
  log = [];
  hub.follow(source, 2, late.sink);
  const before = reads;
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(reads - before).toBeLessThan(10);
  log = [storedEvent(5)];
  hub.announce(["r"]);
  for (const reader of [early, late]) await expect.poll(() => reader.seen().at(-1)?.seq).toBe(5);
  expect(late.seen()).toHaveLength(1);
  hub.stop();
});

function storedEvent(seq: number): StoredEvent {
  const event = { type: "output", stream: "stdout", text: "x" } as const;
  return { run_id: "r", seq, attempt: 1, n: seq, at: "", cursor: seq, event };
}

async function setUp() {
  const directory = mkdtempSync(join(tmpdir(), "drover-show-"));
  const store = await openStore({ directory, now: () => new Date(), createIfMissing: true });
  const faults: unknown[] = [];
  const hub = createFeedHub({ tickMs: 2, onError: (error) => faults.push(error) });
  const unlisten = store.changes((change) => hub.announce(change.fromOtherProcess ? null : change.runs));
  cleanups.push(async () => {
    hub.stop();
    unlisten();
    await store.close();
    rmSync(directory, { recursive: true, force: true });
    expect(faults).toEqual([]);
  });
  return { store, hub, ...createWriter(store) };
}

function createWriter(store: SqliteStore) {
  return {
    start: (run_id: string, created_by = "ann") =>
      store.apply([{ op: "create_run", run: newRun(run_id, created_by), events: [] }]),
    append: (run_id: string, from: number, count: number) =>
      store.apply([
        {
          op: "append_events",
          run_id,
          attempt: 1,
          events: Array.from({ length: count }, (_, index) => outputEvent(from + index + 1)),
        },
      ]),
    finish: (run_id: string) =>
      store.apply([
        {
          op: "finish_run",
          run_id,
          attempt: 1,
          at: new Date().toISOString(),
          events: [],
          isolation: null,
          result: {
            type: "result",
            status: "completed",
            reason: null,
            error: null,
            exit_code: 0,
            result_text: null,
            result_data: null,
          },
        },
      ]),
  };
}

/** For a source with its own reads, which does not use the store. */
const noReads = {} as Reads;

function outputEvent(n: number): NumberedEvent {
  return { n, at: new Date().toISOString(), event: { type: "output", stream: "stdout", text: `line ${n}\n` } };
}

/** Creates a sink that accepts one write and is then full for this many milliseconds, with this many bytes unsent. */
function createReader(slowMs: number, unsentBytes = Infinity) {
  let text = "";
  let writes = 0;
  let finish: (events: StoredEvent[]) => void = () => {};
  const whenEnded = new Promise<StoredEvent[]>((resolve) => (finish = resolve));
  const seen = (): StoredEvent[] =>
    text
      .split("\n")
      .filter((line) => line.startsWith('data: {"run_id"'))
      .map((line) => JSON.parse(line.slice(6)) as StoredEvent);
  const sink: Sink = {
    write(bytes) {
      writes += 1;
      text += Buffer.from(bytes).toString();
      return slowMs === 0;
    },
    bufferedBytes: unsentBytes,
    drained: () =>
      slowMs === Infinity ? new Promise(() => {}) : new Promise((resolve) => setTimeout(resolve, slowMs)),
    end: () => finish(seen()),
  };
  return { sink, whenEnded, seen, writes: () => writes };
}

function newRun(run_id: string, created_by: string): Run {
  // The ids need not be valid here.
  return { ...sampleRun({ created_by, started_at: null }), run_id, created_at: new Date().toISOString() };
}
