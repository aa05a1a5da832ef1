import { createServer } from "node:net";
import { expect, test } from "vitest";
import { reservePort } from "./reserve-port.ts";

/** Reserves a port, trying `first` first. */
async function reserveAfterTrying(first: number): Promise<number> {
  const offers = [first];
  return reservePort(() => offers.shift() ?? 20_000 + Math.floor(Math.random() * 12_000));
}

test("does not hand out a reserved port again, even if nothing listens on it", async () => {
  const first = await reservePort();
  expect(await reserveAfterTrying(first)).not.toBe(first);
});

test("does not hand out a port with a listener", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const takenPort = typeof address === "object" && address !== null ? address.port : 0;
  expect(await reserveAfterTrying(takenPort)).not.toBe(takenPort);
  server.close();
});
