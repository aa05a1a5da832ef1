import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import { type Coordinator, startCoordinator } from "../coordinator.ts";
import { HostError } from "../model/errors.ts";
import { createClient } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";
import { createTokenWatch } from "./token-watch.ts";
import { hashToken, newTokenText } from "./token-text.ts";

let coordinator: TestCoordinator;
/** Another coordinator that shares only the record with the first one. */
let other: Coordinator;
let drop: (() => Promise<void>) | null = null;

const streams: { what: string; path: string }[] = [
  { what: "the stream of a run", path: "/runs/RUN/events" },
  { what: "the stream of all runs", path: "/events" },
];

describe.each(["sqlite", "postgres"])("the watch of tokens, on %s", (engine) => {
  beforeAll(async () => {
    // Held polls and streams must not end on their own during a test.
    const options = { pollHoldMs: 200_000, leaseMs: 600_000 };
    const database = engine === "sqlite" ? null : await freshDatabase();
    const recordOptions = { database: database && { url: database.url, secret: randomBytes(32) } };
    coordinator = await startTestCoordinator({ ...options, ...recordOptions });
    other = await startCoordinator({ stateDirectory: coordinator.directory, port: 0, ...options, ...recordOptions });
    drop = database?.drop ?? null;
    await coordinator.client.agents.put("guarded", { command: "true" });
  });
  afterAll(async () => {
    expect(coordinator.defects).toEqual([]);
    await other.stop();
    await coordinator.dispose();
    await drop?.();
  });

  test.each(streams)("$what ends when its token is revoked, here or by another coordinator", async ({ path }) => {
    for (const url of [coordinator.url, other.url]) {
      const { ann, annsToken } = await createAnn();
      const { run_id } = await ann.submit({ agent_name: "guarded" });
      const stream = await openStream(url, path.replace("RUN", run_id), annsToken.token);
      expect(stream.status).toBe(200);
      const bystander = await openStream(url, "/events", coordinator.adminToken);
      await coordinator.client.tokens.revoke(annsToken.token_id);
      await stream.whenEnded;
      expect(bystander.isOpen()).toBe(true);
      bystander.close();
    }
  });

  // Concurrently, because each waits for its token to expire. The lifetime leaves a busy machine time to start.
  test.concurrent.each(streams)(
    "$what ends when its token expires, and when it was rotated at once",
    async ({ path }) => {
      const { ann, annsToken } = await createAnn({ expires_at: new Date(Date.now() + 10_000).toISOString() });
      const { run_id } = await ann.submit({ agent_name: "guarded" });
      const stream = await openStream(coordinator.url, path.replace("RUN", run_id), annsToken.token);
      expect(stream.status).toBe(200);
      await stream.whenEnded;

      const second = await createAnn();
      const rotated = await openStream(other.url, path.replace("RUN", run_id), second.annsToken.token);
      const next = await coordinator.client.tokens.rotate(second.annsToken.token_id, { overlap_seconds: 0 });
      await rotated.whenEnded;
      const again = await openStream(other.url, path.replace("RUN", run_id), next.token);
      expect(again.status).toBe(200);
      again.close();
    },
  );

  test("ends even a stream that is not being read", async () => {
    const { annsToken } = await createAnn();
    const stream = await openStream(coordinator.url, "/events", annsToken.token, "paused");
    await coordinator.client.tokens.revoke(annsToken.token_id);
    await stream.whenEnded;
  });

  test("refuses a held poll when its token is revoked, here or by another coordinator", async () => {
    for (const { url } of [coordinator, other]) {
      const created = await coordinator.client.tokens.create({ role: "runner", subject: "farm" });
      const port = createHttpPort({ url, token: created.token, pollHoldMs: 200_000 });
      const { runner_id, epoch } = await port.register(
        registration(`key ${created.token_id}`, `/srv/${created.token_id}`),
      );
      const { registered_at } = (await readRunner(runner_id))!;
      // Wait until a later time differs from the registration's.
      await expect.poll(() => new Date().toISOString() > registered_at).toBe(true);
      const outcome = port.poll({ runner_id, epoch, claim_id: "c1", want: 0, ack_order: 0 }, neverAborted).then(
        () => "no error",
        (error) => error.conflict,
      );
      await expect.poll(() => isSeenAfter(runner_id, registered_at)).toBe(true);
      await coordinator.client.tokens.revoke(created.token_id);
      expect(await outcome).toBe("unauthorized");
      port.close();
    }
  });

  test("refuses an upload whose token is revoked before the upload ends", async () => {
    const { client, url } = coordinator;
    const runner = await client.tokens.create({ role: "runner", subject: "ann" });
    const port = createHttpPort({ url, token: runner.token });
    const { runner_id, epoch } = await port.register(registration("uploads", "/srv/uploads"));
    await client.submit({ agent_name: "guarded", demands: { project_dir: "/srv/uploads" } });
    const { claims } = await port.poll(
      { runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 },
      AbortSignal.timeout(60_000),
    );
    const { run_id, attempt } = claims[0]!;
    let onSent = (): void => undefined;
    const firstChunk = new Promise<void>((resolve) => (onSent = resolve));
    // The rest of the file is never sent.
    const content = Readable.from(
      (async function* () {
        yield randomBytes(1000);
        onSent();
        await new Promise(() => undefined);
      })(),
    );
    const upload = port
      .upload(
        { runner_id, epoch, run_id, attempt, sha256: "0".repeat(64), size: 100_000 },
        content,
        // Long before either side times out a stalled upload.
        AbortSignal.timeout(20_000),
      )
      .then(
        () => "stored",
        (error) => error.conflict,
      );
    await firstChunk;
    await client.tokens.revoke(runner.token_id);
    expect(await upload).toBe("unauthorized");
    port.close();
  });

  test("refuses a request whose body arrives after its token was revoked", async () => {
    const { annsToken } = await createAnn();
    const body = JSON.stringify({ agent_name: "guarded" });
    const status = new Promise<number>((resolve, reject) => {
      const clientRequest = request(`${coordinator.url}/runs`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${annsToken.token}`,
          "content-type": "application/json",
          "content-length": body.length,
          expect: "100-continue",
        },
        agent: false,
      });
      clientRequest.on("error", reject);
      clientRequest.on("response", (response) => resolve(response.resume().statusCode ?? 0));
      clientRequest.on("continue", () => {
        clientRequest.write(body.slice(0, 5));
        coordinator.client.tokens.revoke(annsToken.token_id).then(() => clientRequest.end(body.slice(5)), reject);
      });
      clientRequest.flushHeaders();
    });
    expect(await status).toBe(401);
  });

  test("ends the stream of an attempt token when the attempt is over", async () => {
    const { client, url, adminToken } = coordinator;
    const port = createHttpPort({ url, token: adminToken });
    const { runner_id, epoch } = await port.register(registration("attempts", "/srv/attempts"));
    const demands = { project_dir: "/srv/attempts" };
    for (let created = 0; created < 2; created += 1) await client.submit({ agent_name: "guarded", demands });
    const claim = async (claim_id: string) =>
      (await port.poll({ runner_id, epoch, claim_id, want: 1, ack_order: 0 }, AbortSignal.timeout(60_000))).claims[0]!;
    const lost = await claim("c1");
    const newest = await claim("c2");
    const stream = await openStream(other.url, `/runs/${lost.run_id}/events`, lost.attempt_token);
    expect(stream.status).toBe(200);
    // The run is not reported as held, so it returns to the queue.
    const held: [string, number][] = [[newest.run_id, newest.attempt]];
    await port.report({ runner_id, epoch, held, as_of_claim: "c1", events: [], partials: [], finishes: [] });
    await stream.whenEnded;
    port.close();
  });

  test("a client that follows events fails when its token ends instead of reconnecting forever", async () => {
    const { ann, annsToken } = await createAnn();
    const { run_id } = await ann.submit({ agent_name: "guarded" });
    const following = createClient({ url: other.url, token: annsToken.token }).runs.follow(run_id);
    expect((await following.next()).value?.event.type).toBe("status");
    const outcome = following.next().then(
      () => "an event",
      (error) => error.code,
    );
    await coordinator.client.tokens.revoke(annsToken.token_id);
    expect(await outcome).toBe("DROVER-API-010");
  });

  test("among many open requests, ends exactly those whose token has ended", async () => {
    const { store } = coordinator;
    const created_at = new Date().toISOString();
    const texts = Array.from({ length: 1300 }, () => newTokenText("drv_"));
    const token = {
      kind: "access",
      role: "runner",
      subject: "farm",
      label: null,
      created_by: "ops",
      created_at,
      expires_at: null,
      revoked_at: null,
      used_at: null,
    } as const;
    // These ids sort before and after all others.
    const toId = (index: number): string => `${index < 650 ? "0" : "f"}-${String(index).padStart(4, "0")}`;
    await store.apply(
      texts.map((text, index) => ({
        op: "put_token",
        hash: hashToken(text),
        token: { ...token, token_id: toId(index) },
      })),
    );
    const tokenWatch = createTokenWatch({
      store,
      authEnabled: true,
      now: () => new Date(),
      onDefect: (error) => coordinator.defects.push(error),
      attemptTokens: { sign: () => "", verify: () => null },
    });
    const credentials = texts.flatMap((text, index) => (index % 4 === 0 ? [{ text, at: index }] : []));
    const watches = credentials.map(({ text, at }) =>
      tokenWatch.watch(`Bearer ${text}`, { kind: "token", role: "runner", subject: "farm", token_id: toId(at) }),
    );
    const unknownWatch = tokenWatch.watch("Bearer drv_unknown", {
      kind: "token",
      role: "user",
      subject: "x",
      token_id: "x",
    });
    await tokenWatch.recheck();
    expect(watches.filter(({ refusal }) => refusal)).toEqual([]);
    expect(unknownWatch.refusal?.problem.code).toBe("DROVER-API-009");
    const revokedIndexes = [0, 4, 648, 652, 1296];
    await store.apply(revokedIndexes.map((index) => ({ op: "revoke_token", token_id: toId(index), at: created_at })));
    await tokenWatch.recheck();
    expect(credentials.filter((_, index) => watches[index]!.refusal).map(({ at }) => at)).toEqual(revokedIndexes);
    for (const watch of [...watches, unknownWatch]) watch.stop();
  });

  test("keeps requests open if the store fails, and reports the error", async () => {
    const defects: unknown[] = [];
    let outcome: "fault" | "unknown" = "fault";
    const tokenWatch = createTokenWatch({
      authEnabled: true,
      now: () => new Date(),
      onDefect: (error) => defects.push(error),
      attemptTokens: { sign: () => "", verify: () => null },
      store: {
        ...coordinator.store,
        read: {
          ...coordinator.store.read,
          async token() {
            if (outcome === "unknown") return null;
            throw new HostError({ code: "DROVER-STA-003", message: "locked" });
          },
        },
      },
    });
    const watch = tokenWatch.watch("Bearer drv_x", { kind: "token", role: "user", subject: "ann", token_id: "t" });
    let calls = 0;
    watch.onRefused(() => (calls += 1));
    await tokenWatch.recheck();
    expect([watch.refusal, defects.length]).toEqual([null, 1]);
    outcome = "unknown";
    await tokenWatch.recheck();
    expect([watch.refusal?.problem.status, calls, defects.length]).toEqual([401, 1, 1]);
    watch.stop();
    watch.stop();
    await tokenWatch.recheck();
    expect(calls).toBe(1);
  });
});

const neverAborted = new AbortController().signal;

const readRunner = async (runner_id: string) =>
  (await coordinator.client.runners.list()).items.find((row) => row.runner_id === runner_id);
const isSeenAfter = async (runner_id: string, time: string) =>
  ((await readRunner(runner_id))?.last_seen_at ?? "") > time;

async function createAnn(changes: { expires_at?: string } = {}) {
  const created = await coordinator.client.tokens.create({ role: "user", subject: "ann", ...changes });
  return { annsToken: created, ann: createClient({ url: coordinator.url, token: created.token }) };
}

interface OpenStream {
  status: number;
  /** Resolves when the other side has ended the stream, in whatever way. */
  whenEnded: Promise<void>;
  isOpen(): boolean;
  close(): void;
}

function openStream(url: string, path: string, token: string, reading: "reading" | "paused" = "reading") {
  return new Promise<OpenStream>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
    const clientRequest = request(`${url}${path}`, { headers, agent: false }, (response) => {
      let closed = false;
      const whenEnded = new Promise<void>((done) => {
        // A broken connection emits error and close, a regular end only close.
        response.on("error", () => done()).on("close", () => done());
        clientRequest.on("close", () => done());
      }).then(() => void (closed = true));
      if (reading === "reading") response.resume();
      resolve({
        status: response.statusCode ?? 0,
        whenEnded,
        isOpen: () => !closed,
        close: () => void clientRequest.destroy(),
      });
    });
    clientRequest.on("error", reject);
    clientRequest.end();
  });
}
