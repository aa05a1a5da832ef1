import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { startModelServer } from "../model-server/server.ts";
import { folder, root } from "./drover.ts";

function succeed(file: string, args: string[], cwd: string, more: Record<string, string> = {}): string {
  // what a developer's own npm is configured to do is not the package's business
  const env = { ...process.env, npm_config_userconfig: "/dev/null", ...more };
  const { status, stdout, stderr } = spawnSync(file, args, { cwd, env, encoding: "utf8" });
  expect({ status, ...(status === 0 ? {} : { stdout, stderr }) }).toEqual({ status: 0 });
  return stdout;
}

/** The tarball in an empty folder, with the packages it depends on beside it: no registry is asked. */
function install(): string {
  const cwd = folder(undefined, "file");
  succeed("npm", ["pack", "--pack-destination", cwd], root);
  const packages = join(cwd, "node_modules");
  mkdirSync(join(packages, "drover"), { recursive: true });
  const tarball = readdirSync(cwd).find((name) => name.endsWith(".tgz"));
  succeed("tar", ["-xzf", join(cwd, tarball!), "-C", join(packages, "drover"), "--strip-components=1"], cwd);
  for (const name of ["zod", "yaml", "@types", "@photostructure", "esbuild"])
    symlinkSync(join(root, "node_modules", name), join(packages, name));
  symlinkSync(join(root, "test/clients/node_modules/@anthropic-ai"), join(packages, "@anthropic-ai"));
  writeFileSync(join(cwd, "package.json"), '{"type": "module"}');
  return cwd;
}

/** It builds, packs, compiles and starts Claude Code six times: on a busy machine that takes a while. */
const longMs = 900_000;

let cwd: string;
beforeAll(() => {
  cwd = install();
}, longMs);

function compile(...files: string[]): void {
  const options = ["--module", "nodenext", "--target", "es2023", "--strict", "--skipLibCheck", "--types", "node"];
  succeed(join(root, "node_modules", ".bin", "tsc"), [...options, ...files], cwd);
}

const consumer = `
import { execute, runAgent, type CommandResult, type RunnerResult } from "drover";
const result: CommandResult = await execute("echo hi");
// @ts-expect-error a result is not a number: the declarations were found, and are not any
const wrong: number = result;
const refused: unknown = await execute(7 as unknown as string).catch((error: unknown) => error);
console.log(Buffer.from(result.stdout.head).toString(), String(refused), typeof wrong);
const agent = { name: "helper", executor: "model", provider: "scripted" };
const run: RunnerResult = await runAgent({ agent, prompt: "Do it", stateDir: "state" });
// @ts-expect-error there is no such mode: an agent is checked by its type too
const mistaken: Parameters<typeof runAgent>[0]["agent"] = { name: "a", permissions: { mode: "yolo" } };
console.log(run.success, typeof mistaken);
`;

it("packs into a package whose types resolve and whose library and command line run", () => {
  writeFileSync(join(cwd, "use.ts"), consumer);
  compile("use.ts");
  expect(succeed(process.execPath, ["use.js"], cwd)).toBe(
    "hi\n RequestError: The command must be an object. object\ntrue object\n",
  );
  expect(succeed(process.execPath, ["node_modules/drover/bin/drover.js", "--version"], cwd)).toMatch(
    /^\d+\.\d+\.\d+\n$/,
  );
});

it("serves the dashboard it was packed with: nobody who installs it builds anything", async () => {
  const drover = join(cwd, "node_modules/drover/bin/drover.js");
  const env = { PATH: process.env["PATH"] ?? "", HOME: cwd, DROVER_STATE_DIR: join(cwd, "up-state") };
  const up = spawn(process.execPath, [drover, "up", "--port", "0"], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => up.once("close", resolve));
  let said = "";
  up.stderr.on("data", (chunk: Buffer) => (said += String(chunk)));
  try {
    await expect.poll(() => said).toMatch(/^Dashboard: \S+#code=\S+\n/m);
    const url = /^Dashboard: (\S+)#code=/m.exec(said)![1]!;
    const page = await (await fetch(url)).text();
    const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = ""]) => path);
    expect(files.filter((path) => /^\/ui\/assets\/.+\.(?:js|css)$/.test(path)).length).toBeGreaterThan(1);
    for (const path of files) expect([path, (await fetch(new URL(path, url))).status]).toEqual([path, 200]);
  } finally {
    up.kill("SIGTERM");
    await ended;
  }
});

/** How docs/claude-sdk.md begins. */
function firstCommand(): string[] {
  const page = readFileSync(join(root, "docs", "claude-sdk.md"), "utf8");
  const [, prompt] = /^drover run claude-sdk --prompt "(.*)"$/m.exec(page) ?? [];
  expect(prompt).toBeDefined();
  return ["run", "claude-sdk", "--prompt", prompt!];
}

it(
  "runs every example of docs/library.md and the first command of docs/claude-sdk.md, with the real Agent SDK on a scripted model",
  async () => {
    const page = readFileSync(join(root, "docs", "library.md"), "utf8");
    const state = join(cwd, "triage");
    const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
    expect(examples).toHaveLength(5);
    const files = examples.map((code, at) => {
      const needs = code.includes('from "drover"') ? "" : 'import { runAgent } from "drover";\n';
      writeFileSync(join(cwd, `example-${at}.ts`), `${needs}${code.replaceAll("/var/lib/triage", state)}`);
      return `example-${at}`;
    });
    compile(...files.map((file) => `${file}.ts`));
    const server = await startModelServer([{ when: /./, turns: [{ text: "It is done." }] }]);
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: cwd,
      DROVER_STATE_DIR: state,
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: "sk-ant-scripted",
      CLAUDE_CODE_MAX_RETRIES: "0",
      GITHUB_TOKEN: "none",
    };
    try {
      // the last one needs a coordinator at the usual port
      const commands = files.slice(0, -1).map((file) => [`${file}.js`]);
      for (const command of [...commands, ["node_modules/drover/bin/drover.js", ...firstCommand()]]) {
        const child = spawn(process.execPath, command, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
        let said = "";
        for (const stream of [child.stdout, child.stderr])
          stream.on("data", (chunk: Buffer) => (said += String(chunk)));
        const code = await new Promise((resolve) => child.once("close", resolve));
        expect([command, code], said).toEqual([command, 0]);
      }
    } finally {
      await server.stop();
    }
    const listed = succeed(process.execPath, ["node_modules/drover/bin/drover.js", "runs", "list", "--json"], cwd, {
      DROVER_STATE_DIR: state,
    });
    const runs = listed
      .trim()
      .split("\n")
      .map((line): { agent_name: string; status: string } => JSON.parse(line));
    expect(runs.map(({ agent_name, status }) => `${agent_name} ${status}`).sort()).toEqual([
      "calculator completed",
      "claude-sdk completed",
      "coder completed",
      "triage completed",
      "writer completed",
      "writer completed",
      "writer completed",
    ]);
  },
  longMs,
);
