import { createHash } from "node:crypto";
import type { Store } from "../src/model/store.ts";

/** Counts of what was compared between two stores, and the differences found. */
export type Differences = Record<"runs" | "events" | "sessions" | "files" | "executions" | "differences", number> & {
  examples: string[];
};

const atOnce = 500;

/** Compares everything that can be read from two stores, page by page. */
export async function differencesOf(one: Store, other: Store, progress: (text: string) => void): Promise<Differences> {
  const found: Differences = {
    runs: 0,
    events: 0,
    sessions: 0,
    files: 0,
    executions: 0,
    differences: 0,
    examples: [],
  };
  const same = (what: string, a: unknown, b: unknown): void => {
    if (JSON.stringify(a) === JSON.stringify(b)) return;
    found.differences += 1;
    if (found.examples.length < 5)
      found.examples.push(`${what}: ${JSON.stringify(a).slice(0, 500)} and ${JSON.stringify(b).slice(0, 500)}`);
  };
  await events(one, other, found, same);
  progress(`${found.events} events compared`);
  await runs(one, other, found, same);
  progress(`${found.runs} runs compared, ${found.files} files`);
  await sessions(one, other, found, same);
  return found;
}

type Same = (what: string, a: unknown, b: unknown) => void;

async function events(one: Store, other: Store, found: Differences, same: Same): Promise<void> {
  for (let after = 0; ;) {
    const [a, b] = await Promise.all([one.read.feed(after, atOnce), other.read.feed(after, atOnce)]);
    same(`events after ${after}`, a, b);
    found.events += a.length;
    const last = a.at(-1);
    if (last === undefined) return;
    after = last.cursor;
  }
}

async function runs(one: Store, other: Store, found: Differences, same: Same): Promise<void> {
  for (let page = { limit: atOnce } as { limit: number; before?: string }; ;) {
    const [a, b] = await Promise.all([one.read.runs({}, page), other.read.runs({}, page)]);
    same(`runs before ${page.before}`, a, b);
    found.runs += a.length;
    await Promise.all(a.map(({ run_id }) => oneRun(one, other, run_id, found, same)));
    const last = a.at(-1);
    if (last === undefined) return;
    page = { limit: atOnce, before: last.run_id };
  }
}

async function oneRun(one: Store, other: Store, run_id: string, found: Differences, same: Same): Promise<void> {
  same(`run ${run_id}`, await one.read.run(run_id), await other.read.run(run_id));
  const executions = await one.read.executions({ run_id }, { limit: 100 });
  same(`executions of ${run_id}`, executions, await other.read.executions({ run_id }, { limit: 100 }));
  found.executions += executions.length;
  const files = await one.read.files(run_id);
  same(`files of ${run_id}`, files, await other.read.files(run_id));
  for (const { sha256 } of files) {
    found.files += 1;
    same(`contents of ${run_id}`, sha256, await hashOf(other, sha256));
  }
}

async function hashOf({ blobs }: Store, sha256: string): Promise<string | null> {
  const blob = await blobs.open(sha256);
  if (blob === null) return null;
  const hash = createHash("sha256");
  // The stream yields bytes.
  for await (const bytes of blob.stream) hash.update(bytes as Uint8Array);
  return hash.digest("hex");
}

async function sessions(one: Store, other: Store, found: Differences, same: Same): Promise<void> {
  for (let page = { limit: atOnce } as { limit: number; before?: string }; ;) {
    const [a, b] = await Promise.all([one.read.sessions({}, page), other.read.sessions({}, page)]);
    same(`sessions before ${page.before}`, a, b);
    found.sessions += a.length;
    const last = a.at(-1);
    if (last === undefined) return;
    same(
      `versions of ${last.session_id}`,
      await one.read.versions(last.session_id),
      await other.read.versions(last.session_id),
    );
    page = { limit: atOnce, before: last.session_id };
  }
}
