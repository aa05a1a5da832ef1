import type { TokenRole } from "../src/model/token.ts";
import type { Route } from "../src/serve/route.ts";
import { routes } from "../src/serve/routes.ts";
import { createClient } from "../src/wire/client.ts";
import { createHttpPort } from "../src/wire/http-port.ts";
import { registration } from "../test/coordinator.ts";
import { ask, type Ids, type Seen } from "./ask-route.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { endOne, enrolTwice, finishOne } from "./token-ends.ts";
import { forEachConcurrently, countUpTo } from "./wait.ts";

/** How long an open stream or poll may outlive its token. */
const lateMs = 2000;

/**
 * S4: every route, called with every role at every coordinator, answers as its rule says. A token that ends at one
 * coordinator (revoked, rotated, expired, used up, its run finished) is refused at the others by the time that call returns.
 */
export async function accessRules({ rounds }: { rounds: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 600_000, pollHoldMs: 2000 }, async (testbed) => {
    const seen: Seen = { requests: 0, ended: 0, enrolled: 0, cutMs: [], broken: [] };
    const ids = await makeObjects(testbed);
    await callEveryRoute(testbed, ids, seen);
    await forEachConcurrently(countUpTo(rounds), 4, async (round) => {
      await endOne(testbed, ids, round, seen);
      if (round % 10 === 0) await enrolTwice(testbed, round, seen);
      if (round % 10 === 5) await finishOne(testbed, round, seen);
      if ((round + 1) % 50 === 0) tools.progress(`${round + 1} of ${rounds} tokens`);
    });
    const longest = largest(seen.cutMs);
    return {
      seen: {
        requests: seen.requests,
        "tokens ended": seen.ended,
        "enrolments tried again": seen.enrolled,
        "answered otherwise": seen.broken.length,
        "streams cut off within ms": Math.round(longest),
      },
      broken: seen.broken,
      late: longest > lateMs ? [`a stream outlived its token by ${Math.round(longest)} ms`] : [],
    };
  });
}

/** Creates one object of each kind, all owned by ann. */
async function makeObjects({ client, url, coordinators, putAgent }: Testbed): Promise<Ids> {
  await putAgent("work");
  const ann = await client.tokens.create({ role: "user", subject: "ann" });
  const runner = await client.tokens.create({ role: "runner", subject: "ann" });
  const port = createHttpPort({ url: coordinators[0]!.url, token: runner.token });
  const { runner_id } = await port.register(registration("of ann"));
  port.close();
  const annClient = createClient({ url, token: ann.token });
  const run = await annClient.submit({
    agent_name: "work",
    // No runner claims it.
    demands: { tags: ["nowhere"] },
  });
  const { run_id, session_id } = run;
  await annClient.hooks.add({ name: "work", agent_name: "work" });
  await annClient.webhooks.add({ name: "work", url: "https://hooks.example/", scope: "named", events: ["cancelled"] });
  const { schedule_id } = await annClient.schedules.create({ agent_name: "work", name: "hers", every: "1d" });
  const noticed = await annClient.submit({ agent_name: "work", demands: { tags: ["nowhere"] }, webhooks: ["work"] });
  await annClient.runs.stop(noticed.run_id);
  const [delivery] = (await annClient.webhooks.deliveries()).items;
  return {
    run_id,
    session_id: session_id ?? "",
    runner_id,
    token_id: ann.token_id,
    schedule_id,
    delivery_id: delivery?.delivery_id ?? "",
    execution_id: "0190aaaa-0000-7000-8000-000000000001",
    name: "work",
    path: "x",
  };
}

async function callEveryRoute({ client, coordinators }: Testbed, ids: Ids, seen: Seen): Promise<void> {
  const make = async (role: TokenRole, subject: string) => ({
    role,
    subject,
    token: (await client.tokens.create({ role, subject })).token,
  });
  const anonymous = { role: null, subject: "" };
  const callers = [
    { ...anonymous, token: null },
    { ...anonymous, token: "Gar.bage-" },
    { ...anonymous, token: `drv_${"0".repeat(32)}` },
    { ...anonymous, token: `drva_${ids["run_id"]}.1.${"0".repeat(64)}` },
    await make("admin", "boss"),
    await make("user", "ann"),
    await make("user", "bob"),
    await make("viewer", "ann"),
    await make("viewer", "bob"),
    await make("viewer", "*"),
    await make("runner", "ann"),
    await make("runner", "bob"),
  ];
  for (const { url } of coordinators)
    for (const { token, ...who } of callers)
      for (const row of routes) {
        const status = await ask(url, row, ids, token, seen);
        const expectedStatus = getExpectedStatus(row, who);
        if (!expectedStatus(status))
          seen.broken.push(`${row.method} ${row.path} as ${who.role} ${who.subject} is answered with ${status}`);
      }
}

interface Who {
  role: TokenRole | null;
  subject: string;
}

/** For an allowed request, checks only that it is let in. Other tests check its effect. */
function getExpectedStatus({ rule }: Route, { role, subject }: Who): (status: number) => boolean {
  const letIn = (status: number): boolean => status !== 401 && status !== 403 && status < 500;
  if ("open" in rule) return letIn;
  if ("signed" in rule || role === null) return (status) => status === 401;
  if ("enrolment" in rule || !rule.roles.includes(role)) return (status) => status === 403;
  const seesAll = role === "admin" || subject === "*";
  if (rule.allOwners && !seesAll) return (status) => status === 403;
  if (rule.object !== undefined && !seesAll && subject !== "ann") return (status) => status === 404;
  return letIn;
}
