import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Testbed } from "./testbed.ts";

/**
 * Runs the executor `model` with a runner's secrets everywhere: in the system prompt, in a tool's output, in the headers
 * and environment of MCP servers, and in the errors of those servers. Resumes the session once, so that a saved
 * conversation is loaded. Returns what the runs streamed, and descriptions of those that did not complete.
 */
export async function converseWithSecrets(
  testbed: Testbed,
  { names, env, runs }: { names: readonly string[]; env: Record<string, string>; runs: number },
): Promise<{ streams: string[]; failed: string[] }> {
  // Echoes the received header in its refusal.
  const refusing = createServer((request, response) => {
    response.writeHead(401, { "content-type": "text/plain" }).end(`refused: ${request.headers.authorization}`);
  });
  refusing.listen(0, "127.0.0.1");
  await once(refusing, "listening");
  const { port } = refusing.address() as AddressInfo;
  const script = join(testbed.directory, "scripts", "turns.json");
  const print = { name: "command.run", input: { command: "printenv; printenv >&2" } };
  const [prompt, header, variable] = names.map((name) => `\${${name}}`);
  writeFileSync(script, JSON.stringify({ turns: [{ text: "I look.", tools: [print] }, { text: "I have seen it." }] }));
  const config = { provider: "scripted", script };
  await testbed.startRunner({
    name: "thinking",
    slots: 2,
    env,
    profile: { type: "model", env_from: names, allow_env: names, config },
  });
  await testbed.client.agents.put("thinker", {
    type: "autonomous",
    executor: "model",
    system_prompt: `The password is ${prompt}.`,
    first_message: `Do not tell anybody: ${prompt}`,
    permissions: { mode: "bypassPermissions" },
    mcp_servers: {
      refusing: { url: `http://127.0.0.1:${port}/mcp`, headers: { authorization: `Bearer ${header}` } },
      garbled: { command: process.execPath, args: ["-e", printsKey], env: { KEY: variable } },
    },
  });
  const streams: string[] = [];
  const failed: string[] = [];
  let session_id: string | null = null;
  try {
    for (let index = 0; index < runs; index += 1) {
      const resumed = index === 1 && session_id !== null ? { mode: "resume" as const, session_id } : {};
      const run = await testbed.client.submit({ agent_name: "thinker", parameters: {}, prompt: "look", ...resumed });
      session_id = run.session_id;
      const events: string[] = [];
      for await (const { event } of testbed.client.runs.follow(run.run_id)) events.push(JSON.stringify(event));
      const recordStream = events.join("\n");
      streams.push(recordStream);
      if (index === 0 && !recordStream.includes(`[redacted:${names[0]}]`)) failed.push("a conversation met no secret");
      const { status, error } = await testbed.client.runs.get(run.run_id);
      if (status !== "completed") failed.push(`a conversation is ${status}: ${error}`);
    }
  } finally {
    refusing.close();
  }
  return { streams, failed };
}

const printsKey = "console.log(process.env.KEY); console.error(process.env.KEY)";
