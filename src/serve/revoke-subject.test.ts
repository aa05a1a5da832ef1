import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { type ApiClient, createClient } from "../wire/client.ts";

let database: FreshDatabase;
let here: TestCoordinator;
/** Another coordinator on the same record. */
let there: TestCoordinator;

beforeAll(async () => {
  database = await freshDatabase();
  const place = { database: { url: database.url, secret: randomBytes(32) } };
  here = await startTestCoordinator(place);
  there = await startTestCoordinator(place);
});
afterAll(async () => {
  expect([...here.defects, ...there.defects]).toEqual([]);
  await Promise.all([here.dispose(), there.dispose()]);
  await database.drop();
});

test("leaves no valid token to a thief who keeps rotating a stolen one at another coordinator", async () => {
  const good: string[] = [];
  for (let round = 0; round < 20; round += 1) {
    const subject = `ann ${round}`;
    const { token } = await here.client.tokens.create({ role: "user", subject });
    const thief = rotateForEver(token);
    // While the thief is rotating.
    await expect.poll(() => thief.rotations, { interval: 1 }).toBeGreaterThan(round % 4);
    await here.client.tokens.revokeOf(subject);
    thief.most = thief.rotations + 10;
    const last = await thief.refused;
    if (await isGood(last)) good.push(subject);
  }
  expect(good).toEqual([]);
});

const createClientFor = (token: string): ApiClient => createClient({ url: there.url, token });

const isGood = (token: string): Promise<boolean> =>
  createClientFor(token)
    .runs.list()
    .then(
      () => true,
      () => false,
    );

/** Rotates until a request is refused or `most` is reached. `refused` is the last token, which may still be valid. */
function rotateForEver(stolen: string) {
  const thief = { rotations: 0, most: Infinity, refused: Promise.resolve(stolen) };
  thief.refused = loop();
  return thief;

  async function loop(): Promise<string> {
    let token = stolen;
    while (thief.rotations < thief.most) {
      try {
        token = (await createClientFor(token).tokens.rotate("self")).token;
        thief.rotations += 1;
      } catch (error) {
        expect(["DROVER-API-010", "DROVER-API-030"]).toContain(Reflect.get(Object(error), "code"));
        return token;
      }
    }
    return token;
  }
}
