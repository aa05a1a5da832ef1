import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { readPage } from "../docs/page.ts";
import { startModelServer } from "../model-server/server.ts";
import { getNpmEnvironment } from "../npm-environment.ts";
import { createDirectory, root } from "./drover.ts";
import { expectedOutput, libraryScenario } from "./library-scenario.ts";

function succeed(file: string, args: string[], cwd: string, env: Record<string, string | undefined> = {}): string {
  const { status, stdout, stderr } = spawnSync(file, args, { cwd, env: { ...process.env, ...env }, encoding: "utf8" });
  expect({ status, ...(status === 0 ? {} : { stdout, stderr }) }).toEqual({ status: 0 });
  return stdout;
}

/** Installs the tarball in an empty directory, as its users do. */
function install(): string {
  const cwd = createDirectory(undefined, "file");
  succeed("npm", ["pack", "--pack-destination", cwd], root, getNpmEnvironment());
  const tarball = readdirSync(cwd).find((name) => name.endsWith(".tgz"));
  writeFileSync(join(cwd, "package.json"), '{"type": "module"}');
  succeed("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", `./${tarball}`], cwd, getNpmEnvironment());
  for (const name of ["@types", "@anthropic-ai"])
    if (!existsSync(join(cwd, "node_modules", name)))
      symlinkSync(
        join(root, name === "@types" ? "" : "test/clients", "node_modules", name),
        join(cwd, "node_modules", name),
      );
  return cwd;
}

/** Building, packing, installing and compiling take a while on a busy machine. */
const longMs = 900_000;

let cwd: string;
beforeAll(() => {
  cwd = install();
}, longMs);

function compile(files: Record<string, string>, ...extraArgs: string[]): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  const options = ["--module", "nodenext", "--target", "es2023", "--lib", "es2023,esnext.disposable"];
  const checks = ["--strict", "--noUncheckedIndexedAccess", "--types", "node"];
  succeed(join(root, "node_modules", ".bin", "tsc"), [...options, ...checks, ...extraArgs, ...Object.keys(files)], cwd);
}

/** The Node.js that runs the tests and the others that `npm test` installs. */
const nodes = [process.execPath, ...["node22", "node24"].map(findNode)];

function findNode(name: string): string {
  return join(root, "test", "nodes", "node_modules", `${name}-${process.arch}`, "bin", "node");
}

describe("the library, installed from its tarball", () => {
  beforeAll(() => compile({ "esm.mts": libraryScenario("esm"), "cjs.cts": libraryScenario("cjs") }), longMs);

  it.each(nodes.flatMap((node) => [[node, "esm.mjs"] as const, [node, "cjs.cjs"] as const]))(
    "works on %s as %s",
    (node, file) => {
      // A state directory of its own, also if two of them have the same version.
      expect(succeed(node, [file, `${file}-${nodes.indexOf(node)}`], cwd)).toBe(expectedOutput);
    },
    longMs,
  );

  it("is used on three major versions of Node.js", () => {
    const majors = new Set(
      nodes.map((node) => succeed(node, ["-p", "process.versions.node.split('.')[0]"], cwd).trim()),
    );
    expect(majors).toEqual(new Set([process.versions.node.split(".")[0]!, "22", "24"]));
  });

  it("has types that the compiler accepts with its own defaults", () => {
    writeFileSync(
      join(cwd, "defaults.mts"),
      'import { start } from "drover"; start("cat", { stdin: "pipe" }).stdin?.end("x");',
    );
    succeed(join(root, "node_modules", ".bin", "tsc"), ["--strict", "--noEmit", "defaults.mts"], cwd);
  });

  it("is one copy for programs that use both module formats", () => {
    const imports = 'import { RequestError } from "drover"; import { createRequire } from "node:module";';
    writeFileSync(
      join(cwd, "both.mjs"),
      `${imports} console.log(RequestError === createRequire(import.meta.url)("drover").RequestError);`,
    );
    expect(succeed(process.execPath, ["both.mjs"], cwd)).toBe("true\n");
  });

  it("has declarations for every example of docs/library.md", () => {
    const examples = readPage("docs/library.md").blocks.filter(({ language }) => language === "ts");
    expect(examples.length).toBeGreaterThan(8);
    const files = examples.map(({ text, line }) => [`example-${line}.mts`, `${text}\nexport {};\n`]);
    // The declarations of the Agent SDK are not ours.
    compile(Object.fromEntries(files) as Record<string, string>, "--skipLibCheck");
  });
});

it("names its own files in stacks, and nothing of the machine that built it", () => {
  const installed = join(cwd, "node_modules", "drover");
  const packed = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  expect(packed.some((file) => file.endsWith(".cache"))).toBe(true);
  expect(packed.filter((file) => readFileSync(file).includes(root))).toEqual([]);
});

it("prints a few short lines for an error that nobody catches", () => {
  writeFileSync(join(cwd, "uncaught.mjs"), 'import { runAgent } from "drover"; await runAgent({});');
  const { status, stderr } = spawnSync(process.execPath, ["uncaught.mjs"], { cwd, encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toContain("RequestError: ");
  expect(stderr).toMatch(/\bdrover\/dist\/library-run-agent\.cjs:\d+/);
  expect(stderr.split("\n").filter((line) => line.length > 250)).toEqual([]);
});

it("has a command line that prints its version, and records a command", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  expect(succeed(join(cwd, "node_modules/.bin/drover"), ["--version"], cwd)).toBe(`${version}\n`);
  const env = { DROVER_STATE_DIR: join(cwd, "cli-state") };
  expect(succeed(join(cwd, "node_modules/.bin/drover"), ["exec", "echo hi"], cwd, env)).toBe("hi\n");
});

it("serves the packed dashboard, so that its users build nothing", async () => {
  const drover = join(cwd, "node_modules/drover/bin/drover.js");
  const env = { PATH: process.env["PATH"] ?? "", HOME: cwd, DROVER_STATE_DIR: join(cwd, "up-state") };
  const up = spawn(process.execPath, [drover, "up", "--port", "0"], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const closed = new Promise((resolve) => up.once("close", resolve));
  let output = "";
  up.stderr.on("data", (chunk: Buffer) => (output += String(chunk)));
  try {
    await expect.poll(() => output).toMatch(/^Dashboard: \S+#code=\S+\n/m);
    const url = /^Dashboard: (\S+)#code=/m.exec(output)![1]!;
    const page = await (await fetch(url)).text();
    const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = ""]) => path);
    expect(files.filter((path) => /^\/ui\/assets\/.+\.(?:js|css)$/.test(path)).length).toBeGreaterThan(1);
    for (const path of files) expect([path, (await fetch(new URL(path, url))).status]).toEqual([path, 200]);
  } finally {
    up.kill("SIGTERM");
    await closed;
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
  "runs the first command of docs/claude-sdk.md, with the real Agent SDK on a scripted model",
  async () => {
    const server = await startModelServer([{ when: /./, turns: [{ text: "It is done." }] }]);
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: cwd,
      DROVER_STATE_DIR: join(cwd, "sdk-state"),
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: "sk-ant-scripted",
      CLAUDE_CODE_MAX_RETRIES: "0",
    };
    try {
      const command = ["node_modules/drover/bin/drover.js", ...firstCommand()];
      const child = spawn(process.execPath, command, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
      let printedText = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => (printedText += String(chunk)));
      expect(await new Promise((resolve) => child.once("close", resolve)), printedText).toBe(0);
    } finally {
      await server.stop();
    }
  },
  longMs,
);
