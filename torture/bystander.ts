import { setPriority } from "node:os";
import type { Tools } from "./finding.ts";
import type { Testbed } from "./testbed.ts";
import { stallMs, readStalls } from "./stalls.ts";

/** Another user of the same coordinators, who sends requests now and then and measures the response times. */
export interface Bystander {
  /** Response times while the work is in progress. */
  during(work: Promise<unknown>): Promise<ResponseTimes>;
}

export interface ResponseTimes {
  requests: number;
  p99: number;
  longest: number;
}

/** The parameters of one agent have a simple pattern, those of another a pattern that only the checker's thread may evaluate. */
const plain = { type: "object", properties: { name: { type: "string", pattern: "^[a-z][a-z0-9-]*$" } } };
const grouped = { type: "object", properties: { name: { type: "string", pattern: "^([a-z]+-?)*$" } } };

/** Runs in its own process, so that this process's load does not distort the measurement. */
export async function openBystander(
  { client: admin, coordinators, processes, directory }: Testbed,
  { host, lowersPriority }: Pick<Tools, "host" | "lowersPriority">,
): Promise<Bystander> {
  const url = coordinators[0]!.url;
  const { token } = await admin.tokens.create({ role: "user", subject: "other" });
  // No runner has the tag, so that their runs never start and use no CPU.
  const demands = { tags: ["nobody"] };
  await admin.agents.put("plain", { type: "procedural", command: "true", parameters_schema: plain, demands });
  await admin.agents.put("grouped", { type: "procedural", command: "true", parameters_schema: grouped, demands });
  const child = processes.start([process.execPath, host, "user", JSON.stringify({ url, token })], {
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "", HOME: directory },
  });
  await child.waitForOutput(/^serving$/m);
  // The load stands for programs on other machines, which take no core away from this one.
  if (lowersPriority) setPriority(19);
  let measured = 0;
  /** Response times since the last call. */
  const ask = async (): Promise<ResponseTimes> => {
    measured += 1;
    child.signal("SIGUSR2");
    const [, requests, p99, longest] = await child.waitForOutput(
      new RegExp(`^waited ${measured} (\\S+) (\\S+) (\\S+)$`, "m"),
    );
    return { requests: Number(requests), p99: Number(p99), longest: Number(longest) };
  };
  return {
    async during(work) {
      await ask();
      await work;
      return ask();
    },
  };
}

/** The impact on another user and on the event loop: numbers, and exceeded limits. */
export async function describeImpact(
  testbed: Testbed,
  idle: ResponseTimes,
  under: ResponseTimes,
): Promise<{ seen: Record<string, number>; late: string[]; broken: string[] }> {
  const { longest, withOthers, defects } = await readStalls(testbed);
  const late: string[] = [];
  if (longest >= stallMs) late.push(`the event loop stood still for ${longest} ms, with a core to run on`);
  // Below 5 ms a single scheduler slice triples a request's time.
  if (under.p99 > 3 * Math.max(idle.p99, 5))
    late.push(`another user waited ${Math.round(under.p99)} ms (p99), ${Math.round(idle.p99)} idle`);
  return {
    seen: {
      "longest stall ms": longest,
      "with waiting for a core": withOthers,
      "requests of another user": under.requests,
      "p99 ms of another user, idle": roundToTenths(idle.p99),
      "p99 ms meanwhile": roundToTenths(under.p99),
      "longest ms meanwhile": roundToTenths(under.longest),
    },
    late,
    broken: defects,
  };
}

function roundToTenths(number: number): number {
  return Math.round(number * 10) / 10;
}
