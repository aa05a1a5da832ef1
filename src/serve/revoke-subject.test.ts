import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { type ApiClient, createClient } from "../wire/client.ts";

let database: FreshDatabase;
let coordinator: TestCoordinator;
/** Another coordinator on the same record. */
let otherCoordinator: TestCoordinator;

beforeAll(async () => {
  database = await freshDatabase();
  const options = { database: { url: database.url, secret: randomBytes(32) } };
  coordinator = await startTestCoordinator(options);
  otherCoordinator = await startTestCoordinator(options);
});
afterAll(async () => {
  expect([...coordinator.defects, ...otherCoordinator.defects]).toEqual([]);
  await Promise.all([coordinator.dispose(), otherCoordinator.dispose()]);
  await database.drop();
});

test("revoking a subject leaves no valid token, even while a thief rotates a stolen one at another coordinator", async () => {
  const stillValid: string[] = [];
  for (let round = 0; round < 20; round += 1) {
    const subject = `ann ${round}`;
    const { token } = await coordinator.client.tokens.create({ role: "user", subject });
    const thief = startRotating(token);
    // Revoke in the middle of the thief's rotations.
    await expect.poll(() => thief.rotations, { interval: 1 }).toBeGreaterThan(round % 4);
    await coordinator.client.tokens.revokeSubject(subject);
    thief.maxRotations = thief.rotations + 10;
    const lastToken = await thief.lastToken;
    if (await isValid(lastToken)) stillValid.push(subject);
  }
  expect(stillValid).toEqual([]);
});

const createClientFor = (token: string): ApiClient => createClient({ url: otherCoordinator.url, token });

const isValid = (token: string): Promise<boolean> =>
  createClientFor(token)
    .runs.list()
    .then(
      () => true,
      () => false,
    );

/** Rotates until a request is refused or `maxRotations` is reached. `lastToken` may still be valid. */
function startRotating(stolen: string) {
  const thief = { rotations: 0, maxRotations: Infinity, lastToken: Promise.resolve(stolen) };
  thief.lastToken = loop();
  return thief;

  async function loop(): Promise<string> {
    let token = stolen;
    while (thief.rotations < thief.maxRotations) {
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
