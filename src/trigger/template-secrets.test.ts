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

  const stored = async (table: "hooks" | "schedules" | "run_bodies"): Promise<string> =>
    JSON.stringify(
      await coordinator.store.engine.read(function* (): Work<Row[]> {
        return yield all(`select * from ${table}`);
      }),
    );
  let claims = 0;
  const claimed = async () => {
    const { port } = coordinator;
    const { runner_id, epoch } = await port.register(registration(`runner ${(claims += 1)}`, `/srv/${claims}`));
    const poll = { runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 };
    return (await port.poll(poll, new AbortController().signal)).claims[0]?.invocation;
  };
  const given = { password: word, to: "production", note: `with ${token}` };
  const shown = { password: "[redacted:password]", to: "production", note: "with [redacted:github-token]" };

  it("keeps those of a schedule sealed, and gives them to its runs", async () => {
    const { schedules } = coordinator.client;
    const made = await schedules.create({
      agent_name: "deploy",
      name: "nightly",
      every: "1d",
      overlap: "allow",
      parameters: given,
      prompt: `use ${token}`,
    });
    expect(made).toMatchObject({ parameters: shown, prompt: "use [redacted:github-token]" });
    expect(made).not.toHaveProperty("sealed");
    expect(JSON.stringify(await schedules.list())).not.toMatch(/v1\.|"sealed"/);
    expect(await stored("schedules")).not.toMatch(new RegExp(`${word}|${token}`));
    await schedules.run(made.schedule_id);
    expect(await claimed()).toMatchObject({ parameters: given, prompt: `use ${token}` });
    expect(await stored("run_bodies")).not.toMatch(new RegExp(`${word}|${token}`));

    // other changes do not affect them
    const changed = await schedules.change(made.schedule_id, { every: "2d" });
    expect(changed.parameters).toEqual(shown);
    await schedules.run(made.schedule_id);
    expect(await claimed()).toMatchObject({ parameters: given, prompt: `use ${token}` });

    // a new prompt does not affect the parameters
    await schedules.change(made.schedule_id, { prompt: "plain" });
    expect(await stored("schedules")).not.toMatch(new RegExp(`${word}|${token}`));
    await schedules.run(made.schedule_id);
    expect(await claimed()).toMatchObject({ parameters: given, prompt: "plain" });

    // the redacted value cannot be sent back in place of the secret
    await expect(schedules.change(made.schedule_id, { parameters: shown })).rejects.toMatchObject({
      code: "DROVER-PAR-007",
    });
  });

  it("keeps those of a hook sealed, and gives them to its runs with those of a delivery", async () => {
    const { hooks } = coordinator.client;
    const parameters = { password: word, to: "production", note: { from: "/note" } };
    const made = await hooks.add({ name: "in", agent_name: "deploy", parameters, secret: "a-secret-of-somebody" });
    expect(made.parameters).toMatchObject({ password: "[redacted:password]", to: "production" });
    expect(JSON.stringify([made, await hooks.list(), await hooks.get("in")])).not.toMatch(/v1\.|"sealed"/);
    expect(await stored("hooks")).not.toContain(word);
    await hooks.change("in", { max_body_kb: 5 });
    await hooks.change("in", { prompt: "do it" });
    expect(await stored("hooks")).not.toContain(word);
    const body = Buffer.from(JSON.stringify({ note: `with ${token}` }));
    const signature = createSignature("a-secret-of-somebody", body, new Date());
    const answer = await fetch(`${coordinator.url}/hooks/in`, {
      method: "POST",
      body,
      headers: { "drover-signature": signature },
    });
    expect(answer.status).toBe(202);
    expect(await claimed()).toMatchObject({ parameters: given, prompt: "do it" });
    expect(await stored("run_bodies")).not.toMatch(new RegExp(`${word}|${token}`));
  });

  it("shows none of them if another agent or schema no longer marks them", async () => {
    const { agents, hooks, schedules } = coordinator.client;
    const open = { type: "procedural", command: "true", parameters_schema: { type: "object" } } as const;
    await agents.put("open", open);
    await hooks.add({ name: "in", agent_name: "deploy", parameters: given });
    await expect(hooks.change("in", { agent_name: "open" })).rejects.toMatchObject({ code: "DROVER-API-030" });
    const made = await schedules.create({ agent_name: "deploy", name: "nightly", every: "1d", parameters: given });
    await agents.put("deploy", open);
    await expect(schedules.change(made.schedule_id, { prompt: "x" })).rejects.toMatchObject({ code: "DROVER-API-030" });
    for (const table of ["hooks", "schedules"] as const) expect(await stored(table)).not.toContain(word);
    // if they are given again, the owner decides
    expect(await hooks.change("in", { agent_name: "open", parameters: { to: "x" } })).toMatchObject({
      parameters: { to: "x" },
    });
  });
});
