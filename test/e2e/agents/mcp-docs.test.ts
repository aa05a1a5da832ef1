import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../../../src/model/state-layout.ts";
import { prepareClient } from "../../clients/clients.ts";
import { startModelServer } from "../../model-server/server.ts";
import { bin, drover, folder, root } from "../drover.ts";
import { startDrover } from "../start-drover.ts";

const page = readFileSync(join(root, "docs", "mcp.md"), "utf8");
/** The files shown on the page: a name in backquotes, then the content. */
const files = [...page.matchAll(/^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$/gms)];
/** The shell commands that call Claude. */
const commands = [...page.matchAll(/^```sh\n(claude .*?)^```$/gms)].map(([, text = ""]) => text);

const count = (server: string) => ({
  turns: [
    { tool: { name: `mcp__${server}__run_line-count`, input: { file: "notes.txt" }, exact: true as const } },
    { text: "There are three." },
  ],
});

test("the commands of the page on MCP let the real Claude use an agent as a tool, over stdio and over HTTP", async () => {
  expect(files.map(([, path]) => path)).toEqual(["agents/line-count.yaml", "scripts/line-count.sh"]);
  expect(commands).toHaveLength(2);
  const cwd = folder();
  const home = join(cwd, "home");
  const programs = join(cwd, "bin");
  for (const path of [home, programs]) mkdirSync(path);
  for (const [, path = "", text = ""] of files) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  writeFileSync(join(cwd, "notes.txt"), "one\ntwo\nthree\n");
  const model = await startModelServer([
    { when: "How many lines are in notes.txt?", ...count("drover") },
    { when: "Count the lines of notes.txt over HTTP", ...count("drover-http") },
  ]);
  try {
    const claude = prepareClient("claude", { home, url: model.url });
    const wire = join(cwd, "wire.log");
    program(join(programs, "claude"), `exec ${claude.bin} "$@"`);
    // Record the server's output, to see the notifications that Claude asked for.
    program(join(programs, "drover"), `${process.execPath} ${bin} "$@" | tee -a ${wire}`);
    const state = { DROVER_STATE_DIR: join(cwd, "state") };
    const up = await startDrover(["up", "--port", "0"], { cwd, env: state, ready: /Drover is up at/ });
    const url = /Drover is up at (http:\/\/[\w.:]+)/.exec(up.said)?.[1] ?? "";
    const key = readFileSync(tokenFile(recordDirectory(join(cwd, "state")), "token"), "utf8").trim();
    const base = { DROVER_TRUST: cwd, PATH: `${programs}:${process.env["PATH"] ?? ""}`, ...claude.env };
    const environments = [
      { ...base, ...state },
      { ...base, DROVER_API_URL: url, DROVER_API_KEY: key },
    ];
    for (const [index, text] of commands.entries()) {
      const ran = promisify(execFile)("sh", ["-e", "-c", text], { cwd, env: environments[index] });
      ran.child.stdin?.end();
      const { stdout, stderr } = await ran.catch((error: { stdout: string; stderr: string }) => error);
      expect(`${stdout}${stderr}`).toContain("There are three.");
      const results = model.requests.at(-1)?.messages.flatMap(({ tool_results }) => tool_results);
      expect(results).toEqual([expect.stringContaining('"lines"')]);
      expect(results?.[0]).toMatch(/"lines":\s*3/);
    }
    expect(readFileSync(wire, "utf8")).toMatch(/"notifications\/progress".*"run \S+ started"/);
    const { stdout } = await drover(["runs", "list", "--agent", "line-count", "--json"], { cwd, env: state });
    const made = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    const run = { status: "completed", trigger_type: "agent", created_by: "admin" };
    expect(made).toMatchObject([run, run]);
  } finally {
    await model.stop();
  }
});

function program(path: string, line: string): void {
  writeFileSync(path, `#!/bin/sh\n${line}\n`);
  chmodSync(path, 0o755);
}
