import { createServer } from "node:net";
import { expect, test } from "vitest";
import { reservePort } from "./reserve-port.ts";

/** Reserves a port where `first` is the one that is tried first. */
async function reserveAfterTrying(first: number): Promise<number> {
  const offers = [first];
  return reservePort(() => offers.shift() ?? 20_000 + Math.floor(Math.random() * 12_000));
}

test("gives nobody else a port that is reserved, although nothing listens there", async () => {
  const first = await reservePort();
  expect(await reserveAfterTrying(first)).not.toBe(first);
});

test("gives no port on which something listens", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : 0;
  expect(await reserveAfterTrying(taken)).not.toBe(taken);
  server.close();
});
