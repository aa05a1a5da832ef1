import { registration } from "../test/coordinator.ts";
import { rawCall, type RawCall } from "../test/http-call.ts";
import { claimOverHttp } from "../test/fixtures/dispatch/claimed.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { describeImpact, openBystander, type ResponseTimes } from "./bystander.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo } from "./wait.ts";

interface Size {
  /** The number of runs on record. */
  runs: number;
  /** How many times each request is repeated. */
  requests: number;
  /** How long the baseline without load is measured. */
  idleMs?: number;
}

const atOnce = 16;

/** S13: one caller repeats each expensive request as fast as it can. Nobody else is slowed down. */
export async function greedyCallers({ runs, requests, idleMs = 5000 }: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 3_600_000 }, async (testbed) => {
    const bystander = await openBystander(testbed, tools);
    const loads = await createLoads(testbed, runs);
    const idle = await bystander.during(pause(idleMs));
    const broken: string[] = [];
    const responseTimes: (ResponseTimes & { name: string })[] = [];
    for (const { name, call } of loads) {
      const send = async (index: number): Promise<void> => {
        const { status, text } = await rawCall(testbed.url, call(index)).catch(() => ({
          status: 413,
          text: "cut off",
        }));
        if (status >= 500 && status !== 503) broken.push(`${name}: ${status} ${text.slice(0, 300)}`);
      };
      responseTimes.push({ name, ...(await bystander.during(forEachConcurrently(countUpTo(requests), atOnce, send))) });
      tools.progress(
        `${name}: p99 of another user ${Math.round(responseTimes.at(-1)!.p99)} ms, idle ${Math.round(idle.p99)}`,
      );
    }
    const worst = responseTimes.reduce((max, item) => (item.p99 > max.p99 ? item : max));
    const underLoad = {
      requests: responseTimes.reduce((sum, item) => sum + item.requests, 0),
      p99: worst.p99,
      longest: largest(responseTimes.map(({ longest }) => longest)),
    };
    const found = await describeImpact(testbed, idle, underLoad);
    const late = found.late.map((text) => `${text} (${worst.name})`);
    return { seen: { requests: requests * loads.length, ...found.seen }, broken: [...broken, ...found.broken], late };
  });
}

interface Load {
  name: string;
  call(index: number): RawCall;
}

/** Expensive requests: large bodies, long lists, searches, streams, checks, tokens, proofs. */
async function createLoads(testbed: Testbed, runs: number): Promise<Load[]> {
  const { client } = testbed;
  const { token: user } = await client.tokens.create({ role: "user", subject: "greedy" });
  const { token: admin } = await client.tokens.create({ role: "admin", subject: "greedy" });
  const nobody = { demands: { tags: ["nobody"] }, type: "procedural" as const, command: "true" };
  await client.agents.put("idle", nobody);
  await client.agents.put("free", { ...nobody, parameters_schema: { type: "object" } });
  await forEachConcurrently(
    countUpTo(runs),
    8,
    async () => void (await client.submit({ agent_name: "idle", parameters: {} })),
  );
  const log = await claimOverHttp({ ...testbed, adminToken: testbed.token }, "chatty");
  const events = [...countUpTo(500)].map((index) => ({
    n: index + 1,
    at: "2026-01-01T00:00:00.000Z",
    event: { type: "assistant", text: `needle ${index} ${"hay ".repeat(200)}` },
  }));
  const report = { ...log.runner, held: [[log.run_id, log.attempt]], as_of_claim: "c", partials: [], finishes: [] };
  const body = JSON.stringify({ ...report, events: [{ run_id: log.run_id, attempt: log.attempt, events }] });
  await rawCall(testbed.url, {
    method: "POST",
    path: "/runner/report",
    headers: createJsonHeaders(testbed.token),
    body,
  });
  const get = (name: string, path: string, token: string | null = user, changes: RawCall | object = {}): Load => ({
    name,
    call: () => ({ path, headers: token === null ? {} : createJsonHeaders(token), ...changes }),
  });
  const post = (name: string, path: string, make: (index: number) => unknown, token: string | null = user): Load => ({
    name,
    call: (index) => ({ method: "POST", path, headers: createJsonHeaders(token), body: JSON.stringify(make(index)) }),
  });
  const cron = { timezone: "Asia/Kathmandu", type: "cron", cron: "59 23 29 2 1" };
  return [
    get("long lists of runs", "/runs?limit=1000", admin),
    get("deep cursors", `/runs?limit=1000&cursor=${"z".repeat(200)}`, admin),
    get("a search that finds much", `/runs?search=${encodeURIComponent("needle hay")}&limit=1000`, admin),
    get("a search of many words", `/runs?search=${encodeURIComponent("hay need ne ha h n 1 2")}`, admin),
    get("pages of a log", `/runs/${log.run_id}/events?limit=1000`, admin),
    get("executions", "/executions?limit=1000", admin),
    get("sessions", "/sessions?limit=1000", admin),
    get("statistics", "/stats", admin),
    get("metrics", "/metrics", admin),
    get("usage", "/usage", admin),
    get("the description of the API", "/openapi.json", null),
    get("the page of docs", "/docs", null),
    get("streams that are left at once", "/events", admin, {
      headOnly: true,
      headers: { ...createJsonHeaders(admin), accept: "text/event-stream" },
    }),
    get("long addresses", `/runs?search=${"a".repeat(7000)}`, user),
    get("many headers", "/runs", user, {
      headers: {
        ...createJsonHeaders(user),
        ...Object.fromEntries([...countUpTo(400)].map((index) => [`x-${index}`, "y".repeat(20)])),
      },
    }),
    get("tokens that nobody knows", "/runs", `drv_${"0".repeat(64)}`),
    post(
      "proofs",
      "/proof",
      (index) => ({ nonce: String(index).padStart(64, "0"), key_id: "0".repeat(16), origin: testbed.url }),
      null,
    ),
    post("checks of the audit chain", "/audit/verify", () => ({}), admin),
    post("backups", "/backup", () => ({}), admin),
    post("schedules that are seldom due", "/schedules/preview", () => cron),
    post("large parameters", "/runs", (index) => ({
      agent_name: "free",
      parameters: { at: index, list: [...countUpTo(50_000)], text: "x".repeat(200_000) },
    })),
    post("parameters with many names", "/runs", (index) => ({
      agent_name: "free",
      parameters: Object.fromEntries([...countUpTo(15_000)].map((name) => [`n${index}x${name}`, name])),
    })),
    post("fields that nobody knows", "/runs", (index) => ({
      agent_name: "free",
      [`x${index}${"y".repeat(300_000)}`]: 1,
    })),
    post("agents that nobody knows", "/runs", (index) => ({ agent_name: `x${index}`.padEnd(64, "y") })),
    post("registrations", "/runner/register", (index) => registration(`key-${index % 20}`), testbed.token),
    {
      name: "lists of tools",
      call: (id) => ({
        method: "POST",
        path: "/mcp",
        headers: { ...createJsonHeaders(user), accept: "application/json, text/event-stream" },
        body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list" }),
      }),
    },
  ];
}

function createJsonHeaders(token: string | null): Record<string, string> {
  return {
    "content-type": "application/json",
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  };
}
