import { existsSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import { type CoordinatorOptions, startCoordinator } from "../coordinator.ts";
import { pruneTokens } from "../record/retention-tokens.ts";
import { createClient } from "../wire/client.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function start(options: Partial<CoordinatorOptions> = {}): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator(options);
  closing.push(coordinator.dispose);
  return coordinator;
}

/** Runs retention as if much later, so that every ended token is past its retention period. */
const pruneMuchLater = ({ store }: TestCoordinator) => pruneTokens(store, new Date(Date.now() + 86_400_000));
/** The code that the token is refused with; null if it is accepted. */
const refusalCode = ({ url }: { url: string }, token: string): Promise<string | null> =>
  createClient({ url, token })
    .tokens.list()
    .then(
      () => null,
      (error) => error.code,
    );

test("never revives a revoked admin token that is derived from a fleet's secret", async () => {
  const database = await freshDatabase();
  closing.push(() => database.drop());
  const fleet = { database: { url: database.url, secret: Buffer.alloc(32, 3) } };
  const texts: string[] = [];
  for (const no of [1, 2, 3]) {
    const coordinator = await start(fleet);
    texts.push(coordinator.adminToken);
    for (const old of texts.slice(0, -1)) expect(await refusalCode(coordinator, old)).toBe("DROVER-API-010");
    expect(await refusalCode(coordinator, coordinator.adminToken)).toBeNull();
    const user = await coordinator.client.tokens.create({ role: "user", subject: "ann" });
    await coordinator.client.tokens.revoke(user.token_id);
    await coordinator.client.tokens.revoke("self");
    expect(await pruneMuchLater(coordinator)).toEqual({ tokens: 1 });
    expect((await coordinator.store.read.tokens({ limit: 10 })).length).toBe(no);
    await coordinator.stop();
  }
  expect(new Set(texts).size).toBe(3);
});

test("never revives a revoked admin token from a state directory's file, original or rotated", async () => {
  for (const rotated of [false, true]) {
    const coordinator = await start();
    if (rotated) {
      const { token } = await coordinator.client.tokens.rotate("self", { overlap_seconds: 0 });
      const { replaceTokenFile } = await import("./token-file.ts");
      replaceTokenFile(recordDirectory(coordinator.directory), token);
      await createClient({ url: coordinator.url, token }).tokens.revoke("self");
    } else await coordinator.client.tokens.revoke("self");
    await pruneMuchLater(coordinator);
    await coordinator.stop();
    expect(existsSync(tokenFile(recordDirectory(coordinator.directory), "token"))).toBe(true);
    await expect(startCoordinator({ stateDirectory: coordinator.directory, port: 0 })).rejects.toMatchObject({
      code: "DROVER-API-027",
      message: expect.stringContaining("was revoked"),
    });
  }
});

test("removes tokens whose retention period is over", async () => {
  const coordinator = await start({ retention: { tokens_days: 0.1 / 86_400 }, retentionEveryMs: 20 });
  const { client } = coordinator;
  const kept = await client.tokens.create({ role: "user", subject: "ann" });
  const gone = await client.tokens.create({ role: "user", subject: "ann" });
  await client.tokens.revoke(gone.token_id);
  const listTokenIds = async () => (await client.tokens.list()).items.map(({ token_id }) => token_id);
  await expect.poll(listTokenIds).not.toContain(gone.token_id);
  expect(await listTokenIds()).toContain(kept.token_id);
  expect(await refusalCode(coordinator, gone.token)).toBe("DROVER-API-034");
  expect(coordinator.defects).toEqual([]);
});
