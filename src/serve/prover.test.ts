import { networkInterfaces } from "node:os";
import { afterEach, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { createClient } from "../wire/client.ts";
import { hashToken, toKeyId, computeProof } from "../wire/proof.ts";
import { createAttemptTokens } from "./attempt-token.ts";
import { createProver } from "./prover.ts";

const nonce = "a1".repeat(32);
const attemptTokens = createAttemptTokens(Buffer.alloc(32, 7), null);
const token = "drv_0123456789abcdef0123456789abcdef";
const hash = hashToken(token);
const localUrl = "http://127.0.0.1:8765";
const tokens = { token_hash: async (prefix: string) => (hash.startsWith(prefix) ? hash : null) };
const expectedProof = (origin: string): string => computeProof(hash, nonce, origin).toString("hex");

const coordinators: TestCoordinator[] = [];
afterEach(async () => {
  for (const coordinator of coordinators.splice(0)) await coordinator.dispose();
});
async function start(options: Parameters<typeof startTestCoordinator>[0] = {}): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator(options);
  coordinators.push(coordinator);
  return coordinator;
}

test.each([
  ["the address of the connection", localUrl, localUrl, true],
  ["the same port on IPv6, where another program may listen", "http://[::1]:8765", localUrl, false],
  ["another loopback address", "http://127.0.0.2:8765", localUrl, false],
  ["another port", "http://127.0.0.1:8766", localUrl, false],
  ["a hostname", "http://localhost:8765", localUrl, false],
  ["an empty origin", "", localUrl, false],
  ["an address with a path", `${localUrl}/`, localUrl, false],
  ["https", "https://127.0.0.1:8765", localUrl, false],
  ["another machine, even if it is one of the public URLs", "http://10.0.0.1:80", localUrl, false],
  [
    "a non-loopback address, even if the connection came in on it",
    "http://10.0.0.1:8765",
    "http://10.0.0.1:8765",
    false,
  ],
  ["a public address on this machine", "http://127.0.0.1:9000", localUrl, true],
  ["another address of a public URL's hostname", "http://[::1]:9000", localUrl, true],
  ["the public address over a socket", "http://127.0.0.1:9000", null, true],
  ["an address over a socket", localUrl, null, false],
])("proves only for its own addresses: %s (%s at %s)", async (_what, origin, localOrigin, proves) => {
  const publicUrls = ["http://localhost:9000/x", "https://drover.example", "http://10.0.0.1"];
  const prove = createProver({ read: tokens, attemptTokens, publicUrls, sockets: new Set() });
  const proof = await prove({ nonce, key_id: toKeyId(token), origin }, localOrigin);
  expect(proof).toBe(proves ? expectedProof(origin) : null);
});

test.each([
  ["its own socket", "unix:7.42", true],
  ["another socket", "unix:7.43", false],
  ["the path of a socket", "unix:/run/s", false],
])("proves only for its own sockets, however the request arrived: %s (%s)", async (_what, origin, proves) => {
  const prove = createProver({ read: tokens, attemptTokens, publicUrls: [], sockets: new Set(["unix:7.42"]) });
  for (const localOrigin of [null, localUrl])
    expect(await prove({ nonce, key_id: toKeyId(token), origin }, localOrigin)).toBe(
      proves ? expectedProof(origin) : null,
    );
});

test("an unknown token gets a stable response of the same form that nobody can verify", async () => {
  const prove = createProver({ read: tokens, attemptTokens, publicUrls: [], sockets: new Set() });
  const proveKey = (key_id: string) => prove({ nonce, key_id, origin: localUrl }, localUrl);
  const unknownKey = toKeyId("drv_unknown");
  const proof = await proveKey(unknownKey);
  expect(proof).toMatch(/^[0-9a-f]{64}$/);
  expect(await proveKey(unknownKey)).toBe(proof);
  expect(await proveKey(toKeyId("drv_another"))).not.toBe(proof);
  expect(proof).not.toBe(computeProof(hashToken("drv_unknown"), nonce, localUrl).toString("hex"));
});

test("while the record is unavailable, proves only tokens that it proved before", async () => {
  let isUnavailable = false;
  const read = {
    async token_hash(prefix: string) {
      if (isUnavailable) throw new Error("unavailable");
      return tokens.token_hash(prefix);
    },
  };
  const prove = createProver({ read, attemptTokens, publicUrls: [], sockets: new Set() });
  const proveKey = (key_id: string) => prove({ nonce, key_id, origin: localUrl }, localUrl);
  expect(await proveKey(toKeyId(token))).toBe(expectedProof(localUrl));
  isUnavailable = true;
  expect(await proveKey(toKeyId(token))).toBe(expectedProof(localUrl));
  await expect(proveKey(toKeyId("drv_unknown"))).rejects.toThrow("unavailable");
});

test("proves every kind of token: user, enrolment, runner, attempt, ephemeral and revoked", async () => {
  const coordinator = await start();
  const { client, url, port } = coordinator;
  const user = await client.tokens.create({ role: "user", subject: "ann" });
  const enrolment = await client.tokens.create({ role: "runner", subject: "ann", enrolment: true });
  await expect(createClient({ url, token: user.token }).me()).resolves.toMatchObject({ subject: "ann" });
  const runner = await createClient({ url, token: enrolment.token }).runners.enroll();
  const ephemeral = await coordinator.issueRunnerToken();
  for (const item of [runner.token, ephemeral])
    await expect(createClient({ url, token: item }).runs.list()).rejects.toMatchObject({ code: "DROVER-API-011" });
  await client.agents.put("work", { command: "true" });
  const { run_id } = await client.submit({ agent_name: "work" });
  const { runner_id, epoch } = await port.register(registration("key-a"));
  const { claims } = await port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, neverAborted);
  const attemptClient = createClient({ url, token: claims[0]!.attempt_token });
  await expect(attemptClient.runs.get(run_id)).resolves.toMatchObject({ run_id });
  await client.tokens.revoke(user.token_id);
  await expect(createClient({ url, token: user.token }).me()).rejects.toMatchObject({ code: "DROVER-API-010" });
  await expect(createClient({ url, token: "drv_unknown" }).me()).rejects.toMatchObject({ code: "DROVER-API-034" });
});

test("a client does not send a token that the coordinator cannot prove, whatever name or address it uses for this machine", async () => {
  const coordinator = await start({ host: hasIpv6() ? "::" : "0.0.0.0" });
  const { port } = new URL(coordinator.url);
  for (const host of ["127.0.0.1", "127.1", "localhost", "localhost.", "127.0.0.9", ...(hasIpv6() ? ["[::1]"] : [])]) {
    const createClientFor = (text: string) => createClient({ url: `http://${host}:${port}`, token: text });
    await expect(createClientFor(coordinator.adminToken).health()).resolves.toMatchObject({ status: "ok" });
    await expect(createClientFor("drv_unknown").health()).rejects.toMatchObject({ code: "DROVER-API-034" });
  }
});

const neverAborted = new AbortController().signal;

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
}
