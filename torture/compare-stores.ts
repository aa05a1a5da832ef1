import { createHash } from "node:crypto";
import type { Store } from "../src/model/store.ts";

/** Counts of what was compared between two stores, and the differences found. */
export type Differences = Record<"runs" | "events" | "sessions" | "files" | "executions" | "differences", number> & {
  examples: string[];
};

const atOnce = 500;

/** Compares everything that can be read from two stores, page by page. */
export async function findDifferences(
  firstStore: Store,
  secondStore: Store,
  progress: (text: string) => void,
): Promise<Differences> {
  const found: Differences = {
    runs: 0,
    events: 0,
    sessions: 0,
    files: 0,
    executions: 0,
    differences: 0,
    examples: [],
  };
  const expectSame = (what: string, a: unknown, b: unknown): void => {
    if (JSON.stringify(a) === JSON.stringify(b)) return;
    found.differences += 1;
    if (found.examples.length < 5)
      found.examples.push(`${what}: ${JSON.stringify(a).slice(0, 500)} and ${JSON.stringify(b).slice(0, 500)}`);
  };
  await events(firstStore, secondStore, found, expectSame);
  progress(`${found.events} events compared`);
  await runs(firstStore, secondStore, found, expectSame);
  progress(`${found.runs} runs compared, ${found.files} files`);
  await sessions(firstStore, secondStore, found, expectSame);
  return found;
}

type Same = (what: string, a: unknown, b: unknown) => void;

async function events(firstStore: Store, secondStore: Store, found: Differences, expectSame: Same): Promise<void> {
  for (let after = 0; ;) {
    const [a, b] = await Promise.all([firstStore.read.feed(after, atOnce), secondStore.read.feed(after, atOnce)]);
    expectSame(`events after ${after}`, a, b);
    found.events += a.length;
    const last = a.at(-1);
    if (last === undefined) return;
    after = last.cursor;
  }
}

async function runs(firstStore: Store, secondStore: Store, found: Differences, expectSame: Same): Promise<void> {
  for (let page = { limit: atOnce } as { limit: number; before?: string }; ;) {
    const [a, b] = await Promise.all([firstStore.read.runs({}, page), secondStore.read.runs({}, page)]);
    expectSame(`runs before ${page.before}`, a, b);
    found.runs += a.length;
    await Promise.all(a.map(({ run_id }) => compareRun(firstStore, secondStore, run_id, found, expectSame)));
    const last = a.at(-1);
    if (last === undefined) return;
    page = { limit: atOnce, before: last.run_id };
  }
}

async function compareRun(
  firstStore: Store,
  secondStore: Store,
  run_id: string,
  found: Differences,
  expectSame: Same,
): Promise<void> {
  expectSame(`run ${run_id}`, await firstStore.read.run(run_id), await secondStore.read.run(run_id));
  const executions = await firstStore.read.executions({ run_id }, { limit: 100 });
  expectSame(`executions of ${run_id}`, executions, await secondStore.read.executions({ run_id }, { limit: 100 }));
  found.executions += executions.length;
  const files = await firstStore.read.files(run_id);
  expectSame(`files of ${run_id}`, files, await secondStore.read.files(run_id));
  for (const { sha256 } of files) {
    found.files += 1;
    expectSame(`contents of ${run_id}`, sha256, await hashBlob(secondStore, sha256));
  }
}

async function hashBlob({ blobs }: Store, sha256: string): Promise<string | null> {
  const blob = await blobs.open(sha256);
  if (blob === null) return null;
  const hash = createHash("sha256");
  // The stream yields bytes.
  for await (const bytes of blob.stream) hash.update(bytes as Uint8Array);
  return hash.digest("hex");
}

async function sessions(firstStore: Store, secondStore: Store, found: Differences, expectSame: Same): Promise<void> {
  for (let page = { limit: atOnce } as { limit: number; before?: string }; ;) {
    const [a, b] = await Promise.all([firstStore.read.sessions({}, page), secondStore.read.sessions({}, page)]);
    expectSame(`sessions before ${page.before}`, a, b);
    found.sessions += a.length;
    const last = a.at(-1);
    if (last === undefined) return;
    expectSame(
      `versions of ${last.session_id}`,
      await firstStore.read.versions(last.session_id),
      await secondStore.read.versions(last.session_id),
    );
    page = { limit: atOnce, before: last.session_id };
  }
}
