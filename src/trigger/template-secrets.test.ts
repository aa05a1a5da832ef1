import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { all, type Row, type Work } from "../record/query.ts";
import { createSignature } from "./signature.ts";

const word = "correct horse battery staple";
const token = `ghp_${"a1B2".repeat(9)}`;

describe.each(["SQLite", "PostgreSQL"])("secrets of schedules and hooks, on %s", (engine) => {
  let database: FreshDatabase | null = null;
  let coordinator: TestCoordinator;
  beforeEach(async () => {
    if (engine === "PostgreSQL") database = await freshDatabase();
    coordinator = await startTestCoordinator(
      database === null ? {} : { database: { url: database.url, secret: randomBytes(32) } },
    );
    await coordinator.client.agents.put("deploy", {
      type: "procedural",
      command: "true",
      parameters_schema: {
        type: "object",
        properties: { password: { type: "string", writeOnly: true }, to: { type: "string" }, note: { type: "string" } },
      },
    });
  });
  afterEach(async () => {
    await coordinator.dispose();
    await database?.drop();
    expect(coordinator.defects).toEqual([]);
  });

  const dumpTable = async (table: "hooks" | "schedules" | "run_bodies"): Promise<string> =>
    JSON.stringify(
      await coordinator.store.engine.read(function* (): Work<Row[]> {
        return yield all(`select * from ${table}`);
      }),
    );
  let claims = 0;
  const claimRun = async () => {
    const { port } = coordinator;
    const { runner_id, epoch } = await port.register(registration(`runner ${(claims += 1)}`, `/srv/${claims}`));
    const poll = { runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 };
    return (await port.poll(poll, new AbortController().signal)).claims[0]?.invocation;
  };
  const parametersWithSecrets = { password: word, to: "production", note: `with ${token}` };
  const redactedParameters = {
    password: "[redacted:password]",
    to: "production",
    note: "with [redacted:github-token]",
  };

  it("keeps the secrets of a schedule sealed, and gives them to its runs", async () => {
    const { schedules } = coordinator.client;
    const created = await schedules.create({
      agent_name: "deploy",
      name: "nightly",
      every: "1d",
      overlap: "allow",
      parameters: parametersWithSecrets,
      prompt: `use ${token}`,
    });
    expect(created).toMatchObject({ parameters: redactedParameters, prompt: "use [redacted:github-token]" });
    expect(created).not.toHaveProperty("sealed");
    expect(JSON.stringify(await schedules.list())).not.toMatch(/v1\.|"sealed"/);
    expect(await dumpTable("schedules")).not.toMatch(new RegExp(`${word}|${token}`));
    await schedules.run(created.schedule_id);
    expect(await claimRun()).toMatchObject({ parameters: parametersWithSecrets, prompt: `use ${token}` });
    expect(await dumpTable("run_bodies")).not.toMatch(new RegExp(`${word}|${token}`));

    // Other changes do not affect the secrets.
    const changed = await schedules.change(created.schedule_id, { every: "2d" });
    expect(changed.parameters).toEqual(redactedParameters);
    await schedules.run(created.schedule_id);
    expect(await claimRun()).toMatchObject({ parameters: parametersWithSecrets, prompt: `use ${token}` });

    // A new prompt does not affect the parameters.
    await schedules.change(created.schedule_id, { prompt: "plain" });
    expect(await dumpTable("schedules")).not.toMatch(new RegExp(`${word}|${token}`));
    await schedules.run(created.schedule_id);
    expect(await claimRun()).toMatchObject({ parameters: parametersWithSecrets, prompt: "plain" });

    // The redacted value cannot be sent back in place of the secret.
    await expect(schedules.change(created.schedule_id, { parameters: redactedParameters })).rejects.toMatchObject({
      code: "DROVER-PAR-007",
    });
  });

  it("keeps the secrets of a hook sealed, and gives them to its runs together with values of a delivery", async () => {
    const { hooks } = coordinator.client;
    const parameters = { password: word, to: "production", note: { from: "/note" } };
    const created = await hooks.add({ name: "in", agent_name: "deploy", parameters, secret: "a-secret-of-somebody" });
    expect(created.parameters).toMatchObject({ password: "[redacted:password]", to: "production" });
    expect(JSON.stringify([created, await hooks.list(), await hooks.get("in")])).not.toMatch(/v1\.|"sealed"/);
    expect(await dumpTable("hooks")).not.toContain(word);
    await hooks.change("in", { max_body_kb: 5 });
    await hooks.change("in", { prompt: "do it" });
    expect(await dumpTable("hooks")).not.toContain(word);
    const body = Buffer.from(JSON.stringify({ note: `with ${token}` }));
    const signature = createSignature("a-secret-of-somebody", body, new Date());
    const response = await fetch(`${coordinator.url}/hooks/in`, {
      method: "POST",
      body,
      headers: { "drover-signature": signature },
    });
    expect(response.status).toBe(202);
    expect(await claimRun()).toMatchObject({ parameters: parametersWithSecrets, prompt: "do it" });
    expect(await dumpTable("run_bodies")).not.toMatch(new RegExp(`${word}|${token}`));
  });

  it("shows no secret if another agent or schema no longer declares the parameter as secret", async () => {
    const { agents, hooks, schedules } = coordinator.client;
    const open = { type: "procedural", command: "true", parameters_schema: { type: "object" } } as const;
    await agents.put("open", open);
    await hooks.add({ name: "in", agent_name: "deploy", parameters: parametersWithSecrets });
    await expect(hooks.change("in", { agent_name: "open" })).rejects.toMatchObject({ code: "DROVER-API-030" });
    const created = await schedules.create({
      agent_name: "deploy",
      name: "nightly",
      every: "1d",
      parameters: parametersWithSecrets,
    });
    await agents.put("deploy", open);
    await expect(schedules.change(created.schedule_id, { prompt: "x" })).rejects.toMatchObject({
      code: "DROVER-API-030",
    });
    for (const table of ["hooks", "schedules"] as const) expect(await dumpTable(table)).not.toContain(word);
    // If the owner passes the parameters again, they replace the secrets.
    expect(await hooks.change("in", { agent_name: "open", parameters: { to: "x" } })).toMatchObject({
      parameters: { to: "x" },
    });
  });
});
