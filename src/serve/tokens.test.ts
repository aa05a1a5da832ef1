import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { startCoordinator } from "../coordinator.ts";
import { type ApiClient, createClient, type NewToken } from "../wire/client.ts";

let coordinator: TestCoordinator;
let admin: ApiClient;
beforeAll(async () => {
  coordinator = await startTestCoordinator();
  admin = coordinator.client;
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const day = 86_400_000;
const daysFromNow = (days: number): string => new Date(Date.now() + days * day).toISOString();
const createClientFor = (token: string): ApiClient => createClient({ url: coordinator.url, token });
const createToken = (token: Partial<NewToken> = {}) => admin.tokens.create({ role: "user", subject: "ann", ...token });
/** Returns the code that the token is refused with; null if it is accepted. */
const getRefusalCode = (token: string): Promise<string | null> =>
  createClientFor(token)
    .runs.list()
    .then(
      () => null,
      (error) => error.code,
    );
const findToken = async (token_id: string) =>
  (await admin.tokens.list({ limit: 1000 })).items.find((item) => item.token_id === token_id);

test("a rotated token keeps role, subject, label and lifetime, and both work during the overlap", async () => {
  const old = await createToken({ role: "viewer", label: "laptop", expires_at: daysFromNow(30) });
  const created = await admin.tokens.rotate(old.token_id);
  expect(created).toMatchObject({
    kind: "access",
    role: "viewer",
    subject: "ann",
    label: "laptop",
    created_by: "admin",
    revoked_at: null,
    replaces: { token_id: old.token_id, asked_with: false },
  });
  expect(created.token).not.toBe(old.token);
  const lifetime = (token: { created_at: string; expires_at: string | null }) =>
    Date.parse(token.expires_at!) - Date.parse(token.created_at);
  expect(lifetime(created)).toBe(lifetime(old));
  expect(Date.parse(created.replaces.ends_at) - Date.parse(created.created_at)).toBe(300_000);
  expect(await findToken(old.token_id)).toMatchObject({
    expires_at: old.expires_at,
    revoked_at: created.replaces.ends_at,
  });
  expect([await getRefusalCode(old.token), await getRefusalCode(created.token)]).toEqual([null, null]);
});

test("refuses the old token after the overlap, or at once without one", async () => {
  const old = await createToken();
  const created = await admin.tokens.rotate(old.token_id, { overlap_seconds: 1 });
  expect(created.expires_at).toBeNull();
  await expect.poll(() => getRefusalCode(old.token)).toBe("DROVER-API-010");
  expect(await getRefusalCode(created.token)).toBeNull();
  const next = await admin.tokens.rotate(created.token_id, { overlap_seconds: 0 });
  expect([await getRefusalCode(created.token), await getRefusalCode(next.token)]).toEqual(["DROVER-API-010", null]);
});

test("during the overlap the old token can be rotated again without extending it, or revoked", async () => {
  const old = await createToken({ expires_at: daysFromNow(30) });
  const first = await admin.tokens.rotate(old.token_id, { overlap_seconds: 60 });
  const second = await admin.tokens.rotate(old.token_id, { overlap_seconds: 3600 });
  expect(second.replaces.ends_at).toBe(first.replaces.ends_at);
  const lifetime = Date.parse(second.expires_at!) - Date.parse(second.created_at);
  expect(lifetime).toBe(Date.parse(old.expires_at!) - Date.parse(old.created_at));
  await admin.tokens.revoke(old.token_id);
  expect(await getRefusalCode(old.token)).toBe("DROVER-API-010");
  expect([await getRefusalCode(first.token), await getRefusalCode(second.token)]).toEqual([null, null]);
});

test("rotating your own token does not extend its lifetime", async () => {
  const old = await createToken({ expires_at: daysFromNow(3) });
  const created = await createClientFor(old.token).tokens.rotate("self");
  expect(created).toMatchObject({
    subject: "ann",
    created_by: "ann",
    expires_at: old.expires_at,
    replaces: { token_id: old.token_id, asked_with: true },
  });
  expect(await getRefusalCode(created.token)).toBeNull();
});

test("refuses to rotate ended and single-use tokens", async () => {
  const revoked = await createToken();
  await admin.tokens.revoke(revoked.token_id);
  const enrolment = await createToken({ role: "runner", enrolment: true });
  for (const { token_id } of [revoked, enrolment])
    await expect(admin.tokens.rotate(token_id)).rejects.toMatchObject({
      code: "DROVER-API-030",
      next: expect.stringContaining("drover tokens"),
    });
  for (const token_id of ["0190aaaa-0000-7000-8000-000000000001", "drv_x", "'", "%"])
    await expect(admin.tokens.rotate(token_id)).rejects.toMatchObject({ code: "DROVER-API-014" });
});

test("refuses one of two simultaneous rotations without overlap", async () => {
  const old = await createToken();
  const both = await Promise.allSettled([
    admin.tokens.rotate(old.token_id, { overlap_seconds: 0 }),
    admin.tokens.rotate(old.token_id, { overlap_seconds: 0 }),
  ]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});

test("revokes every token of a subject with one request, including the one it was made with", async () => {
  const tokens = [await createToken({ subject: "eve" }), await createToken({ subject: "eve", role: "viewer" })];
  const runner = await createToken({ subject: "eve", role: "runner" });
  const other = await createToken({ subject: "eve2" });
  expect(await createClientFor(other.token).tokens.revokeSubject("eve")).toEqual({ revoked: [] });
  const { revoked } = await createClientFor(tokens[0]!.token).tokens.revokeSubject("eve");
  expect(revoked.sort()).toEqual(tokens.map(({ token_id }) => token_id).sort());
  for (const { token } of tokens) expect(await getRefusalCode(token)).toBe("DROVER-API-010");
  // An admin also sees the tokens that a user cannot see.
  expect(await admin.tokens.revokeSubject("eve")).toEqual({ revoked: [runner.token_id] });
  expect(await admin.tokens.revokeSubject("eve")).toEqual({ revoked: [] });
  expect(await getRefusalCode(other.token)).toBeNull();
});

test.each([
  ["an end that has passed", { expires_at: "2001-01-01T00:00:00Z" }, "body.expires_at"],
  ["an end that is far away", { expires_at: "9999-01-01T00:00:00Z" }, "body.expires_at"],
  ["no time", { expires_at: "soon" }, "body.expires_at"],
  ["an empty subject", { subject: "" }, "body.subject"],
  ["a subject with a line break", { subject: "a\nb" }, "body.subject"],
  ["a subject that ends with a space", { subject: "ann " }, "body.subject"],
  ["a user that is everyone", { subject: "*" }, "body.subject"],
  ["a label with an escape", { label: "\u001b[2J" }, "body.label"],
  ["an enrolment of a user", { enrolment: true }, "body.role"],
])("refuses %s and names the field", async (_what, token, path) => {
  await expect(createToken(token)).rejects.toMatchObject({ code: "DROVER-API-006", field: path });
});

test("an enrolled runner's token has the label of its enrolment", async () => {
  const { token } = await createToken({ role: "runner", subject: "rack", label: "rack-7", enrolment: true });
  const own = await createClientFor(token).runners.enroll();
  expect(own.token).not.toBe(token);
  expect(await findToken(own.token_id)).toMatchObject({ role: "runner", subject: "rack", label: "rack-7" });
});

test("refuses to exchange a revoked or expired enrolment token", async () => {
  const revoked = await createToken({ role: "runner", enrolment: true });
  await admin.tokens.revoke(revoked.token_id);
  const expired = await createToken({
    role: "runner",
    enrolment: true,
    expires_at: new Date(Date.now() + 4000).toISOString(),
  });
  await expect(createClientFor(revoked.token).runners.enroll()).rejects.toMatchObject({ code: "DROVER-API-010" });
  await expect.poll(() => getRefusalCode(expired.token)).toBe("DROVER-API-010");
  await expect(createClientFor(expired.token).runners.enroll()).rejects.toMatchObject({ code: "DROVER-API-010" });
});

test("refuses to start with an ended admin token, and stores no token in plain text", async () => {
  const own = await startTestCoordinator();
  try {
    const created = await own.client.tokens.rotate("self", { overlap_seconds: 0 });
    expect(created).toMatchObject({ role: "admin", subject: "admin" });
    await own.stop();
    for (const name of ["drover.db", "drover.db-wal"]) {
      const file = join(own.directory, name);
      if (!statSync(file, { throwIfNoEntry: false })) continue;
      expect(readFileSync(file, "latin1")).not.toContain(created.token);
    }
    await expect(startCoordinator({ stateDirectory: own.directory, port: 0 })).rejects.toMatchObject({
      code: "DROVER-API-027",
      next: expect.stringContaining("rm "),
    });
  } finally {
    await own.dispose();
  }
});
