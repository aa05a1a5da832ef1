import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../../test/coordinator.ts";
import { createBodyMemory } from "./body-memory.ts";

const kilobyte = 1024;

test("above the limit, reads only a caller's oldest body, one after the other", async () => {
  const acquire = createBodyMemory(300 * kilobyte);
  const [first, second, third] = [acquire("ann"), acquire("ann"), acquire("ann")];
  expect(first.add(100 * kilobyte)).toBeUndefined();
  expect(second.add(100 * kilobyte)).toBeUndefined();
  const thirdWait = third.add(150 * kilobyte);
  const secondWait = second.add(kilobyte);
  expect(first.add(500 * kilobyte)).toBeUndefined();
  expect(acquire("bob").add(200 * kilobyte)).toBeUndefined();
  const resumed: string[] = [];
  void secondWait?.then(() => resumed.push("second"));
  void thirdWait?.then(() => resumed.push("third"));
  await Promise.resolve();
  expect(resumed).toEqual([]);
  first.release();
  first.release();
  await Promise.all([secondWait, thirdWait]);
  expect(resumed.toSorted()).toEqual(["second", "third"]);
  // The first body is no longer counted.
  expect(acquire("ann").add(65 * kilobyte)).toBeDefined();
  second.release();
  third.release();
  expect(acquire("ann").add(65 * kilobyte)).toBeUndefined();
});

test("does not count small bodies or released ones", () => {
  const acquire = createBodyMemory(100 * kilobyte);
  for (let index = 0; index < 100; index += 1) expect(acquire("ann").add(60 * kilobyte)).toBeUndefined();
  const one = acquire("ann");
  expect(one.add(90 * kilobyte)).toBeUndefined();
  one.release();
  expect(acquire("ann").add(90 * kilobyte)).toBeUndefined();
});

let coordinator: TestCoordinator;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await coordinator?.dispose();
});

test("unfinished bodies of runners delay no other caller, and their own requests continue afterwards", async () => {
  const requestLimits = { requests: 100, unreadBytes: 2 ** 20, totalRequests: 100, bodyBytes: 256 * kilobyte };
  coordinator = await startTestCoordinator({ requestLimits });
  const { token } = await coordinator.client.tokens.create({ role: "runner", subject: "fleet" });
  const { port, host } = new URL(coordinator.url);
  const send = (name: string): { socket: Socket; response: Promise<string> } => {
    const body = JSON.stringify({ runner_id: name, padding: "x".repeat(200 * kilobyte) });
    const socket = connect(Number(port), "127.0.0.1").on("error", () => undefined);
    sockets.push(socket);
    const head = `POST /runner/report HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const response = new Promise<string>((resolve) =>
      socket.once("data", (bytes) => resolve(String(bytes).slice(9, 12))),
    );
    // Sends all but the last byte.
    socket.write(head + body.slice(0, -1));
    return { socket, response };
  };
  const requests = Array.from({ length: 6 }, (_, index) => send(`runner ${index}`));
  // Another caller is served meanwhile.
  const large = { agent_name: "nobody", parameters: { text: "x".repeat(300 * kilobyte) } };
  await expect(coordinator.client.submit(large)).rejects.toMatchObject({ code: "DROVER-SUB-001" });
  for (const { socket } of requests) socket.write("}");
  expect(await Promise.all(requests.map(({ response }) => response))).toEqual(requests.map(() => "400"));
  expect(coordinator.defects).toEqual([]);
});
