import { request } from "node:http";
import type { Finding, Tools } from "./finding.ts";
import { describeImpact, openBystander } from "./bystander.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo } from "./wait.ts";

interface Size {
  submits: number;
  /** How long the baseline without load is measured. */
  idleMs?: number;
  /** How long the bystander is measured after the last submit. */
  stayMs?: number;
}

const slowSchema = { type: "object", properties: { x: { type: "string", pattern: "^(a+)+$" } } };
const attack = { x: `${"a".repeat(40)}!` };

/**
 * M1: submits with parameters that take forever to validate, half of them from clients that disconnect at once. None of
 * them creates a run, and nobody else is slowed down.
 */
export async function slowPatterns({ submits, idleMs = 5000, stayMs = 5000 }: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, {}, async (testbed) => {
    await testbed.client.agents.put("slow", { type: "procedural", command: "true", parameters_schema: slowSchema });
    const bystander = await openBystander(testbed, tools);
    const idle = await bystander.during(pause(idleMs));
    const { token } = await testbed.client.tokens.create({ role: "user", subject: "slow" });
    const answers: Record<string, number> = {};
    const broken: string[] = [];
    const underLoad = await bystander.during(
      (async () => {
        await forEachConcurrently(countUpTo(submits), submits, async (index) => {
          const status = await submit(testbed, token, index % 2 === 0);
          answers[status] = (answers[status] ?? 0) + 1;
          if (!["400", "429", "gone"].includes(status)) broken.push(`a slow submit was answered with ${status}`);
        });
        await pause(stayMs);
      })(),
    );
    const { items } = await testbed.client.runs.list({ agent_name: "slow" });
    if (items.length > 0) broken.push(`${items.length} runs came of it`);
    const { seen, late, broken: defects } = await describeImpact(testbed, idle, underLoad);
    return {
      seen: { submits, refused: answers["429"] ?? 0, "given up": answers["400"] ?? 0, ...seen },
      broken: [...broken, ...defects],
      late,
    };
  });
}

/** The response's status, or `gone` if the client disconnected. */
function submit({ coordinators }: Testbed, token: string, leaves: boolean): Promise<string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sent = request(`${coordinators[0]!.url}/runs`, { method: "POST", headers, agent: false }, (response) => {
      response.resume();
      resolve(String(response.statusCode));
    });
    sent.on("error", () => resolve("gone"));
    sent.end(JSON.stringify({ agent_name: "slow", parameters: attack }), () => {
      // After the coordinator has received it.
      if (leaves) setTimeout(() => sent.destroy(), 20);
    });
  });
}
