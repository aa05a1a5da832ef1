import { afterAll, beforeAll, expect, test } from "vitest";
import { type Receiver, startReceiver } from "../../test/fixtures/trigger/receiver.ts";
import { literalTricks, nameTricks, systemNames } from "../../test/fixtures/trigger/url-tricks.ts";
import { createAddressRules } from "./addresses.ts";
import { post } from "./post.ts";

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const rules = createAddressRules([]);
const withPort = (url: string): string => url.replaceAll("PORT", String(receiver.port));
const send = (url: URL, overrides: Partial<Parameters<typeof post>[1]> = {}) =>
  post(url, { headers: {}, body: Buffer.from("{}"), rules, signal: new AbortController().signal, ...overrides });

test("blocks a hundred address tricks, at registration and again when connecting", async () => {
  expect(literalTricks.length + Object.keys(nameTricks).length + systemNames.length).toBeGreaterThanOrEqual(100);
  const before = receiver.connections();
  for (const trick of literalTricks) {
    const url = withPort(trick);
    const fault = rules.checkUrl(url);
    if (fault !== null && !fault.includes("not a public address")) continue;
    // If the host is a name, it resolves to no address here.
    const resolve = (_: string, done: (fault: Error | null, found: []) => void) => done(null, []);
    const result = await send(new URL(url), { resolve });
    expect(result, trick).toHaveProperty("error");
    if (fault !== null) expect(result, trick).toMatchObject({ error: expect.stringContaining("not a public address") });
  }
  expect(receiver.connections()).toBe(before);
});

test.each(Object.keys(nameTricks))("does not connect to the name %s", async (name) => {
  const before = receiver.connections();
  let lookups = 0;
  for (let index = 0; index < 3; index += 1) {
    const resolve = (_: string, done: Parameters<NonNullable<Parameters<typeof post>[1]["resolve"]>>[1]) =>
      done(null, nameTricks[name]!(lookups++));
    expect(await send(new URL(`http://${name}:${receiver.port}/`), { resolve })).toHaveProperty("error");
  }
  expect(lookups).toBe(3);
  expect(receiver.connections()).toBe(before);
});

test.each(systemNames)("does not connect to %s, whatever this machine resolves it to", async (name) => {
  const before = receiver.connections();
  expect(await send(new URL(`http://${name}:${receiver.port}/`))).toHaveProperty("error");
  expect(receiver.connections()).toBe(before);
});

test.each([
  "https://hooks.example/x",
  "http://93.184.215.14/",
  "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:8443/",
])("%s may be registered", (url) => {
  expect(rules.checkUrl(url)).toBeNull();
});

test("connects to what the operator allows by address, range and name", async () => {
  for (const [allow, host] of [
    ["127.0.0.1", "127.0.0.1"],
    ["127.0.0.0/8", "127.0.0.1"],
    ["localhost", "localhost"],
    ["Hooks.Internal", "hooks.internal."],
  ] as const) {
    const rulesWithEntry = createAddressRules([allow]);
    const url = `http://${host}:${receiver.port}/`;
    expect(rulesWithEntry.checkUrl(url)).toBeNull();
    const resolve = (_: string, done: Parameters<NonNullable<Parameters<typeof post>[1]["resolve"]>>[1]) =>
      done(null, [{ address: "127.0.0.1", family: 4 }]);
    expect(await send(new URL(url), { rules: rulesWithEntry, resolve }), allow).toEqual({
      status: 200,
      excerpt: "thanks",
    });
    // Other addresses are still refused.
    expect(rulesWithEntry.checkUrl("http://10.0.0.1/")).not.toBeNull();
  }
});

test.each(["10.0.0.0/33", "1.2.3", "http://x", "a b", "*.internal", "fe80::/129", ""])(
  "refuses the entry %j of webhooks.allow and says what is allowed",
  (entry) => {
    expect(() => createAddressRules([entry])).toThrow(/webhooks\.allow/);
  },
);
