import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, matchesGlob, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { coordinatorCommand } from "../../src/cli/coordinator.ts";
import { parseOptions } from "../../src/cli/options.ts";
import { runnerCommand } from "../../src/cli/runner.ts";
import { getNpmEnvironment } from "../npm-environment.ts";
import { createDirectory, root } from "./drover.ts";

const deploy = join(root, "deploy");
const read = (file: string): string => readFileSync(join(deploy, file), "utf8");
const commands = { coordinator: coordinatorCommand, runner: runnerCommand };

/** Throws unless the command line is one that `drover` accepts. */
function checkCommandLine([command = "", ...args]: readonly string[]): void {
  expect(Object.keys(commands)).toContain(command);
  const { positionals } = parseOptions(args, commands[command as keyof typeof commands]);
  expect(positionals).toEqual([]);
}

/** Returns the names of all variables that the source mentions. */
function listSourceVariables(): Set<string> {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
  const texts = files
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(root, "src", name), "utf8"));
  return new Set(texts.flatMap((text) => text.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? []));
}

const foreignVariables = ["HOME", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE"];

function checkVariables(names: readonly string[]): void {
  const knownVariables = new Set([...listSourceVariables(), ...foreignVariables]);
  expect(names.filter((name) => !knownVariables.has(name))).toEqual([]);
}

describe("deploy/compose.yaml", () => {
  interface Service {
    command?: string[];
    environment?: Record<string, string>;
    secrets?: string[];
    volumes?: string[];
    depends_on?: Record<string, unknown>;
    healthcheck?: object;
    build?: { context: string; dockerfile: string };
  }
  const compose = parse(read("compose.yaml"), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
    secrets: Record<string, { file: string }>;
  };
  const services = Object.entries(compose.services);

  it("has a database, a coordinator and two runners", () => {
    expect(services.map(([name]) => name)).toEqual(["db", "coordinator", "runner-1", "runner-2"]);
  });

  it("starts Drover with options that exist", () => {
    const lines = services.flatMap(([, { command }]) => (command ? [command] : []));
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      const [, inShell] = /exec drover (.*)$/.exec(line[0]!) ?? [];
      checkCommandLine(inShell ? inShell.split(" ") : line);
    }
    expect(() => checkCommandLine(["runner", "--nmae", "x"])).toThrow("--nmae");
  });

  it("gives each runner its own name and its own state", () => {
    const [first, second] = [compose.services["runner-1"]!, compose.services["runner-2"]!];
    expect(first.command).not.toEqual(second.command);
    expect(first.volumes).not.toEqual(second.volumes);
    expect(second.environment).toEqual(first.environment);
  });

  it("sets only variables that Drover or PostgreSQL reads, and no secret among them", () => {
    const variables = services.flatMap(([, { environment = {} }]) => Object.entries(environment));
    checkVariables(variables.map(([name]) => name));
    for (const [name, value] of variables)
      if (/PASSWORD|SECRET|KEY|TOKEN/.test(name))
        expect([name, value]).toEqual([name, expect.stringMatching(/^\/run\/secrets\//)]);
  });

  it("refers only to services, volumes, secrets and files that exist", () => {
    for (const [name, { secrets = [], volumes = [], depends_on = {}, healthcheck }] of services) {
      expect(Object.keys(compose.secrets)).toEqual(expect.arrayContaining(secrets));
      for (const volume of volumes) expect(Object.keys(compose.volumes)).toContain(volume.split(":")[0]);
      for (const other of Object.keys(depends_on)) expect(compose.services[other]?.healthcheck).toHaveProperty("test");
      expect([name, healthcheck]).toEqual([name, expect.any(Object)]);
    }
    const { context, dockerfile } = compose.services["coordinator"]!.build!;
    expect(existsSync(join(deploy, context, dockerfile))).toBe(true);
    for (const file of JSON.stringify(compose).match(/\/run\/secrets\/\w+/g) ?? [])
      expect(Object.keys(compose.secrets)).toContain(basename(file));
  });

  it("uses a database URL that the shell builds from the password file", () => {
    const script = compose.services["coordinator"]!.command![0]!.replaceAll("$$", "$");
    const directory = createDirectory(undefined, "file");
    writeFileSync(join(directory, "password"), "c0ffee\n");
    const printing = script
      .replace("/run/secrets/postgres_password", join(directory, "password"))
      .replace(/exec drover .*/, 'echo "$DATABASE_URL"');
    expect(spawnSync("/bin/sh", ["-c", printing], { encoding: "utf8" }).stdout).toBe(
      "postgres://drover:c0ffee@db:5432/drover\n",
    );
  });
});

describe("deploy/systemd", () => {
  const units = readdirSync(join(deploy, "systemd"));

  it("starts Drover with options and variables that exist", () => {
    expect(units).toEqual(["drover-coordinator.service", "drover-runner@.service"]);
    for (const unit of units) {
      const text = read(join("systemd", unit));
      const [, line = ""] = /^ExecStart=\/usr\/bin\/drover (.*)$/m.exec(text) ?? [];
      checkCommandLine(line.replaceAll("%i", "procedural").split(" "));
      checkVariables([...text.matchAll(/^Environment=(\w+)=/gm)].map(([, name]) => name!));
    }
  });

  it("passes the checks of systemd, where it is installed", () => {
    const directory = createDirectory(undefined, "file");
    const files = units.map((unit) => {
      const file = join(directory, unit.replace("@.", "@procedural."));
      writeFileSync(file, read(join("systemd", unit)).replaceAll("/usr/bin/drover", join(root, "bin", "drover.js")));
      return file;
    });
    const analyze = (...args: string[]) => spawnSync("systemd-analyze", args, { encoding: "utf8" });
    if (analyze("--version").error) return;
    const { status, stderr } = analyze("verify", "--man=no", ...files);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    // 100 is unprotected. A runner must be able to create namespaces, which costs points.
    for (const [file, threshold] of [
      [files[0]!, 20],
      [files[1]!, 60],
    ] as const) {
      const security = analyze("security", "--offline=true", `--threshold=${threshold}`, "--no-pager", file);
      expect([security.status, security.stdout]).toEqual([0, expect.stringContaining("Overall exposure level")]);
    }
  });
});

describe("deploy/Dockerfile", () => {
  const lines = read("Dockerfile")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ instruction: line.split(" ")[0]!, text: line.slice(line.indexOf(" ") + 1) }));
  const of = (name: string): string[] =>
    lines.filter(({ instruction }) => instruction === name).map(({ text }) => text);

  it("runs as an ordinary user, checks its health, and starts a coordinator with options that exist", () => {
    expect(of("FROM")).toHaveLength(2);
    expect(of("USER")).toEqual(["node"]);
    expect(of("ENTRYPOINT")).toEqual(['["drover"]']);
    checkCommandLine(JSON.parse(of("CMD")[0]!) as string[]);
    checkVariables(of("ENV").flatMap((text) => [...text.matchAll(/(\w+)=/g)].map(([, name]) => name!)));
    const [, check = "[]"] = /CMD (\[.*\])$/.exec(of("HEALTHCHECK")[0]!) ?? [];
    const [, script = ""] = /drover\/(deploy\/\S+)"\]$/.exec(check) ?? [];
    expect(existsSync(join(root, script))).toBe(true);
  });

  it("builds from a clone in which nothing is installed, and serves", async () => {
    const directory = createDirectory(undefined, "file");
    const [source, packed, installed] = ["src", "packed", "opt"].map((name) => join(directory, name));
    mkdirSync(packed!);
    copyContext(source!);
    const steps = of("RUN").filter((text) => text.startsWith("npm "));
    expect(steps).toHaveLength(2);
    for (const step of steps) {
      const script = step.replaceAll("/tmp", packed!).replaceAll("/opt/drover", installed!);
      const { NODE_ENV: _, ...env } = getNpmEnvironment();
      const { status, stderr } = spawnSync("/bin/sh", ["-c", script], { cwd: source!, env, encoding: "utf8" });
      expect([step, status], stderr).toEqual([step, 0]);
    }
    const [program, health] = [
      join(installed!, "bin", "drover"),
      join(installed!, "lib/node_modules/drover/deploy/healthcheck.mjs"),
    ];
    const command = (JSON.parse(of("CMD")[0]!) as string[]).map((word) => (word === "0.0.0.0" ? "127.0.0.1" : word));
    const state = join(directory, "state");
    const env = { PATH: process.env["PATH"] ?? "", HOME: directory, DROVER_STATE_DIR: state };
    const child = spawn(program, [...command, "--port", "0"], {
      env,
      cwd: directory,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const closed = new Promise((resolve) => child.once("close", resolve));
    let output = "";
    child.stderr.on("data", (chunk: Buffer) => (output += String(chunk)));
    try {
      await expect.poll(() => output).toMatch(/^Serving \S+/m);
      const port = /:(\d+) /.exec(output)![1]!;
      const check = (at: string) => spawnSync(process.execPath, [health, at], { encoding: "utf8" });
      expect(check(port)).toMatchObject({ status: 0, stdout: "The coordinator answered with status 200.\n" });
      expect(check("1")).toMatchObject({ status: 1, stdout: expect.stringContaining("does not answer on port 1") });
    } finally {
      child.kill("SIGTERM");
      expect(await closed).toBe(0);
    }
  }, 1_800_000);
});

/** Copies what a container engine would send as the build context. */
function copyContext(target: string): void {
  const ignored = read("Dockerfile.dockerignore").trim().split("\n");
  const isIgnored = (path: string): boolean => ignored.some((pattern) => matchesGlob(path, pattern));
  cpSync(root, target, { recursive: true, filter: (path) => path === root || !isIgnored(relative(root, path)) });
  expect(readdirSync(target)).not.toContain("node_modules");
  expect(existsSync(join(target, "dist"))).toBe(false);
  expect(existsSync(dirname(join(target, "web", "package.json")))).toBe(true);
}
