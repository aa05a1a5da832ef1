import { needsNoToken } from "../src/serve/rule.ts";
import { routes } from "../src/serve/routes.ts";
import { createClient, type ApiClient } from "../src/wire/client.ts";
import { createHttpPort } from "../src/wire/http-port.ts";
import { registration } from "../test/coordinator.ts";
import { rawCall } from "../test/http-call.ts";
import { ask, type Ids, type Seen } from "./ask-route.ts";
import type { Testbed } from "./testbed.ts";
import { pause, waitFor } from "./wait.ts";

const roles = ["admin", "user", "viewer", "runner"] as const;
const closed = routes.filter(({ rule }) => !needsNoToken(rule));

/** A token that is ended at one coordinator is refused at another at once, and its open stream there ends. */
export async function endOne(testbed: Testbed, ids: Ids, round: number, seen: Seen): Promise<void> {
  const [here, there] = choosePair(testbed, round);
  const admin = createClient({ url: here, token: testbed.token });
  const role = roles[round % roles.length]!;
  const subject = `subject-${round}`;
  const method = (["revoke", "revoke all", "rotate", "expire"] as const)[Math.floor(round / 4) % 4]!;
  const expires = method === "expire" ? { expires_at: new Date(Date.now() + 1000).toISOString() } : {};
  const created = await admin.tokens.create({ role, subject, ...expires });
  const statusBefore = await requestStatus(there, created.token);
  if (statusBefore !== (role === "runner" ? 403 : 200))
    seen.broken.push(`a new token of a ${role} is answered with ${statusBefore}`);
  const stream = role === "runner" ? null : openStream(there, created.token);
  if (stream) await waitFor(async () => (stream.open ? true : null), 60_000, 5);
  if (method === "revoke") await admin.tokens.revoke(created.token_id);
  else if (method === "revoke all") await admin.tokens.revokeSubject(subject);
  else if (method === "rotate") await admin.tokens.rotate(created.token_id, { overlap_seconds: 0 });
  else await pause(Math.max(0, Date.parse(created.expires_at ?? "") - Date.now() + 5));
  const endedAt = performance.now();
  seen.ended += 1;
  for (const row of closed) {
    const status = await ask(there, row, ids, created.token, seen);
    if (status !== 401)
      seen.broken.push(`${row.method} ${row.path} after ${method} at another is answered with ${status}`);
  }
  if (stream === null) return;
  const cut = await waitFor(async () => (stream.open ? null : true), 60_000, 5);
  seen.cutMs.push(performance.now() - endedAt);
  if (cut === null) seen.broken.push(`a stream went on after ${method}`);
  stream.leave();
}

function choosePair({ coordinators }: Testbed, round: number): [string, string] {
  const [a, b] = [coordinators[0]!.url, (coordinators[1] ?? coordinators[0]!).url];
  return round % 2 === 0 ? [a, b] : [b, a];
}

async function requestStatus(url: string, token: string): Promise<number> {
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
  // Either side may end the stream.
  void read().then(
    () => (stream.open = false),
    () => (stream.open = false),
  );
  return stream;
}

/** Uses one enrolment at both coordinators concurrently, and then again. Exactly one succeeds. */
export async function enrolTwice(testbed: Testbed, round: number, seen: Seen): Promise<void> {
  const [here, there] = choosePair(testbed, round);
  const admin: ApiClient = createClient({ url: here, token: testbed.token });
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

/** An attempt's token expires with the attempt. */
export async function finishOne(testbed: Testbed, round: number, seen: Seen): Promise<void> {
  const [here, there] = choosePair(testbed, round);
  const port = createHttpPort({ url: here, token: testbed.token });
  const name = `finisher-${round}`;
  const { runner_id, epoch } = await port.register({ ...registration(name, `/srv/${name}`), name });
  const { run_id } = await testbed.client.submit({ agent_name: "work", demands: { runner_id } });
  const claim_id = `claim ${round}`;
  const poll = { runner_id, epoch, claim_id, want: 1, ack_order: 0 };
  const { claims } = await port.poll(poll, AbortSignal.timeout(60_000));
  const { attempt, attempt_token } = claims[0]!;
  const path = `/runs/${run_id}`;
  const headers = { authorization: `Bearer ${attempt_token}` };
  const statusBefore = await rawCall(there, { path, headers });
  const outcome = { status: "completed", exit_code: 0, text: null } as const;
  const finishes = [{ run_id, attempt, last_n: 0, outcome }];
  await port.report({ runner_id, epoch, held: [], as_of_claim: claim_id, events: [], partials: [], finishes });
  const statusAfter = await rawCall(there, { path, headers });
  if (statusBefore.status !== 200 || statusAfter.status !== 401)
    seen.broken.push(`the token of an attempt: ${statusBefore.status}, and ${statusAfter.status} when it had finished`);
  await port.deregister({ runner_id, epoch });
  port.close();
}
