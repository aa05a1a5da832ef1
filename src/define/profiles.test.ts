import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findCommand } from "../execute/executors/procedural/arguments.ts";
import { describeFault } from "../model/definition-fault.ts";
import { findProfiles, loadProfile, type ProfileHost, toRegistrationExecutor } from "./profiles.ts";

const host: ProfileHost = {
  builtIn: ["procedural", "claude"],
  hasCommand: (command, directory) => "found" in findCommand(command.split(" ")[0]!, directory, "/usr/bin:/bin"),
};
let root: string;
let directory: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "drover-profiles-"));
  directory = join(root, "profiles");
  await mkdir(directory);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const put = (name: string, text: string) => writeFile(join(directory, name), text);

function loadValid(nameOrPath: string, directories = [directory]) {
  const result = loadProfile(nameOrPath, directories, host);
  if (!result.ok) throw new Error(result.faults.map(describeFault).join("\n"));
  return result.profile;
}

function loadInvalid(nameOrPath: string, directories = [directory]) {
  const result = loadProfile(nameOrPath, directories, host);
  if (result.ok) throw new Error("it has no fault");
  return result.faults[0]!;
}

test("finds a profile by name and by path, with its defaults", async () => {
  await put("plain.json", '{"type": "procedural", "agents_dir": "./agents/plain"}');
  const profile = loadValid("plain");
  expect(profile).toEqual({
    name: "plain",
    file: join(directory, "plain.json"),
    directory: root,
    agentsDirectory: join(root, "agents", "plain"),
    module: null,
    profile: {
      type: "procedural",
      config: {},
      agents_dir: "./agents/plain",
      tags: [],
      require_matching_tags: false,
      slots: 4,
      env_from: [],
      allow_env: [],
      can: {},
      project_roots: [],
    },
  });
  expect(loadValid(join(directory, "plain.json"), [])).toEqual(profile);
});

test("uses the directory of a profile that is outside a profiles directory", async () => {
  await writeFile(join(root, "own.yaml"), "type: procedural\nagents_dir: /srv/agents\n");
  expect(loadValid(join(root, "own.yaml"))).toMatchObject({
    name: "own",
    directory: root,
    agentsDirectory: "/srv/agents",
  });
});

test("sends only type, command or module, and config to the coordinator", async () => {
  await put(
    "p.yaml",
    "type: custom\ncommand: sh run.sh\nconfig: { a: 1 }\nagents_dir: agents\nallow_env: [TOKEN]\nenv_from: [X]\nproject_roots: [/srv]\ntags: [gpu]\n",
  );
  expect(toRegistrationExecutor(loadValid("p").profile)).toEqual({
    type: "custom",
    command: "sh run.sh",
    config: { a: 1 },
  });
  await put("b.json", '{"type": "procedural"}');
  expect(toRegistrationExecutor(loadValid("b").profile)).toEqual({ type: "procedural", config: {} });
});

test("reports a missing command or module", async () => {
  await put("x.json", '{\n"type": "custom",\n"command": "executors/none --fast"}');
  expect(loadInvalid("x")).toMatchObject({
    code: "DROVER-PRF-005",
    line: 3,
    message: "profile x: command executors/none --fast not found",
  });
  await put("y.json", '{"type": "custom", "command": "drover-no-such-program"}');
  expect(loadInvalid("y").message).toBe("profile y: command drover-no-such-program not found");
  await put("z.json", '{"type": "custom", "module": "executors/none.ts"}');
  expect(loadInvalid("z").message).toBe("profile z: module executors/none.ts not found");
});

test("searches a command in the runner's directory, then on PATH; a module only in the directory", async () => {
  await writeFile(join(root, "own"), "#!/bin/sh\n", { mode: 0o755 });
  await writeFile(join(root, "own.mjs"), "");
  await put("a.json", '{"type": "custom", "command": "own"}');
  await put("b.json", '{"type": "custom", "command": "sh"}');
  await put("c.json", '{"type": "custom", "module": "own.mjs"}');
  loadValid("a");
  loadValid("b");
  expect(loadValid("c").module).toBe(join(root, "own.mjs"));
});

test("requires exactly one source of an executor", async () => {
  await put("a.json", '{"type": "proceduarl"}');
  expect(loadInvalid("a").message).toBe("profile a: unknown executor: proceduarl. Did you mean procedural?");
  await put("b.json", '{"type": "x", "command": "sh", "module": "y.mjs"}');
  expect(loadInvalid("b")).toMatchObject({ code: "DROVER-PRF-004", path: "module" });
});

test("reports unknown keys, wrong values and syntax errors with their lines", async () => {
  await put("a.yaml", "type: procedural\nagent_dir: x\n");
  expect(loadInvalid("a")).toMatchObject({
    code: "DROVER-PRF-003",
    line: 2,
    message: "unknown key agent_dir. Did you mean agents_dir?",
  });
  await put("b.json", '{"type": "procedural",\n"slots": 0}');
  expect(loadInvalid("b")).toMatchObject({ code: "DROVER-PRF-004", line: 2, path: "slots" });
  await put("c.json", '{"type": "procedural",\n}');
  expect(loadInvalid("c")).toMatchObject({ code: "DROVER-PRF-002", line: 2 });
  await put("d.json", '{"type": "procedural", "allow_env": ["A B"]}');
  expect(loadInvalid("d")).toMatchObject({ code: "DROVER-PRF-004", path: "allow_env.0" });
});

test("lists the known profiles for an unknown name", async () => {
  await put("echo.json", '{"type": "procedural"}');
  expect(loadInvalid("ehco")).toMatchObject({ code: "DROVER-PRF-001", next: "Known profiles: echo." });
  expect(loadInvalid("ehco").message).toContain("Did you mean echo?");
  expect(loadInvalid(join(directory, "none.json")).code).toBe("DROVER-PRF-001");
});

test("prefers the profile of the first directory that has the name, and reports two of one name in a directory", async () => {
  const second = join(root, "more", "profiles");
  await mkdir(second, { recursive: true });
  await put("a.json", '{"type": "procedural"}');
  await writeFile(join(second, "a.yaml"), "type: claude\n");
  await writeFile(join(second, "b.yaml"), "type: claude\n");
  await writeFile(join(second, "c.yaml"), "type: claude\ncommnd: x\n");
  expect(loadValid("a", [directory, second]).profile.type).toBe("procedural");
  expect(loadValid("a", [join(root, "missing"), second, directory]).profile.type).toBe("claude");
  const found = findProfiles([directory, second, join(root, "missing")], host);
  expect(found.profiles.map(({ name, profile }) => [name, profile.type])).toEqual([
    ["a", "procedural"],
    ["b", "claude"],
  ]);
  expect(found.faults).toMatchObject([{ file: join(second, "c.yaml"), line: 2 }]);
  await put("a.yaml", "type: procedural\n");
  expect(loadInvalid("a").code).toBe("DROVER-PRF-006");
  expect(findProfiles([directory], host).faults).toMatchObject([{ code: "DROVER-PRF-006" }]);
});

test("skips a profile whose program is missing, but reports it if it was requested by name", async () => {
  const missingProgram = { message: "claude is missing", next: "Install it." };
  const hostWithoutClaude: ProfileHost = { ...host, missing: (type) => (type === "claude" ? missingProgram : null) };
  await put("claude.json", '{"type": "claude"}');
  await put("other.json", '{"type": "claude", "command": "true"}');
  const found = findProfiles([directory], hostWithoutClaude);
  expect(found.profiles.map(({ name }) => name)).toEqual(["other"]);
  expect(found.faults).toEqual([]);
  expect(found.absent).toMatchObject([{ code: "DROVER-PRF-005", message: "profile claude: claude is missing" }]);
  const requested = loadProfile("claude", [directory], hostWithoutClaude);
  expect(requested).toMatchObject({
    ok: false,
    faults: [{ message: "profile claude: claude is missing", next: "Install it." }],
  });
});
