import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { recordDirectory } from "../model/state-layout.ts";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import { createFailedOutcome } from "../model/outcome.ts";
import { backupRecord, type RecordLocation } from "../record/backup.ts";
import { tables } from "../record/copy/tables.ts";
import { restoreRecord } from "../record/restore.ts";
import { all, type Row, type Work } from "../record/query.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

const password = "correct horse battery staple";
const githubToken = `ghp_${"a1B2".repeat(9)}`;
const parameters = { target: "production", password, note: `with ${githubToken}` };
const agent = {
  name: "deploy",
  type: "procedural" as const,
  command: "true",
  parameters_schema: {
    type: "object",
    properties: { target: { type: "string" }, password: { type: "string", format: "password" }, note: {} },
  },
};

const privateKey = ["-----BEGIN PRIVATE KEY-----", "MC4CAQAwBQYDK2VwBCIEIK", "-----END PRIVATE KEY-----"].join("\n");
const jwt = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "c2lnbmF0dXJl"].join(".");
/** Parameters of an agent without a schema, and the part that must not be stored. */
const undeclaredSecrets: [what: string, parameters: Record<string, unknown>, secret: string][] = [
  ["a token in a sentence", { note: `use ${githubToken}, please` }, githubToken],
  ["a token in a list", { words: ["--verbose", githubToken] }, githubToken],
  ["a token deep in an object", { a: { b: [{ c: [githubToken] }] } }, githubToken],
  ["a token in JSON text", { body: JSON.stringify({ auth: githubToken }) }, githubToken],
  ["a token in the query of a URL", { url: `https://x.example/?t=${githubToken}` }, githubToken],
  ["a token as the name of a parameter", { [githubToken]: true }, githubToken],
  ["a token in a nested name", { env: { [`use ${githubToken}`]: "x" } }, githubToken],
  ["a value with a sensitive name", { api_key: "hunter2-hunter2" }, "hunter2-hunter2"],
  ["a nested value with a sensitive name", { deploy: { client_secret: "hunter3-hunter3" } }, "hunter3-hunter3"],
  ["a list with a sensitive name", { "x-api-key": ["hunter4-hunter4"] }, "hunter4-hunter4"],
  ["the credentials in a URL", { database: "postgres://app:hunter5-hunter5@db/app" }, "hunter5-hunter5"],
  ["a private key", { key: privateKey }, "MC4CAQAwBQYDK2VwBCIEIK"],
  ["a signed token", { header: `Bearer ${jwt}` }, jwt],
  ["a token after a secret of another kind", { text: `${jwt} ${githubToken}` }, githubToken],
];

interface OpenedRecord {
  coordinator: TestCoordinator;
  record: RecordLocation;
  createOther(): Promise<{ record: RecordLocation; start(): Promise<TestCoordinator> }>;
}

const engines: { name: string; open(): Promise<OpenedRecord> }[] = [
  {
    name: "sqlite",
    async open() {
      const coordinator = await startTestCoordinator();
      return {
        coordinator,
        record: { directory: recordDirectory(coordinator.directory) },
        async createOther() {
          const directory = join(createDirectory(), "state");
          return {
            record: { directory: recordDirectory(directory) },
            start: () => startTestCoordinator({ stateDirectory: directory }),
          };
        },
      };
    },
  },
  {
    name: "postgres",
    async open() {
      const secret = randomBytes(32);
      const createDatabase = async () => {
        const database = await freshDatabase();
        cleanups.push(() => database.drop());
        return { url: database.url, secret };
      };
      const record = await createDatabase();
      const start = (database: typeof record) => startTestCoordinator({ database });
      return {
        coordinator: await start(record),
        record,
        async createOther() {
          const otherRecord = await createDatabase();
          return { record: otherRecord, start: () => start(otherRecord) };
        },
      };
    },
  },
];

const createDirectory = (): string => {
  const created = mkdtempSync(join(tmpdir(), "drover-sealed-"));
  cleanups.push(() => rmSync(created, { recursive: true, force: true }));
  return created;
};

/** Returns every row of every table as text. */
async function dumpTables({ store }: TestCoordinator): Promise<string> {
  const rows = await Promise.all(
    tables.map(({ name }) =>
      store.engine.read(function* (): Work<Row[]> {
        return yield all(`select * from ${name}`);
      }),
    ),
  );
  return JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? String(value) : value));
}

/** Returns the fingerprint that is stored with the only idempotency key. */
async function readFingerprint({ store }: TestCoordinator): Promise<string> {
  const rows = await store.engine.read(function* (): Work<Row[]> {
    return yield all("select fingerprint from idempotency");
  });
  expect(rows).toHaveLength(1);
  return String(rows[0]!["fingerprint"]);
}

/** Polls for one run. */
async function claim({ port }: TestCoordinator, runner_key = "one") {
  const { runner_id, epoch } = await port.register(registration(runner_key));
  const { claims } = await port.poll(
    { runner_id, epoch, claim_id: runner_key, want: 1, ack_order: 0 },
    new AbortController().signal,
  );
  return { claim: claims[0]!, runner_id, epoch };
}

test.each(engines)(
  "does not store a secret in an idempotency key, and still recognizes the repeated request, on $name",
  async ({ open }) => {
    const { coordinator } = await open();
    cleanups.push(() => coordinator.dispose());
    const { client } = coordinator;
    await client.agents.put("deploy", agent);
    const request = { agent_name: "deploy", idempotency_key: `deploy ${githubToken}` };
    const created = await client.submit(request);
    expect((await client.submit(request)).run_id).toBe(created.run_id);
    expect((await client.submit({ ...request, idempotency_key: `again ${githubToken}` })).run_id).not.toBe(
      created.run_id,
    );
    expect(await dumpTables(coordinator)).not.toContain(githubToken);
  },
);

describe.each(engines)("a secret parameter, on $name,", ({ open }) => {
  test("that no schema declares is never stored in plain text while its run waits, whatever its form", async () => {
    const { coordinator } = await open();
    cleanups.push(() => coordinator.dispose());
    await coordinator.client.agents.put("any", {
      type: "procedural",
      command: "true",
      parameters_validation: "executor",
    });
    const runs = new Map<string, (typeof undeclaredSecrets)[number]>();
    for (const secretForm of undeclaredSecrets) {
      const [what, sent, secret] = secretForm;
      const { run_id } = await coordinator.client.submit({ agent_name: "any", parameters: sent });
      runs.set(run_id, secretForm);
      const shown = JSON.stringify(await coordinator.client.runs.get(run_id));
      expect([what, shown.includes(secret)]).toEqual([what, false]);
      expect([what, (await dumpTables(coordinator)).includes(secret)]).toEqual([what, false]);
    }
    const { port } = coordinator;
    const { runner_id, epoch } = await port.register({ ...registration("one"), slots: 20 });
    const poll = { runner_id, epoch, claim_id: "c", want: 20, ack_order: 0 };
    const { claims } = await port.poll(poll, new AbortController().signal);
    expect(claims).toHaveLength(undeclaredSecrets.length);
    for (const { run_id, invocation } of claims) {
      const [what, sent] = runs.get(run_id)!;
      expect([what, invocation.parameters]).toEqual([what, sent]);
    }
  });

  test("reaches its runner, is never shown, and is deleted when the run ends", async () => {
    const { coordinator } = await open();
    cleanups.push(() => coordinator.dispose());
    const { client } = coordinator;
    await client.agents.put("deploy", agent);
    const created = await client.submit({ agent_name: "deploy", parameters, prompt: `use ${githubToken}` });
    const redactedInput = {
      parameters: { target: "production", password: "[redacted:password]", note: "with [redacted:github-token]" },
      prompt: "use [redacted:github-token]",
    };
    expect(created).toMatchObject(redactedInput);
    expect(await client.runs.get(created.run_id)).toMatchObject(redactedInput);
    expect(await dumpTables(coordinator)).not.toMatch(new RegExp(`${password}|${githubToken}`));
    expect(await dumpTables(coordinator)).toContain('"sealed":"v1.');

    const { claim: claimed, runner_id, epoch } = await claim(coordinator);
    expect(claimed.invocation).toMatchObject({ parameters, prompt: `use ${githubToken}` });
    const outcome = createFailedOutcome("exit_nonzero", "no");
    const finishes = [{ run_id: created.run_id, attempt: claimed.attempt, last_n: 0, outcome }];
    await coordinator.port.report({
      runner_id,
      epoch,
      as_of_claim: "one",
      held: [],
      events: [],
      partials: [],
      finishes,
    });
    await expect.poll(async () => (await client.runs.get(created.run_id)).status).toBe("failed");
    expect(await client.runs.get(created.run_id)).toMatchObject(redactedInput);
    expect(await dumpTables(coordinator)).not.toContain('"sealed":"v1.');
    await expect(client.runs.retry(created.run_id)).rejects.toMatchObject({
      code: "DROVER-PAR-007",
      message: expect.stringContaining(created.run_id),
    });
  });

  test("is deleted when the run is cancelled before it is claimed", async () => {
    const { coordinator } = await open();
    cleanups.push(() => coordinator.dispose());
    const { client } = coordinator;
    await client.agents.put("deploy", agent);
    const { run_id } = await client.submit({ agent_name: "deploy", parameters });
    await client.runs.stop(run_id);
    expect((await client.runs.get(run_id)).status).toBe("cancelled");
    expect(await dumpTables(coordinator)).not.toContain('"sealed":"v1.');
  });

  test("is part of what an idempotency key is compared with, and cannot be guessed from the stored fingerprint", async () => {
    const { coordinator } = await open();
    cleanups.push(() => coordinator.dispose());
    const { client } = coordinator;
    await client.agents.put("deploy", agent);
    const request = { agent_name: "deploy", parameters, idempotency_key: "once" };
    const first = await client.submit(request);
    expect((await client.submit(request)).run_id).toBe(first.run_id);
    await expect(
      client.submit({ ...request, parameters: { ...parameters, password: "another one" } }),
    ).rejects.toMatchObject({ code: "DROVER-SUB-004" });
    // Without the record's key, a fingerprint cannot be recomputed: each record has another one for the same request.
    const { coordinator: other } = await open();
    cleanups.push(() => other.dispose());
    await other.client.agents.put("deploy", agent);
    await other.client.submit(request);
    const fingerprint = await readFingerprint(coordinator);
    expect(fingerprint).toMatch(/^\S{32,}$/);
    expect(await readFingerprint(other)).not.toBe(fingerprint);
  });

  test("is sealed in a backup and reaches a runner of the restored record", async () => {
    const { coordinator, record, createOther } = await open();
    cleanups.push(() => coordinator.dispose());
    await coordinator.client.agents.put("deploy", agent);
    const { run_id } = await coordinator.client.submit({ agent_name: "deploy", parameters });
    const file = join(createDirectory(), "backup");
    await backupRecord(record, file, new Date());
    expect(readFileSync(file).includes(password) || readFileSync(file).includes(githubToken)).toBe(false);
    const target = await createOther();
    await restoreRecord(target.record, file, { now: new Date() });
    const restored = await target.start();
    cleanups.push(() => restored.dispose());
    expect((await claim(restored)).claim).toMatchObject({ run_id, invocation: { parameters } });
  });

  test("is not accepted if only its redaction mark is sent", async () => {
    const { coordinator } = await open();
    cleanups.push(() => coordinator.dispose());
    await coordinator.client.agents.put("deploy", agent);
    const withMark = { list: [{ password: "[redacted:password]" }] };
    await expect(coordinator.client.submit({ agent_name: "deploy", parameters: withMark })).rejects.toMatchObject({
      code: "DROVER-PAR-007",
    });
    // A prompt may quote a log that shows the mark.
    await coordinator.client.submit({ agent_name: "deploy", prompt: "why does it say [redacted:password]?" });
  });
});

test("no file of a state directory holds a secret parameter", async () => {
  const coordinator = await startTestCoordinator();
  cleanups.push(() => coordinator.dispose());
  await coordinator.client.agents.put("deploy", agent);
  await coordinator.client.submit({ agent_name: "deploy", parameters });
  const names = readdirSync(coordinator.directory, { recursive: true }).map(String);
  const files = names.map((name) => join(coordinator.directory, name)).filter((path) => statSync(path).isFile());
  expect(files.length).toBeGreaterThan(2);
  for (const file of files)
    expect(readFileSync(file).includes(password) || readFileSync(file).includes(githubToken)).toBe(false);
});
