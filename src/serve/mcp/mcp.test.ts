import { Client as McpClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../../test/coordinator.ts";
let coordinator: TestCoordinator;
beforeAll(async () => { coordinator = await startTestCoordinator(); });
afterAll(async () => { expect(coordinator.defects).toEqual([]); await coordinator.dispose(); });
test.each(["auto", "legacy"] as const)("x %s", async (mode) => {
  const client = new McpClient({ name: "t", version: "1" }, { versionNegotiation: { mode } } as never);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${coordinator.url}/mcp`), { requestInit: { headers: { authorization: `Bearer ${coordinator.adminToken}` } } }));
  console.log(client.getNegotiatedProtocolVersion?.());
  console.log(JSON.stringify(await client.listTools(), null, 1).slice(0, 600));
  console.log(JSON.stringify(await client.callTool({ name: "list_agents", arguments: {} })));
  console.log(JSON.stringify(await client.callTool({ name: "nope", arguments: {} })));
  await client.close();
});
