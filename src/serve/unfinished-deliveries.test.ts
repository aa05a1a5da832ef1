import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";

let coordinator: TestCoordinator;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await coordinator.dispose();
});

test("unfinished deliveries do not block other deliveries", async () => {
  coordinator = await startTestCoordinator();
  const { hostname, port, host } = new URL(coordinator.url);
  const head = `POST /hooks/none HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n`;
  for (let index = 0; index < 70; index += 1) {
    const socket = connect(Number(port), hostname);
    sockets.push(socket.on("error", () => undefined));
    socket.write(head);
    // The coordinator is now waiting for its body.
    await new Promise((resolve) => socket.once("data", resolve));
    socket.write("{");
  }
  const response = await fetch(`${coordinator.url}/hooks/none`, { method: "POST", body: "{}" });
  // Received, and refused because of its signature.
  expect(response.status).toBe(401);
});
