import { spawn, spawnSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { buildArguments, findCommand } from "../execute/executors/procedural/arguments.ts";
import type { Agent } from "../model/agent.ts";
import { checkOutput, checkParameters } from "../submit/parameters.ts";
import { loadAgents } from "./load-agents.ts";
import { openSchemaChecker } from "./json-schema/checker.ts";
import { findPackageDirectory } from "./package-directory.ts";
import { findProfiles } from "./profiles.ts";

const schemas = openSchemaChecker({ checkMs: 10_000 });
afterAll(() => schemas.stop());
let work: string;
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), "drover-bundled-"));
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

const searchPath = process.env["PATH"];
const clients = ["claude", "claude-sdk", "codex", "gemini", "code-review"];
const host = { builtIn: ["procedural", ...clients], hasCommand: () => false };
const requireDirectory = (name: "bundled" | "examples"): string =>
  findPackageDirectory(name) ?? expect.fail(`${name} is missing`);

test("loads the profiles that ship with the package, and their agents", async () => {
  const { profiles, faults } = findProfiles(
    [join(requireDirectory("bundled"), "profiles"), join(requireDirectory("examples"), "profiles")],
    host,
  );
  expect(faults).toEqual([]);
  const agents: Record<string, string[]> = {};
  for (const { name, agentsDirectory, directory } of profiles) {
    const loaded = await loadAgents(agentsDirectory!, schemas);
    expect(loaded.faults).toEqual([]);
    agents[name] = loaded.agents.map(({ agent }) => agent.name);
    for (const { agent } of loaded.agents) {
      if (agent.command !== null) expect(findCommand(agent.command, directory, searchPath)).toHaveProperty("found");
      else expect(agent).toMatchObject({ type: "autonomous", executor: name });
    }
  }
  expect(agents).toMatchObject({
    echo: ["echo"],
    procedural: [],
    examples: ["disk-usage", "git-summary", "http-check"],
    ...Object.fromEntries(clients.map((name) => [name, [name]])),
  });
});

async function loadAgent(directory: "bundled" | "examples", subdirectory: string, name: string): Promise<Agent> {
  const { agents } = await loadAgents(join(requireDirectory(directory), subdirectory), schemas);
  return agents.find(({ agent }) => agent.name === name)!.agent;
}

/** Runs an agent as the procedural executor would, and checks the output against its schema. */
async function run(directory: "bundled" | "examples", agent: Agent, parameters: Record<string, unknown>) {
  expect(await checkParameters(agent, parameters, schemas)).toEqual([]);
  const built = buildArguments(agent.command!, parameters, agent.list_style);
  if (!built.ok) return expect.fail(JSON.stringify(built.faults));
  const [command, ...args] = built.argv;
  const lookup = findCommand(command, requireDirectory(directory), searchPath);
  if (!("found" in lookup)) return expect.fail(`${command} is missing`);
  // spawnSync would block this process, whose server the script may send requests to.
  const child = spawn(lookup.found, args, { cwd: work, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => (output[name] += text));
  const status = await new Promise<number | null>((resolve) => child.on("close", resolve));
  const data: unknown = output.stdout === "" ? null : JSON.parse(output.stdout);
  if (data !== null) expect(await checkOutput(agent.output_schema!, data, schemas)).toEqual([]);
  return { status, stderr: output.stderr, data };
}

const messages = [
  "Hello World",
  `"quotes" and 'more'`,
  "two\nlines\n",
  "--x",
  "--message",
  "-",
  "$(id) `id` $HOME",
  "🐑 日本",
  "\\ \\n \\u0041",
  " ",
  "a=b",
  "\x1b[31m",
  "x".repeat(130_000),
];
test("echo returns any message unchanged", async () => {
  const agent = await loadAgent("bundled", "agents/echo", "echo");
  for (const message of messages)
    expect(await run("bundled", agent, { message })).toEqual({ status: 0, stderr: "", data: { message } });
});

const runEcho = (...args: string[]) =>
  spawnSync(join(requireDirectory("bundled"), "scripts/echo/echo"), args, { encoding: "utf8" });

test("echo accepts --message VALUE and --message=VALUE, and rejects an empty message or an unknown option", () => {
  expect(runEcho("--message", "a").stdout).toBe('{"message":"a"}\n');
  expect(runEcho("--message=a=b").stdout).toBe('{"message":"a=b"}\n');
  expect(runEcho("--message", "Hello", "--unknown", "param")).toMatchObject({
    status: 1,
    stdout: "",
    stderr: "Error: Unknown parameter: --unknown\n",
  });
  expect(runEcho("--unknown=param")).toMatchObject({ status: 1, stderr: "Error: Unknown parameter: --unknown\n" });
  for (const args of [[], ["--message"], ["--message", ""], ["--message="]]) {
    expect(runEcho(...args)).toMatchObject({
      status: 1,
      stdout: "",
      stderr: "Error: --message is required and must not be empty\n",
    });
  }
});

test("passes an unknown parameter to the echo script, which refuses it", async () => {
  const agent = await loadAgent("bundled", "agents/echo", "echo");
  expect(await run("bundled", agent, { message: "Hello", unknown: "param" })).toMatchObject({
    status: 1,
    stderr: "Error: Unknown parameter: --unknown\n",
    data: null,
  });
});

test("disk-usage counts files once and does not follow links", async () => {
  mkdirSync(join(work, "-a", "b"), { recursive: true });
  writeFileSync(join(work, "-a", "big"), "x".repeat(1000));
  writeFileSync(join(work, "-a", "b", "small"), "x");
  linkSync(join(work, "-a", "big"), join(work, "-a", "b", "same"));
  symlinkSync("/", join(work, "-a", "root"));
  const agent = await loadAgent("examples", "agents", "disk-usage");
  const { status, data } = await run("examples", agent, { path: "-a", top: 1 });
  expect(status).toBe(0);
  expect(data).toMatchObject({ total_bytes: 1001, files: 2, folders: 1, unreadable: 0, largest: [{ bytes: 1000 }] });
  expect(await run("examples", agent, { path: "none" })).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("is not a directory") as string,
  });
  expect(await checkParameters(agent, { top: 1000, pth: "x" }, schemas)).toHaveLength(2);
});

/** Adds a fake signature to the newest commit, which git would run gpg.program to verify. */
function signHead(): void {
  const commit = runGit(["cat-file", "commit", "HEAD"]);
  const signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n";
  const signed = runGit(["hash-object", "-t", "commit", "-w", "--stdin"], commit.replace("\n\n", `\n${signature}\n`));
  runGit(["update-ref", "HEAD", signed.trim()]);
}

function runGit(args: string[], input = ""): string {
  return spawnSync("git", ["-C", work, ...args], { encoding: "utf8", input }).stdout;
}

test("git-summary counts commits, authors and lines, and executes nothing from the repository", async () => {
  const git = (...args: string[]) =>
    expect(
      spawnSync("git", ["-C", work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", ...args]).status,
    ).toBe(0);
  const agent = await loadAgent("examples", "agents", "git-summary");
  expect(await run("examples", agent, { since: "2020-01-01" })).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("not in a git repository") as string,
  });
  git("init", "-q", "-b", "trunk");
  expect((await run("examples", agent, { since: "2020-01-01" })).data).toMatchObject({ commits: 0, latest: null });
  writeFileSync(join(work, "ä\tb"), "1\n2\n");
  git("add", ".");
  git("commit", "-q", "-m", 'first "one"');
  writeFileSync(join(work, "ä\tb"), "1\n3\n4\n");
  git("commit", "-qam", "second");
  signHead();
  git("config", "log.showSignature", "true");
  git("config", "gpg.program", join(work, "evil"));
  writeFileSync(join(work, "evil"), `#!/bin/sh\ntouch ${work}/ran\n`, { mode: 0o755 });
  const { data } = await run("examples", agent, { since: "2020-01-01" });
  expect(data).toMatchObject({
    branch: "trunk",
    commits: 2,
    insertions: 4,
    deletions: 1,
    files_changed: 1,
    authors: [{ name: "Ann", commits: 2 }],
    latest: { subject: "second" },
  });
  expect((await run("examples", agent, { since: "2098-01-01" })).data).toMatchObject({ commits: 0 });
  expect(spawnSync("ls", [join(work, "ran")]).status).not.toBe(0);
  expect(await checkParameters(agent, { since: "yesterday" }, schemas)).toMatchObject([{ path: "/since" }]);
});

test("http-check fails if the response is not the expected one", async () => {
  const server = createServer((request, response) => {
    if (request.url === "/slow") return;
    response.writeHead(request.url === "/gone" ? 410 : 200).end("x");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a server that listens on TCP has an AddressInfo
    const agent = await loadAgent("examples", "agents", "http-check");
    expect(await run("examples", agent, { url: `${base}/` })).toMatchObject({
      status: 0,
      data: { ok: true, status: 200, error: null },
    });
    expect(await run("examples", agent, { url: `${base}/gone` })).toMatchObject({
      status: 1,
      stderr: "Error: the server responded with 410, expected a status below 400\n",
      data: { ok: false, status: 410 },
    });
    expect(await run("examples", agent, { url: `${base}/gone`, status: 410 })).toMatchObject({
      status: 0,
      data: { ok: true },
    });
    expect(await run("examples", agent, { url: `${base}/slow`, within: 0.2 })).toMatchObject({
      status: 1,
      data: { ok: false, status: null, error: "no response within 0.2 s" },
    });
    expect(await checkParameters(agent, { url: "file:///etc/passwd" }, schemas)).toMatchObject([{ path: "/url" }]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  const closed = await run("examples", await loadAgent("examples", "agents", "http-check"), {
    url: `http://127.0.0.1:9/`,
    within: 5,
  });
  expect(closed).toMatchObject({ status: 1, data: { ok: false } });
});
