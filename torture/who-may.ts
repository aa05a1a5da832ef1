import { createClient, type Client } from "../src/wire/client.ts";
import { createHttpPort } from "../src/wire/http-port.ts";
import type { TokenRole } from "../src/model/token.ts";
import { type Route, withParameters } from "../src/serve/route.ts";
import { routes } from "../src/serve/routes.ts";
import { registration } from "../test/coordinator.ts";
import { rawCall } from "../test/http-call.ts";
import { type Finding, largest, type Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import { each, pause, upTo, waitFor } from "./wait.ts";

/** How long a stream or poll that is open may outlive the token it came with. */
const lateMs = 2000;

interface Seen {
  asked: number;
  ended: number;
  enrolled: number;
  cutMs: number[];
  broken: string[];
}

/**
 * S4: every route asked as everybody, at every coordinator, answers as its rule says; and what ends a token at one of
 * them (revoked, rotated, expired, used up, its run finished) ends it at the others by the time that is answered.
 */
export async function whoMay({ rounds }: { rounds: number }, tools: Tools): Promise<Finding> {
  return inPlace(tools, { leaseMs: 600_000, pollHoldMs: 2000 }, async (place) => {
    const seen: Seen = { asked: 0, ended: 0, enrolled: 0, cutMs: [], broken: [] };
    const ids = await makeObjects(place);
    await askEverything(place, ids, seen);
    await each(upTo(rounds), 4, async (round) => {
      await endOne(place, ids, round, seen);
      if (round % 10 === 0) await enrolTwice(place, round, seen);
      if (round % 10 === 5) await finishOne(place, round, seen);
      if ((round + 1) % 50 === 0) tools.progress(`${round + 1} of ${rounds} tokens`);
    });
    const longest = largest(seen.cutMs);
    return {
      seen: {
        requests: seen.asked,
        "tokens ended": seen.ended,
        "enrolments used twice": seen.enrolled,
        "answered otherwise": seen.broken.length,
        "streams cut off within ms": Math.round(longest),
      },
      broken: seen.broken,
      late: longest > lateMs ? [`a stream outlived its token by ${Math.round(longest)} ms`] : [],
    };
  });
}

type Ids = Record<string, string>;

/** All of it ann's. */
async function makeObjects({ client, url, coordinators, putAgent }: Place): Promise<Ids> {
  await putAgent("work");
  const ann = await client.tokens.create({ role: "user", subject: "ann" });
  const runner = await client.tokens.create({ role: "runner", subject: "ann" });
  const port = createHttpPort({ url: coordinators[0]!.url, token: runner.token });
  const { runner_id } = await port.register(registration("of ann"));
  port.close();
  const run = await createClient({ url, token: ann.token }).submit({
    agent_name: "work",
    // nobody takes it
    demands: { tags: ["nowhere"] },
  });
  const { run_id, session_id } = run;
  return {
    run_id,
    session_id: session_id ?? "",
    runner_id,
    token_id: ann.token_id,
    execution_id: "0190aaaa-0000-7000-8000-000000000001",
    name: "work",
    path: "x",
  };
}

async function askEverything({ client, coordinators }: Place, ids: Ids, seen: Seen): Promise<void> {
  const make = async (role: TokenRole, subject: string) => ({
    role,
    subject,
    token: (await client.tokens.create({ role, subject })).token,
  });
  const nobody = { role: null, subject: "" };
  const askers = [
    { ...nobody, token: null },
    { ...nobody, token: "Gar.bage-" },
    { ...nobody, token: `drv_${"0".repeat(32)}` },
    { ...nobody, token: `drva_${ids["run_id"]}.1.${"0".repeat(64)}` },
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
    for (const { token, ...who } of askers)
      for (const row of routes) {
        const status = await ask(url, row, ids, token, seen);
        const due = expected(row, who);
        if (!due(status))
          seen.broken.push(`${row.method} ${row.path} as ${who.role} ${who.subject} is answered with ${status}`);
      }
}

interface Who {
  role: TokenRole | null;
  subject: string;
}

/** Of what is let in only that it is: what is made of it is for other tests. */
function expected({ rule }: Route, { role, subject }: Who): (status: number) => boolean {
  const letIn = (status: number): boolean => status !== 401 && status !== 403 && status < 500;
  if ("open" in rule) return letIn;
  if (role === null) return (status) => status === 401;
  if ("enrolment" in rule || !rule.roles.includes(role)) return (status) => status === 403;
  const seesAll = role === "admin" || subject === "*";
  if (rule.everyones && !seesAll) return (status) => status === 403;
  if (rule.object !== undefined && !seesAll && subject !== "ann") return (status) => status === 404;
  return letIn;
}

async function ask(url: string, row: Route, ids: Ids, token: string | null, seen: Seen): Promise<number> {
  const path = withParameters(row.path, (key) => encodeURIComponent(ids[key] ?? "x"));
  // nothing is changed by it
  const body = row.method === "get" ? {} : { body: '{"unexpected":true}' };
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  seen.asked += 1;
  return (await rawCall(url, { method: row.method.toUpperCase(), path, headers, ...body })).status;
}

const roles = ["admin", "user", "viewer", "runner"] as const;
const closed = routes.filter(({ rule }) => !("open" in rule));

/** Good at one coordinator, ended at another, refused at the first; a stream that was open there ends. */
async function endOne(place: Place, ids: Ids, round: number, seen: Seen): Promise<void> {
  const [here, there] = pair(place, round);
  const admin = createClient({ url: here, token: place.token });
  const role = roles[round % roles.length]!;
  const subject = `subject-${round}`;
  const way = (["revoke", "revoke all", "rotate", "expire"] as const)[Math.floor(round / 4) % 4]!;
  const expires = way === "expire" ? { expires_at: new Date(Date.now() + 1000).toISOString() } : {};
  const made = await admin.tokens.create({ role, subject, ...expires });
  const before = await statusOf(there, made.token);
  if (before !== (role === "runner" ? 403 : 200))
    seen.broken.push(`a new token of a ${role} is answered with ${before}`);
  const stream = role === "runner" ? null : openStream(there, made.token);
  if (stream) await waitFor(async () => (stream.open ? true : null), 5000, 5);
  if (way === "revoke") await admin.tokens.revoke(made.token_id);
  else if (way === "revoke all") await admin.tokens.revokeOf(subject);
  else if (way === "rotate") await admin.tokens.rotate(made.token_id, { overlap_seconds: 0 });
  else await pause(Math.max(0, Date.parse(made.expires_at ?? "") - Date.now() + 5));
  const endedAt = performance.now();
  seen.ended += 1;
  for (const row of closed) {
    const status = await ask(there, row, ids, made.token, seen);
    if (status !== 401)
      seen.broken.push(`${row.method} ${row.path} after ${way} at another is answered with ${status}`);
  }
  if (stream === null) return;
  const cut = await waitFor(async () => (stream.open ? null : true), 10_000, 5);
  seen.cutMs.push(performance.now() - endedAt);
  if (cut === null) seen.broken.push(`a stream went on after ${way}`);
  stream.leave();
}

function pair({ coordinators }: Place, round: number): [string, string] {
  const [a, b] = [coordinators[0]!.url, (coordinators[1] ?? coordinators[0]!).url];
  return round % 2 === 0 ? [a, b] : [b, a];
}

async function statusOf(url: string, token: string): Promise<number> {
  return (await rawCall(url, { path: "/runs", headers: { authorization: `Bearer ${token}` } })).status;
}

function openStream(url: string, token: string) {
  const cut = new AbortController();
  const stream = { open: false, leave: () => cut.abort() };
  const read = async (): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
    const response = await fetch(`${url}/events`, { headers, signal: cut.signal });
    stream.open = response.status === 200;
    for await (const _ of response.body ?? []) continue;
  };
  // ended from either side, which is what is waited for
  void read().then(
    () => (stream.open = false),
    () => (stream.open = false),
  );
  return stream;
}

/** At both at once, and then again: one of them has it. */
async function enrolTwice(place: Place, round: number, seen: Seen): Promise<void> {
  const [here, there] = pair(place, round);
  const admin: Client = createClient({ url: here, token: place.token });
  const { token } = await admin.tokens.create({ role: "runner", subject: `fleet-${round}`, enrolment: true });
  const enrol = (url: string) => createClient({ url, token }).runners.enroll();
  const tries = await Promise.allSettled([enrol(here), enrol(there), enrol(here), enrol(there)]);
  const got = tries.filter(({ status }) => status === "fulfilled").length;
  const again = await enrol(there).then(
    () => true,
    () => false,
  );
  seen.enrolled += 1;
  if (got !== 1 || again) seen.broken.push(`one enrolment was used ${got + Number(again)} times`);
}

/** The token of an attempt ends with it. */
async function finishOne(place: Place, round: number, seen: Seen): Promise<void> {
  const [here, there] = pair(place, round);
  const port = createHttpPort({ url: here, token: place.token });
  const name = `finisher-${round}`;
  const { runner_id, epoch } = await port.register({ ...registration(name, `/srv/${name}`), name });
  const { run_id } = await place.client.submit({ agent_name: "work", demands: { runner_id } });
  const claim_id = `claim ${round}`;
  const poll = { runner_id, epoch, claim_id, want: 1, ack_order: 0 };
  const { claims } = await port.poll(poll, AbortSignal.timeout(30_000));
  const { attempt, attempt_token } = claims[0]!;
  const path = `/runs/${run_id}`;
  const headers = { authorization: `Bearer ${attempt_token}` };
  const before = await rawCall(there, { path, headers });
  const outcome = { status: "completed", exit_code: 0, text: null } as const;
  const finishes = [{ run_id, attempt, last_n: 0, outcome }];
  await port.report({ runner_id, epoch, held: [], as_of_claim: claim_id, events: [], partials: [], finishes });
  const after = await rawCall(there, { path, headers });
  if (before.status !== 200 || after.status !== 401)
    seen.broken.push(`the token of an attempt: ${before.status}, and ${after.status} when it had finished`);
  await port.deregister({ runner_id, epoch });
  port.close();
}
