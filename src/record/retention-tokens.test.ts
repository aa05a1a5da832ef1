import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { executionStarted, numbered, sampleId, sampleRun } from "../../test/fixtures/record/sample.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import type { Token } from "../model/token.ts";
import { openStore } from "./open.ts";
import { openPostgresStore } from "./postgres/open.ts";
import type { RecordStore } from "./record-store.ts";
import { pruneTokens } from "./retention-tokens.ts";

const engines: Record<string, () => Promise<{ store: RecordStore; dispose(): Promise<void> }>> = {
  async SQLite() {
    const directory = mkdtempSync(join(tmpdir(), "drover-tokens-"));
    return {
      store: await openStore({ directory, now: () => new Date(), createIfMissing: true }),
      dispose: async () => rmSync(directory, { recursive: true, force: true }),
    };
  },
  async PostgreSQL() {
    const database = await freshDatabase();
    return {
      store: await openPostgresStore({ url: database.url, secret: Buffer.alloc(32, 7) }),
      dispose: () => database.drop(),
    };
  },
};

const token: Token = {
  token_id: "",
  kind: "access",
  role: "user",
  subject: "ann",
  label: null,
  created_by: "admin",
  created_at: "2026-01-01T00:00:00.000Z",
  expires_at: null,
  revoked_at: null,
  used_at: null,
};
const boundary = new Date("2026-06-01T00:00:00.000Z");
const before = "2026-05-31T23:59:59.999Z";
const after = "2026-06-01T00:00:00.000Z";
const enrolment = { kind: "enrolment", role: "runner" } as const;

describe.each(Object.keys(engines))("retention of tokens on %s", (engine) => {
  let store: RecordStore;
  let dispose: () => Promise<void>;
  beforeEach(async () => {
    ({ store, dispose } = await engines[engine]!());
  });
  afterEach(async () => {
    await store.close();
    await dispose();
  });
  const put = (tokens: Record<string, Partial<Token>>) =>
    store.apply(
      Object.entries(tokens).map(([token_id, changes]) => ({
        op: "put_token",
        hash: `hash of ${token_id}`,
        token: { ...token, ...changes, token_id },
      })),
    );
  const listIds = async (): Promise<string[]> =>
    (await store.read.tokens({ limit: 10_000 })).map(({ token_id }) => token_id).sort();

  it("removes tokens that were revoked, expired or used before a given time, and no others", async () => {
    await put({
      "gone: revoked": { revoked_at: before },
      "gone: expired": { expires_at: before },
      "gone: expired, revoked since": { expires_at: before, revoked_at: after },
      "gone: used": { ...enrolment, used_at: before },
      "gone: never used": { ...enrolment, expires_at: before },
      "gone: a runner's": { role: "runner", revoked_at: before },
      "gone: a viewer's": { role: "viewer", revoked_at: before },
      "kept: good": {},
      "kept: good for longer": { expires_at: after },
      "kept: rotated, and good for a while": { revoked_at: after },
      "kept: revoked since": { revoked_at: after, expires_at: after },
      "kept: used since": { ...enrolment, used_at: after },
      "kept: to be used": { ...enrolment, expires_at: after },
    });
    const all = await listIds();
    expect(await pruneTokens(store, boundary)).toEqual({ tokens: 7 });
    expect(await listIds()).toEqual(all.filter((id) => id.startsWith("kept")));
    expect(await store.read.token("hash of gone: revoked")).toBeNull();
    expect(await pruneTokens(store, boundary)).toEqual({ tokens: 0 });
  });

  it("keeps tokens of admins, because a coordinator would store its own again as valid", async () => {
    const admin = { role: "admin" } as const;
    await put({ a: { ...admin, revoked_at: before }, b: { ...admin, expires_at: before }, c: { revoked_at: before } });
    expect(await pruneTokens(store, boundary)).toEqual({ tokens: 1 });
    expect(await listIds()).toEqual(["a", "b"]);
  });

  it("removes many in batches, between others that stay, and leaves the audit trail unchanged", async () => {
    const run = sampleRun();
    await store.apply([
      { op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(sampleId())) },
      ...Array.from({ length: 2500 }, (_, no) => ({
        op: "put_token" as const,
        hash: `hash of ${no}`,
        token: { ...token, token_id: String(no).padStart(4, "0"), revoked_at: no % 5 === 0 ? after : before },
      })),
    ]);
    const rows = () => store.read.executions({}, { limit: 10 });
    const trail = await rows();
    expect(await pruneTokens(store, boundary)).toEqual({ tokens: 2000 });
    expect(await listIds()).toHaveLength(500);
    expect(await rows()).toEqual(trail);
    expect(trail).toHaveLength(1);
  });
});
