import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Receiver, startReceiver } from "../../test/fixtures/trigger/receiver.ts";
import { createAddressRules } from "./addresses.ts";
import { post } from "./post.ts";

let receiver: Receiver;
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

const rules = createAddressRules(["127.0.0.1"]);
const send = (url = receiver.url, overrides: Partial<Parameters<typeof post>[1]> = {}) =>
  post(new URL(url), {
    headers: { "x-a": "b" },
    body: Buffer.from('{"a":1}'),
    rules,
    signal: neverAborted,
    ...overrides,
  });
const neverAborted = new AbortController().signal;

test("sends the body with its headers, and returns the first bytes of the response", async () => {
  receiver.answer((_, response) => void response.writeHead(418).end("x".repeat(5000)));
  expect(await send()).toEqual({ status: 418, excerpt: "x".repeat(1024) });
  expect(receiver.requests).toMatchObject([{ body: '{"a":1}', headers: { "x-a": "b", "content-length": "7" } }]);
});

test("does not follow a redirect", async () => {
  const redirectTarget = await startReceiver();
  receiver.answer((_, response) => void response.writeHead(307, { location: redirectTarget.url }).end());
  expect(await send()).toMatchObject({ status: 307 });
  expect(redirectTarget.connections()).toBe(0);
  await redirectTarget.close();
});

test("gives up on a receiver that never responds", async () => {
  receiver.answer(() => undefined);
  expect(await send(receiver.url, { timeoutMs: 50 })).toEqual({ error: "No response within 0.05 s." });
});

test("uses the status of an endless response and stops reading it", async () => {
  let isClosed = false;
  let written = 0;
  receiver.answer((_, response) => {
    response.on("close", () => (isClosed = true));
    const megabyte = Buffer.alloc(1024 * 1024, "x");
    const writeMore = (): void => {
      // This sends a gigabyte if the client keeps reading.
      while (written++ < 1024 && response.write(megabyte));
    };
    response.on("drain", writeMore);
    writeMore();
  });
  expect(await send()).toEqual({ status: 200, excerpt: "x".repeat(1024) });
  await expect.poll(() => isClosed).toBe(true);
  expect(written).toBeLessThan(100);
});

test("reports a receiver that is unreachable or does not speak HTTP", async () => {
  const server = createServer((socket) => void socket.resume().end("hello\r\n\r\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // The address of a TCP server is never a string.
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  expect(await send(url)).toMatchObject({ error: expect.stringMatching(/HPE_|Parse/) });
  await new Promise((resolve) => server.close(resolve));
  expect(await send(url)).toEqual({ error: "ECONNREFUSED" });
});

test("stops at once when aborted, even before it started", async () => {
  receiver.answer(() => undefined);
  const stopController = new AbortController();
  const result = send(receiver.url, { signal: stopController.signal });
  await expect.poll(() => receiver.requests.length).toBe(1);
  stopController.abort();
  expect(await result).toHaveProperty("error");
  expect(await send(receiver.url, { signal: AbortSignal.abort() })).toHaveProperty("error");
  expect(receiver.requests).toHaveLength(1);
});

test("checks the certificate of a receiver", async () => {
  // A server without TLS is the simplest one without a valid certificate.
  expect(await send(receiver.url.replace("http:", "https:"))).toHaveProperty("error");
  expect(receiver.requests).toEqual([]);
});
