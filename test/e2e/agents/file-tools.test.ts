import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createFileTools } from "../../../src/tools/file-tools.ts";
import { openWorkspace } from "../../../src/tools/workspace.ts";
import { openFace, openMcpFace } from "../../../torture/file-tool-faces.ts";
import { prepareClient } from "../../clients/clients.ts";
import { startModelServer } from "../../model-server/server.ts";
import { bin, createDirectory, root } from "../drover.ts";

const call = (name: string, input: Record<string, unknown>) => ({
  name: `mcp__files__${name}`,
  input,
  exact: true as const,
});

test.each(["stdio", "http"] as const)("the real Claude lists and calls our file tools over %s", async (transport) => {
  const cwd = createDirectory();
  const workspace = join(cwd, "work");
  const home = join(cwd, "home");
  for (const path of [workspace, home]) mkdirSync(path);
  writeFileSync(join(workspace, "a.txt"), "needle in a file\n");
  const model = await startModelServer([
    {
      when: "use the file tools",
      turns: [
        { tool: call("file_write", { path: "b.txt", content: "from claude" }) },
        { tools: [call("file_read", { path: "b.txt" }), call("file_search", { pattern: "needle" })] },
        { tool: call("file_read", { path: "../../etc/passwd" }) },
        { text: "I used them." },
      ],
    },
  ]);
  const served = transport === "stdio" ? overStdio(workspace) : await overHttp(workspace);
  try {
    const claude = prepareClient("claude", { home, url: model.url });
    const config = join(cwd, "mcp.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { files: served.server } }));
    const args = [
      "-p",
      "--strict-mcp-config",
      `--mcp-config=${config}`,
      "--allowedTools=mcp__files",
      "use the file tools",
    ];
    const run = promisify(execFile)(claude.bin, args, { cwd, env: { PATH: process.env["PATH"] ?? "", ...claude.env } });
    run.child.stdin?.end();
    const { stdout } = await run;
    expect(stdout).toContain("I used them.");
    // As tools, or as names of deferred tools.
    const offered = JSON.stringify(model.requests[0]?.body);
    const listed = await listTools(transport, workspace);
    expect(new Set(offered.match(/mcp__files__\w+/g))).toEqual(
      new Set(listed.map(({ name }) => `mcp__files__${name}`)),
    );
    const results = model.requests.at(-1)?.messages.flatMap(({ tool_results }) => tool_results);
    expect(results).toEqual([
      expect.stringContaining('"created":true'),
      expect.stringContaining("from claude"),
      expect.stringContaining("needle in a file"),
      expect.stringContaining("outside_workspace"),
    ]);
    expect(readFileSync(join(workspace, "b.txt"), "utf8")).toBe("from claude");
  } finally {
    await served.stop();
    await model.stop();
  }
});

async function listTools(transport: "stdio" | "http", workspace: string) {
  const face = await openMcpFace(transport, workspace, root);
  try {
    return await face.listTools();
  } finally {
    await face.close();
  }
}

function overStdio(workspace: string) {
  const server = { command: process.execPath, args: [bin, "file-tools", workspace, "--mcp"] };
  return { server, stop: async () => undefined };
}

async function overHttp(workspace: string) {
  const child = spawn(process.execPath, [bin, "file-tools", workspace, "--http", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { url, token } = JSON.parse(line) as { url: string; token: string }; // Printed by the command.
  const server = { type: "http", url, headers: { Authorization: `Bearer ${token}` } };
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
  const headers = { authorization: `Bearer ${token}`, origin: "http://elsewhere.example" };
  expect((await fetch(url, { method: "POST", body: "{}", headers })).status).toBe(403);
  return { server, stop };
}

test.each(["stdio", "http"] as const)("the official MCP client lists the six tools over %s", async (transport) => {
  const workspace = createDirectory();
  const tools = createFileTools(await openWorkspace(workspace));
  const listed = await listTools(transport, workspace);
  expect(listed.map(({ name }) => name)).toEqual(
    ["read", "write", "patch", "delete", "list", "search"].map((name) => `file_${name}`),
  );
  expect(listed.map(({ description, inputSchema }) => ({ description, inputSchema }))).toEqual(
    tools.map(({ description, input_schema }) => ({ description, inputSchema: input_schema })),
  );
});

test("the official MCP client gets the same answers over each transport", async () => {
  const workspace = createDirectory();
  writeFileSync(join(workspace, "a.txt"), "one\n");
  const calls = [
    { tool: "file.read", path: "a.txt" },
    { tool: "file.list" },
    { tool: "file.read", path: "../x" },
    { tool: "file.unknown" },
    { tool: "file.read" },
  ];
  const answers = await Promise.all(
    (["in process", "stdio", "http"] as const).map(async (name) => {
      const face = await openFace(name, workspace, root);
      try {
        const results: string[] = [];
        for (const request of calls)
          results.push(JSON.parse(await face.call(request)).error?.code ?? (await face.call(request)));
        return results;
      } finally {
        await face.close();
      }
    }),
  );
  expect(answers[0]?.slice(2)).toEqual(["outside_workspace", "unknown_tool", "invalid_input"]);
  expect(answers[1]).toEqual(answers[0]);
  expect(answers[2]).toEqual(answers[0]);
});
