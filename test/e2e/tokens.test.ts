import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { recordDirectory, runnerTokenFile, tokenFile } from "../../src/model/state-layout.ts";
import type { Token } from "../../src/model/token.ts";
import { drover, createDirectory } from "./drover.ts";
import { startCommand, startCoordinator } from "./coordinator-process.ts";

/** A coordinator, and the command line with the admin's token or any other. */
async function openProject() {
  const cwd = createDirectory();
  const coordinator = await startCoordinator(cwd);
  const env = { DROVER_STATE_DIR: coordinator.state };
  const run = (...args: string[]) => drover(args, { cwd, env });
  const as = (token: string, ...args: string[]) =>
    drover(args, {
      cwd,
      env: { DROVER_STATE_DIR: join(cwd, "none"), DROVER_API_URL: coordinator.url, DROVER_API_KEY: token },
    });
  const createToken = async (...args: string[]): Promise<Token & { token: string }> => {
    const result = await run("tokens", ...args, "--json");
    expect(result, result.stderr).toMatchObject({ code: 0 });
    return JSON.parse(result.stdout);
  };
  /** Returns the rows of the list without their creation times. */
  const list = async () =>
    (await run("tokens", "list")).stdout
      .trim()
      .split("\n")
      .map((line) => line.split("\t"));
  return { cwd, coordinator, run, as, made: createToken, list };
}

describe("drover tokens", () => {
  it("creates, lists, rotates and revokes tokens, and shows each once", async () => {
    const { run, as, made: createToken, list, coordinator } = await openProject();
    const plain = await run("tokens", "create", "ada", "--expires-in", "30d", "--label", "laptop");
    expect(plain, plain.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^drv_[0-9A-Za-z]{32}\n$/) });
    expect(plain.stderr).toMatch(/not shown again.*drover tokens revoke [0-9a-f-]{36}/);
    const ada = plain.stdout.trim();
    const [row = []] = await list();
    expect(row.slice(1, 4)).toEqual(["user", "ada", "valid"]);
    expect(row[6]).toBe("laptop");
    expect(Date.parse(row[4]!) - Date.now()).toBeGreaterThan(29 * 86_400_000);
    expect((await as(ada, "runs", "list")).code).toBe(0);

    const viewer = await createToken("create", "--subject", "ada", "--role", "viewer");
    expect(viewer).toMatchObject({ role: "viewer", subject: "ada", expires_at: null });
    const rotated = await createToken("rotate", viewer.token_id.slice(0, 30));
    expect(rotated).toMatchObject({ role: "viewer", subject: "ada", replaces: { token_id: viewer.token_id } });
    expect((await as(viewer.token, "runs", "list")).code).toBe(0);
    const repeatedRotation = await run("tokens", "rotate", viewer.token_id, "--at-once");
    expect(repeatedRotation.stderr).toContain(viewer.token_id);
    const refused = await as(viewer.token, "runs", "list");
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("DROVER-API-010");
    expect((await as(repeatedRotation.stdout.trim(), "runs", "list")).code).toBe(0);

    // Users see and end their own tokens and nobody else's.
    const tokenOfBob = await createToken("create", "bob");
    const tokensOfAda = (await as(ada, "tokens", "list")).stdout;
    expect(tokensOfAda).toContain(rotated.token_id);
    expect(tokensOfAda).not.toContain(tokenOfBob.token_id);
    const revokedByOther = await as(ada, "tokens", "revoke", tokenOfBob.token_id);
    expect(revokedByOther).toMatchObject({ code: 2 });
    expect(revokedByOther.stderr).toContain("DROVER-USE-008");
    expect((await as(ada, "tokens", "create", "eve", "--role", "admin")).stderr).toContain("DROVER-API-011");
    expect((await as(ada, "tokens", "revoke", rotated.token_id)).stdout).toBe(`${rotated.token_id}\n`);

    const revocation = await run("tokens", "revoke", "--subject", "ada", "--json");
    const ids = revocation.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(ids).toHaveLength(2);
    expect(ids).toContainEqual({ token_id: row[0], revoked: true });
    expect((await as(ada, "runs", "list")).stderr).toContain("DROVER-API-010");
    const states = (await list()).filter(([, , subject]) => subject === "ada").map(([, , , state]) => state);
    expect(states).toEqual(["revoked", "revoked", "revoked", "revoked"]);
    expect((await run("tokens", "list", "--limit", "1")).stderr).toContain("More: drover tokens list --limit 1");

    // Invalid ids, and ids that the coordinator refuses.
    const text = await run("tokens", "revoke", tokenOfBob.token);
    expect(text).toMatchObject({ code: 2 });
    expect(text.stderr).toContain("is a token, not the id");
    expect(text.stderr).not.toContain(tokenOfBob.token);
    expect((await run("tokens", "rotate", "ffffffff")).stderr).toContain("drover tokens list");
    const subject = JSON.parse((await run("tokens", "create", "*", "--json")).stdout);
    expect(subject).toMatchObject({ error: { code: "DROVER-API-006", field: "body.subject" } });

    // A token is shown once and stored nowhere.
    for (const name of readdirSync(coordinator.state)) {
      const file = join(coordinator.state, name);
      if (!statSync(file).isFile()) continue;
      const bytes = readFileSync(file, "latin1");
      for (const token of [ada, viewer.token, rotated.token, tokenOfBob.token]) expect(bytes).not.toContain(token);
    }
  });

  it("rotates the state directory's own token, and stores it where commands find it", async () => {
    const { run, as, coordinator } = await openProject();
    const rotated = await run("tokens", "rotate", "self", "--at-once");
    expect(rotated, rotated.stderr).toMatchObject({ code: 0 });
    const file = tokenFile(recordDirectory(coordinator.state), "token");
    expect(readFileSync(file, "utf8")).toBe(rotated.stdout);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(rotated.stderr).toContain(file);
    expect((await run("tokens", "list")).code).toBe(0);
    expect((await as(coordinator.token, "tokens", "list")).stderr).toContain("DROVER-API-010");
    // Drover does not store a token that came from a variable
    const key = rotated.stdout.trim();
    expect((await as(key, "tokens", "rotate", "self")).code).toBe(0);
    expect(readFileSync(file, "utf8").trim()).toBe(key);
  });

  it("enrols a runner, once", async () => {
    const { cwd, made: createToken, list, coordinator } = await openProject();
    const enrolment = await createToken("enrol", "build-host", "--label", "rack-7");
    expect(enrolment).toMatchObject({ kind: "enrolment", role: "runner", token: expect.stringMatching(/^drve_/) });
    expect(Date.parse(enrolment.expires_at!) - Date.now()).toBeLessThan(86_400_001);
    const runner = (name: string, extraEnv: Record<string, string> = { DROVER_ENROLMENT: enrolment.token }) =>
      startCommand(["runner", "--examples", "-x", "echo", "--name", name], {
        cwd,
        env: { DROVER_STATE_DIR: join(cwd, name), DROVER_API_URL: coordinator.url, ...extraEnv },
        ready: /^Offers /m,
      });
    await runner("one");
    const runnerToken = readFileSync(runnerTokenFile(recordDirectory(join(cwd, "one"))), "utf8").trim();
    expect(runnerToken).toMatch(/^drv_/);
    expect((await coordinator.call<{ items: { owner: string }[] }>("GET", "/runners")).json.items).toMatchObject([
      { owner: "build-host" },
    ]);
    expect((await list()).slice(0, 2).map((row) => [row[1], row[2], row[3], row[6]])).toEqual([
      ["runner", "build-host", "valid", "rack-7"],
      ["enrolment", "build-host", "used", "rack-7"],
    ]);
    await expect(runner("two")).rejects.toThrow("DROVER-API-019");
    // From now on the stored token is enough.
    mkdirSync(recordDirectory(join(cwd, "three")), { recursive: true });
    writeFileSync(runnerTokenFile(recordDirectory(join(cwd, "three"))), `${runnerToken}\n`, { mode: 0o600 });
    await runner("three", {});
  });

  const invalidCommands: [what: string, args: string[], says: string][] = [
    ["no subject", ["create"], "SUBJECT"],
    ["a subject twice", ["create", "ada", "--subject", "bob"], "twice"],
    ["a role that does not exist", ["create", "ada", "--role", "vewer"], "Did you mean viewer?"],
    ["a time without a unit", ["create", "ada", "--expires-in", "30"], "--expires-in 30 is not a time"],
    ["a lifetime of zero", ["create", "ada", "--expires-in", "0d"], "is zero"],
    ["more than a lifetime", ["enrol", "ada", "--expires-in", "99999w"], "more than 100 years"],
    ["nothing to revoke", ["revoke"], "--subject"],
    ["nothing to rotate", ["rotate"], "TOKEN"],
    ["two ends", ["rotate", "x", "--at-once", "--overlap", "1m"], "--overlap and --at-once"],
    ["too long an overlap", ["rotate", "x", "--overlap", "8d"], "more than 7d"],
    ["an option of another command", ["revoke", "x", "--at-once"], "--at-once"],
    ["a page that is too large", ["list", "--limit", "5000"], "--limit 5000"],
  ];
  it.each(invalidCommands)("refuses %s before any request is sent", async (_what, args, expected) => {
    const result = await drover(["tokens", ...args], { cwd: createDirectory() });
    expect(result).toMatchObject({ code: 2, stdout: "" });
    expect(result.stderr).toContain(expected);
    expect(result.stderr).toMatch(/DROVER-USE-00[17]/);
  });

  it("lists the commands of the group without a subcommand", async () => {
    const result = await drover(["tokens"], { cwd: createDirectory() });
    expect(result).toMatchObject({ code: 2, stdout: "" });
    expect(result.stderr).toMatch(/^drover tokens COMMAND\n[^]*drover tokens rotate /);
  });
});
