import { createHash, randomBytes } from "node:crypto";
import { registration } from "../test/coordinator.ts";
import type { Run } from "../src/model/run.ts";
import type { RegistrationResult } from "../src/model/runner-port.ts";
import { rawCall } from "../test/http-call.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, countUpTo } from "./wait.ts";

type Ask = <T>(method: string, path: string, body: unknown, token: string) => Promise<{ status: number; json: T }>;

/**
 * S10: a runner's token in the wrong hands. Its holder registers names in use, reports with guessed epochs, attempts and
 * ids for other runners and runs, and reuses enrolments.
 */
export async function impostors({ tries }: { tries: number }, tools: Tools): Promise<Finding> {
  // The victim sends nothing more, and its lease must not expire during the test.
  return withTestbed(tools, { leaseMs: 3_600_000 }, async (testbed) => {
    const ask = createAsk(testbed);
    const broken: string[] = [];
    const refused = new Map<string, number>();
    const judge = (what: string, { status, json }: { status: number; json: unknown }): void => {
      if (status >= 400 && status < 500) refused.set(what, (refused.get(what) ?? 0) + 1);
      else broken.push(`${what}: ${status} ${JSON.stringify(json).slice(0, 300)}`);
    };
    const ann = await enrol(ask, testbed.token, "ann");
    const eve = await enrol(ask, testbed.token, "eve");
    const annClient = registration("key of ann");
    const { json: victim } = await ask<RegistrationResult>(
      "POST",
      "/runner/register",
      { ...annClient, name: "box" },
      ann.token,
    );
    const ownRunner = await ask<RegistrationResult>(
      "POST",
      "/runner/register",
      { ...registration("of eve"), name: "own" },
      eve.token,
    );
    const { runner_id, epoch } = victim;
    await ask("PUT", "/agents/work", { type: "procedural", command: "true", demands: { runner_id } }, testbed.token);
    const { json: run } = await ask<Run>("POST", "/runs", { agent_name: "work" }, testbed.token);
    const poll = { runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 };
    await ask("POST", "/runner/poll", poll, ann.token);

    await forEachConcurrently(countUpTo(tries), 10, async (index) => {
      const guess = {
        epoch: index % 7,
        attempt: (index % 3) + 1,
        key: index % 2 === 0 ? annClient.runner_key : createNonsense(16),
      };
      judge(
        "name taken",
        await ask("POST", "/runner/register", { ...annClient, name: "box", runner_key: guess.key }, eve.token),
      );
      const forgedReport = { ...createForgedReport(run.run_id, guess.attempt), runner_id, epoch: guess.epoch };
      judge("spoken for", await ask("POST", "/runner/report", forgedReport, eve.token));
      judge("claimed for", await ask("POST", "/runner/poll", { ...poll, epoch: guess.epoch }, eve.token));
      judge(
        "enrolment again",
        await ask("POST", "/runner/enroll", {}, index % 2 === 0 ? ann.enrolment : eve.enrolment),
      );
      judge("token guessed", await ask("GET", "/runs", undefined, `drv_${createNonsense(22)}`));
      judge(
        "attempt guessed",
        await ask("GET", `/runs/${run.run_id}`, undefined, createForgedToken(run.run_id, guess.attempt)),
      );
      // Her own runner reports another's run: the request is answered, but nothing is stored.
      const ownReport = {
        ...createForgedReport(run.run_id, guess.attempt),
        runner_id: ownRunner.json.runner_id,
        epoch: ownRunner.json.epoch,
      };
      const answer = await ask<{ fenced?: unknown[] }>("POST", "/runner/report", ownReport, eve.token);
      if (answer.status === 200 && answer.json.fenced?.length === 1)
        refused.set("fenced", (refused.get("fenced") ?? 0) + 1);
      else broken.push(`not fenced: ${answer.status} ${JSON.stringify(answer.json)}`);
    });
    await testAmbiguousAgent(ask, testbed, { ann: ann.token, eve: eve.token }, judge);
    const { json: runAfter } = await ask<Run>("GET", `/runs/${run.run_id}`, undefined, testbed.token);
    if (runAfter.status !== "claimed" || runAfter.runner_id !== runner_id || runAfter.attempt !== 1)
      broken.push(`the run was touched: ${runAfter.status}, attempt ${runAfter.attempt}, ${runAfter.runner_id}`);
    return { seen: { ...Object.fromEntries(refused), hijacks: broken.length }, broken, late: [] };
  });
}

/** An agent name offered by two runners is refused as ambiguous instead of picking one. */
async function testAmbiguousAgent(
  ask: Ask,
  testbed: Testbed,
  tokens: { ann: string; eve: string },
  judge: (what: string, answer: { status: number; json: unknown }) => void,
): Promise<void> {
  for (const [name, token] of Object.entries(tokens)) {
    const agents = [{ name: "deploy", type: "procedural", command: name }];
    await ask(
      "POST",
      "/runner/register",
      { ...registration(`agents of ${name}`), name: `with-${name}`, agents },
      token,
    );
  }
  judge("ambiguous", await ask("POST", "/runs", { agent_name: "deploy" }, testbed.token));
}

function createForgedReport(run_id: string, attempt: number) {
  const outcome = { status: "completed", exit_code: 0, text: "forged" };
  const finishes = [{ run_id, attempt, last_n: 0, outcome }];
  return { held: [], as_of_claim: null, events: [], partials: [], finishes };
}

async function enrol(ask: Ask, admin: string, subject: string): Promise<{ token: string; enrolment: string }> {
  const created = await ask<{ token: string }>("POST", "/tokens", { role: "runner", subject, enrolment: true }, admin);
  const got = await ask<{ token: string }>("POST", "/runner/enroll", {}, created.json.token);
  if (got.status !== 201) throw new Error(`the enrolment failed: ${got.status} ${JSON.stringify(got.json)}`);
  return { token: got.json.token, enrolment: created.json.token };
}

function createAsk({ url }: Testbed): Ask {
  return async (method, path, body, token) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await rawCall(url, { method, path, headers, ...text });
    return { status: answer.status, json: answer.text === "" ? null : JSON.parse(answer.text) };
  };
}

function createNonsense(length: number): string {
  return randomBytes(length).toString("hex").slice(0, length);
}

/** Looks like an attempt token, but its signature was made without the key. */
function createForgedToken(run_id: string, attempt: number): string {
  return `drva_${run_id}.${attempt}.${createHash("sha256").update(createNonsense(8)).digest("hex")}`;
}
