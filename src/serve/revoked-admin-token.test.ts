import { existsSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import { type CoordinatorOptions, startCoordinator } from "../coordinator.ts";
import { pruneTokens } from "../record/retention-tokens.ts";
import { createClient } from "../wire/client.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

async function start(options: Partial<CoordinatorOptions> = {}): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator(options);
  cleanups.push(coordinator.dispose);
  return coordinator;
}

/** Runs retention as if much later, so that every ended token is past its retention period. */
const pruneMuchLater = ({ store }: TestCoordinator) => pruneTokens(store, new Date(Date.now() + 86_400_000));
/** Returns the code that the token is refused with; null if it is accepted. */
const getRefusalCode = ({ url }: { url: string }, token: string): Promise<string | null> =>
  createClient({ url, token })
    .tokens.list()
    .then(
      () => null,
      (error) => error.code,
    );

test("never revives a revoked admin token that is derived from a fleet's secret", async () => {
  const database = await freshDatabase();
  cleanups.push(() => database.drop());
  const fleet = { database: { url: database.url, secret: Buffer.alloc(32, 3) } };
  const texts: string[] = [];
  for (const round of [1, 2, 3]) {
    const coordinator = await start(fleet);
    texts.push(coordinator.adminToken);
    for (const old of texts.slice(0, -1)) expect(await getRefusalCode(coordinator, old)).toBe("DROVER-API-010");
    expect(await getRefusalCode(coordinator, coordinator.adminToken)).toBeNull();
    const user = await coordinator.client.tokens.create({ role: "user", subject: "ann" });
    await coordinator.client.tokens.revoke(user.token_id);
    await coordinator.client.tokens.revoke("self");
    expect(await pruneMuchLater(coordinator)).toEqual({ tokens: 1 });
    expect((await coordinator.store.read.tokens({ limit: 10 })).length).toBe(round);
    await coordinator.stop();
  }
  expect(new Set(texts).size).toBe(3);
});

test("never revives a revoked admin token from a state directory's file, whether original or rotated", async () => {
  for (const isRotated of [false, true]) {
    const coordinator = await start();
    if (isRotated) {
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
  const keptToken = await client.tokens.create({ role: "user", subject: "ann" });
  const revokedToken = await client.tokens.create({ role: "user", subject: "ann" });
  await client.tokens.revoke(revokedToken.token_id);
  const listTokenIds = async () => (await client.tokens.list()).items.map(({ token_id }) => token_id);
  await expect.poll(listTokenIds).not.toContain(revokedToken.token_id);
  expect(await listTokenIds()).toContain(keptToken.token_id);
  expect(await getRefusalCode(coordinator, revokedToken.token)).toBe("DROVER-API-034");
  expect(coordinator.defects).toEqual([]);
});
