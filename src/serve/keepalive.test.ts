import { type IncomingMessage, request } from "node:http";
import { afterEach, expect, test } from "vitest";
import { registration, startTestCoordinator } from "../../test/coordinator.ts";
import { createHttpPort } from "../wire/http-port.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

const longPoll = { keepaliveMs: 900, pollHoldMs: 600_000 };

test("a held poll starts with whitespace and is still valid JSON", async () => {
  const { ask } = await setUpRunner({ keepaliveMs: 60, pollHoldMs: 6000 });
  const { response, pieces } = await ask("c1");
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-accel-buffering": "no",
  });
  const text = (await pieces).join("");
  expect(text).toMatch(/^\n\n+\{/);
  expect(JSON.parse(text)).toEqual({ claims: [], orders: [] });
});

test("a quick poll gets an ordinary response", async () => {
  const { ask, client } = await setUpRunner({ ...longPoll, keepaliveMs: 50_000 });
  const { run_id } = await client.submit({ agent_name: "worker" });
  const { response, pieces } = await ask("c1");
  const text = (await pieces).join("");
  expect(response.headers["content-length"]).toBe(String(Buffer.byteLength(text)));
  expect(text).toMatch(/^\{/);
  expect(JSON.parse(text).claims).toMatchObject([{ run_id }]);
});

test("assigns a run after the first keepalive, and returns it again for the same claim", async () => {
  const { ask, client } = await setUpRunner(longPoll);
  const { pieces } = await ask("c1");
  const { run_id } = await client.submit({ agent_name: "worker" });
  for (const received of [await pieces, await (await ask("c1")).pieces])
    expect(JSON.parse(received.join("")).claims).toMatchObject([{ run_id, attempt: 1 }]);
});

test("an error after the first keepalive closes the connection, and the next request reports it", async () => {
  const { ask, register } = await setUpRunner(longPoll);
  const { response, pieces } = await ask("c1");
  expect(response.statusCode).toBe(200);
  const disconnected = expect(pieces).rejects.toMatchObject({ code: "ECONNRESET" });
  await register();
  await disconnected;
  const nextResponse = await ask("c1");
  expect(nextResponse.response.statusCode).toBe(409);
  expect(JSON.parse((await nextResponse.pieces).join(""))).toMatchObject({ code: "DROVER-API-017" });
});

test("a token revoked after the first keepalive closes the connection, and the next request is refused", async () => {
  const { ask, client, token_id } = await setUpRunner(longPoll);
  const { pieces } = await ask("c1");
  const disconnected = expect(pieces).rejects.toMatchObject({ code: "ECONNRESET" });
  await client.tokens.revoke(token_id);
  await disconnected;
  expect((await ask("c1")).response.statusCode).toBe(401);
});

test("registration tells the runner after how much silence it may give up a poll", async () => {
  const { registered } = await setUpRunner(longPoll);
  expect(registered.poll_silence_ms).toBe(1500);
});

async function setUpRunner(options: { keepaliveMs: number; pollHoldMs: number }) {
  const coordinator = await startTestCoordinator({ leaseMs: 600_000, ...options });
  const { client, url } = coordinator;
  cleanups.push(async () => {
    await coordinator.dispose();
    expect(coordinator.defects).toEqual([]);
  });
  await client.agents.put("worker", { command: "true" });
  const { token, token_id } = await client.tokens.create({ role: "runner", subject: "box" });
  const port = createHttpPort({ url, token });
  const register = () => port.register(registration("key-a")).finally(() => port.close());
  const registered = await register();
  const { runner_id, epoch } = registered;
  return {
    client,
    token_id,
    registered,
    register,
    ask: (claim_id: string) => poll(url, token, { runner_id, epoch, claim_id, want: 1, ack_order: 0 }),
  };
}

/** Resolves with the headers of the response. */
async function poll(
  url: string,
  token: string,
  body: object,
): Promise<{ response: IncomingMessage; pieces: Promise<string[]> }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const clientRequest = request(`${url}/runner/poll`, {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });
    clientRequest.on("response", resolve);
    clientRequest.on("error", reject);
    clientRequest.end(JSON.stringify(body));
  });
  const pieces = (async () => {
    const received: string[] = [];
    for await (const piece of response) received.push(String(piece));
    return received;
  })();
  // Tests that await it see the error.
  pieces.catch(() => undefined);
  return { response, pieces };
}
