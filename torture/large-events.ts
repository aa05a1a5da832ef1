import { readFileSync } from "node:fs";
import { rawCall } from "../test/http-call.ts";
import { registration } from "../test/coordinator.ts";
import { type ClaimedRun, claimOverHttp } from "../test/fixtures/dispatch/claimed.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { describeImpact, openBystander } from "./bystander.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo as createRange } from "./wait.ts";

const maxGrowthMb = 512;
const maxPageBytes = 2 * 1024 * 1024;
const megabyte = 1024 * 1024;

/** M2: sends reports and registrations that are as large and expensive as possible, and reads back what was stored. */
export async function largeEvents({ rounds, idleMs = 5000 }: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 3_600_000 }, async (testbed) => {
    const run = await claimOverHttp({ ...testbed, adminToken: testbed.token }, "large");
    const bystander = await openBystander(testbed, tools);
    const idle = await bystander.during(pause(idleMs));
    const sent: Sent = { requests: 0, taken: 0, refused: 0, broken: [], peakMb: 0 };
    const start = readResidentMb(testbed);
    const underLoad = await bystander.during(send(testbed, run, rounds, sent));
    const growth = Math.round(sent.peakMb - start);
    if (growth > maxGrowthMb) sent.broken.push(`the coordinators grew by ${growth} MB`);
    run.port.close();
    const { seen, late, broken } = await describeImpact(testbed, idle, underLoad);
    const { requests, taken, refused } = sent;
    return {
      seen: { requests, taken, refused, "growth MB": growth, ...seen },
      broken: [...sent.broken, ...broken],
      late,
    };
  });
}

interface Size {
  rounds: number;
  /** How long the baseline without load is measured. */
  idleMs?: number;
}

interface Sent {
  requests: number;
  taken: number;
  refused: number;
  broken: string[];
  peakMb: number;
}

/** Sends every body in each round, four at a time, then reads back everything stored. */
async function send(testbed: Testbed, run: ClaimedRun, rounds: number, sent: Sent): Promise<void> {
  const bodies = [...createReports(run), ...createRegistrations()];
  let n = 0;
  for (const _ of createRange(rounds)) {
    await forEachConcurrently(bodies, 4, async ({ path, name, make }) => {
      const { status, text } = await post(testbed, path, make(path === "/runner/report" ? (n += 1) : 0));
      sent.requests += 1;
      sent[status < 300 ? "taken" : "refused"] += 1;
      if (status >= 500) sent.broken.push(`${name}: ${status} ${text.slice(0, 300)}`);
      if (status === 200) n = Math.max(n, countAcked(text));
      sent.peakMb = Math.max(sent.peakMb, readResidentMb(testbed));
    });
    sent.broken.push(...(await readBack(testbed, run)));
  }
}

export interface Body {
  name: string;
  path: string;
  make(n: number): string;
}

export function createReports({ run_id, attempt, runner }: ClaimedRun): Body[] {
  const base = { ...runner, held: [[run_id, attempt]], as_of_claim: "c", events: [], partials: [], finishes: [] };
  const report = (name: string, make: (n: number) => object): Body => ({
    name,
    path: "/runner/report",
    make: (n) => JSON.stringify({ ...base, ...make(n) }),
  });
  const at = "2026-01-01T00:00:00.000Z";
  const item = (event: unknown) => (n: number) => ({ events: [{ run_id, attempt, events: [{ n, at, event }] }] });
  const result = (output: unknown) => item({ type: "tool_result", tool_use_id: "t", is_error: false, output });
  return [
    report("18 MB of text", item({ type: "assistant", text: "x".repeat(18 * megabyte) })),
    report("control characters", item({ type: "assistant", text: "\u0000".repeat(3 * megabyte) })),
    report("many different names", result(createNames(200_000))),
    report("names as many as an event may have", result(createNames(4900))),
    report("many numbers", result([...createRange(4_000_000)])),
    report("numbers as many as an event may have", result([...createRange(90_000)])),
    report("just below 1 MB", item({ type: "assistant", text: "x".repeat(megabyte - 100) })),
    report("deep", result(JSON.parse("[".repeat(55) + "]".repeat(55)))),
    report("lone surrogates", item({ type: "assistant", text: "\ud800".repeat(100_000) })),
    report("many tiny events", (n) => ({
      events: [
        {
          run_id,
          attempt,
          events: [...createRange(100_000)].map((more) => ({
            n: n + more,
            at,
            event: { type: "progress", percent: 1 },
          })),
        },
      ],
    })),
    report("numbers with holes", (n) => item({ type: "assistant", text: "far" })(n + 1_000_000)),
    report("many runs", () => ({
      events: [...createRange(50_000)].map((other) => ({ run_id: `none ${other}`, attempt: 1, events: [] })),
    })),
    report("many finishes", () => ({
      finishes: [...createRange(50_000)].map((other) => ({
        run_id: `none ${other}`,
        attempt: 1,
        last_n: 0,
        outcome: { status: "cancelled", by: "user" },
      })),
    })),
    report("partials of 18 MB", () => ({
      partials: [{ run_id, attempt, delta: { kind: "output", text: "x".repeat(18 * megabyte) } }],
    })),
  ];
}

export function createRegistrations(): Body[] {
  const body = (name: string, changes: object): Body => ({
    name,
    path: "/runner/register",
    make: () => JSON.stringify({ ...registration("heavy"), ...changes }),
  });
  const agent = (index: number, changes: object = {}) => ({ name: `agent-${index}`, command: "true", ...changes });
  const schema = (properties: object) => ({ parameters_schema: { type: "object", properties } });
  return [
    body("20 MB", { project_dir: "x".repeat(20 * megabyte) }),
    body("10,000 agents", { agents: [...createRange(10_000)].map((index) => agent(index)) }),
    body("1,000 agents", { agents: [...createRange(1000)].map((index) => agent(index)) }),
    body("a large agent", { agents: [agent(1, { description: "x".repeat(megabyte) })] }),
    body("a schema of many names", { agents: [agent(1, schema(createNames(100_000)))] }),
    body("100,000 tags", { tags: [...createRange(100_000)].map(String) }),
    body("a large configuration", { executor: { type: "procedural", config: createNames(50_000) } }),
  ];
}

function createNames(count: number): Record<string, number> {
  return Object.fromEntries([...createRange(count)].map((index) => [`name${index}`, index]));
}

/** Checks that every event comes back in order and that pages stay small. */
async function readBack(testbed: Testbed, { run_id }: ClaimedRun): Promise<string[]> {
  const headers = { authorization: `Bearer ${testbed.token}` };
  const broken: string[] = [];
  let expectedSeq = 1;
  for (let after: number | null = 0; after !== null;) {
    const page = await rawCall(testbed.url, { path: `/runs/${run_id}/events?limit=1000&after=${after}`, headers });
    if (page.status !== 200) return [...broken, `a page after ${after}: ${page.status} ${page.text.slice(0, 300)}`];
    if (page.text.length > maxPageBytes) broken.push(`a page of ${page.text.length} bytes`);
    // The coordinator's response.
    const { items, next_cursor } = JSON.parse(page.text) as { items: { seq: number }[]; next_cursor: number | null };
    for (const { seq } of items) if (seq !== expectedSeq++) broken.push(`seq ${seq} where ${expectedSeq - 1} was due`);
    after = next_cursor;
  }
  return broken;
}

function post({ url, token }: Testbed, path: string, body: string): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return rawCall(url, { method: "POST", path, headers, body }).catch(() => ({ status: 413, text: "cut off" }));
}

function countAcked(text: string): number {
  // The coordinator's response. A registration's has no acks.
  const { acked = [] } = JSON.parse(text) as { acked?: { n: number }[] };
  return largest(acked.map(({ n }) => n));
}

function readResidentMb({ coordinators }: Testbed): number {
  return coordinators.reduce((sum, { child }) => {
    const pages = Number(readFileSync(`/proc/${child.pid}/statm`, "utf8").split(" ")[1]);
    return sum + (pages * 4096) / megabyte;
  }, 0);
}
