import { get, type IncomingMessage } from "node:http";
import { createInflate, inflateSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type ClaimedRun, claimOverHttp } from "../../test/fixtures/dispatch/claimed.ts";

let coordinator: TestCoordinator;
const runs: ClaimedRun[] = [];
beforeAll(async () => (coordinator = await startTestCoordinator({ leaseMs: 600_000 })));
afterAll(async () => {
  for (const run of runs) run.port.close();
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

test("readers of compressed and of plain streams see each event as it is stored, and the same text in the end", async () => {
  const run = await claim("compressed");
  const plain = await open(run, {});
  const packed = await open(run, { "accept-encoding": "gzip, deflate;q=0.5" });
  const fetched = await openWithFetch(run);
  expect(plain.encoding).toBeUndefined();
  expect(packed.encoding).toBe("deflate");
  for (const percent of [10, 20, 30]) {
    await run.append({ type: "progress", percent, message: `at ${percent} ${"log ".repeat(5000)}` });
    for (const reader of [plain, packed, fetched])
      await expect.poll(() => reader.text()).toContain(`"message":"at ${percent} `);
  }
  await run.finish();
  const texts = await Promise.all([plain.whenEnded, packed.whenEnded, fetched.whenEnded]);
  expect(texts[0]).toContain("event: end");
  expect(texts.map(stripHeartbeats)).toEqual(Array.from({ length: 3 }, () => stripHeartbeats(texts[0])));
  expect(inflateSync(packed.raw()).toString()).toBe(texts[1]);
  expect(packed.raw().length).toBeLessThan(plain.raw().length / 10);
});

test("a reader of a compressed stream that reconnects gets exactly the events after the last one it saw", async () => {
  const run = await claim("replayed");
  for (let percent = 1; percent <= 20; percent += 1) await run.append({ type: "progress", percent });
  await run.finish();
  const all = eventIds(await (await open(run, { "accept-encoding": "deflate" })).whenEnded);
  expect(all.length).toBeGreaterThan(20);
  for (const last of all.slice(0, -1)) {
    const rest = await open(run, { "accept-encoding": "deflate", "last-event-id": last });
    expect(eventIds(await rest.whenEnded)).toEqual(all.filter((id) => Number(id) > Number(last)));
  }
});

test.each([
  "",
  "gzip",
  "br",
  "identity",
  "deflate;q=0",
  "deflate; q=0.000, gzip",
  "x-deflate",
  "deflate-x",
  "deflate;x=1;q=0",
])("sends a plain stream for Accept-Encoding: %s", async (accepted) => {
  const run = await claim(`plain-${accepted.replaceAll(/\W/g, "-")}`);
  await run.finish();
  const stream = await open(run, { "accept-encoding": accepted });
  expect(await stream.whenEnded).toContain('"type":"result"');
  expect([stream.encoding, stream.vary]).toEqual([undefined, "accept-encoding"]);
});

test("does not compress a stream with the runs of several owners", async () => {
  const { token } = await coordinator.client.tokens.create({ role: "user", subject: "ann" });
  const getEncoding = async (path: string, reader: string): Promise<string | null> => {
    const disconnect = new AbortController();
    const { headers } = await fetch(coordinator.url + path, {
      headers: { ...streamHeaders(), authorization: `Bearer ${reader}`, "accept-encoding": "deflate" },
      signal: disconnect.signal,
    });
    disconnect.abort();
    return headers.get("content-encoding");
  };
  expect(await getEncoding("/events", coordinator.adminToken)).toBeNull();
  expect(await getEncoding("/events", token)).toBe("deflate");
  const { run_id } = await claim("of-one-owner");
  expect(await getEncoding(`/runs/${run_id}/events`, coordinator.adminToken)).toBe("deflate");
});

async function claim(name: string): Promise<ClaimedRun> {
  const run = await claimOverHttp(coordinator, name);
  runs.push(run);
  return run;
}

const eventsUrl = ({ run_id }: ClaimedRun): string => `${coordinator.url}/runs/${run_id}/events`;
const streamHeaders = () => ({ authorization: `Bearer ${coordinator.adminToken}`, accept: "text/event-stream" });
const eventIds = (text: string): string[] => Array.from(text.matchAll(/^id: (\d+)$/gm), ([, id = ""]) => id);
const stripHeartbeats = (text = ""): string => text.replaceAll(": still here\n\n", "");

/** Decodes with zlib itself, chunk by chunk. */
async function open(run: ClaimedRun, headers: Record<string, string>) {
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(eventsUrl(run), { headers: { ...streamHeaders(), ...headers } }, resolve).once("error", reject),
  );
  expect(response.statusCode).toBe(200);
  const { "content-encoding": encoding, vary } = response.headers;
  const raw: Buffer[] = [];
  let text = "";
  response.on("data", (chunk: Buffer) => raw.push(chunk));
  const decoded = encoding === "deflate" ? response.pipe(createInflate()) : response;
  const whenEnded = new Promise<string>((resolve, reject) => {
    decoded.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    decoded.once("end", () => resolve(text)).once("error", reject);
  });
  return { encoding, vary, whenEnded, text: () => text, raw: () => Buffer.concat(raw) };
}

async function openWithFetch(run: ClaimedRun) {
  const response = await fetch(eventsUrl(run), { headers: streamHeaders() });
  expect(response.headers.get("content-encoding")).toBe("deflate");
  let text = "";
  const whenEnded = (async () => {
    for await (const chunk of response.body!) text += Buffer.from(chunk).toString("latin1");
    return text;
  })();
  return { whenEnded, text: () => text };
}
