import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { hostHas } from "../fixtures/process/host.ts";
import { bin, drover, createDirectory } from "./drover.ts";

const droverCommand = `${process.execPath} ${bin}`;

/** Writes a profile without isolation, its agent and its script, as a command inside a run could. */
const forge = (proof: string): string => `mkdir -p profiles x/agents
echo '{"type":"procedural","isolation":"none","agents_dir":"./x/agents","config":{}}' > profiles/forged.json
echo '{"name":"thief","type":"procedural","command":"x/thief"}' > x/agents/thief.json
printf '#!/bin/sh\\n: > ${proof}\\necho {}\\n' > x/thief
chmod 755 x/thief
`;

function createProject() {
  const top = createDirectory();
  const [home, cwd] = [join(top, "home"), join(top, "project")];
  for (const directory of [home, cwd]) mkdirSync(directory);
  const run = (args: string[], trust = "") => drover(args, { cwd, env: { HOME: home, DROVER_TRUST: trust } });
  return { top, home, cwd, proof: join(top, "stolen"), run };
}

it.each(["exec", "run"])("a command cannot make %s use definitions that it has just written", async (kind) => {
  const { cwd, proof, run } = createProject();
  writeFileSync(join(cwd, "forge.sh"), `${forge(proof)}${droverCommand} run thief\n`);
  mkdirSync(join(cwd, "agents"));
  writeFileSync(
    join(cwd, "agents", "outer.json"),
    JSON.stringify({ name: "outer", type: "procedural", command: `sh ${join(cwd, "forge.sh")}` }),
  );
  const args = kind === "exec" ? ["exec", "sh forge.sh"] : ["run", "outer", "--agents", join(cwd, "agents")];
  expect((await run(args, cwd)).code).not.toBe(0);
  expect(existsSync(proof)).toBe(false);
});

it("a command cannot make its own directory trusted while it runs", async () => {
  const { cwd, home, proof, run } = createProject();
  writeFileSync(join(cwd, "forge.sh"), `${forge(proof)}${droverCommand} trust ${cwd}\n${droverCommand} run thief\n`);
  // Where Drover's configuration is writable for the command.
  expect((await run(["exec", "--isolation", "group", "sh forge.sh"])).code).not.toBe(0);
  // The directory is trusted, so that is not why the definitions are ignored.
  expect(existsSync(join(home, ".config", "drover", "trusted.json"))).toBe(true);
  expect(existsSync(proof)).toBe(false);
});

it.runIf(hostHas("pid"))("a command at pid cannot trust a folder at all", async () => {
  const { cwd, home, run } = createProject();
  const config = join(home, ".config", "drover");
  const attempts = `${droverCommand} trust ${cwd}; echo {} > ${config}/trusted.json; mv ${config} ${config}.old; mv ${home}/.config ${home}/old`;
  const { stderr } = await run(["exec", "--isolation", "pid", "--shell", attempts]);
  expect(stderr).toContain("DROVER-TRU-001");
  expect(readdirSync(config)).toEqual([]);
  expect((await run(["trust", cwd])).code).toBe(0);
  expect(readdirSync(config)).toEqual(["trusted.json"]);
});

it("a command cannot change a linked profile and have it used while it runs", async () => {
  const { cwd, proof, run } = createProject();
  writeFileSync(join(cwd, "forge.sh"), forge(proof));
  await run(["exec", "sh forge.sh"], cwd);
  mkdirSync(join(cwd, "shared"));
  renameSync(join(cwd, "profiles", "forged.json"), join(cwd, "shared", "forged.json"));
  symlinkSync("../shared/forged.json", join(cwd, "profiles", "forged.json"));
  const { code } = await run(["exec", `sh -c 'echo >> shared/forged.json; ${droverCommand} run thief'`], cwd);
  expect(code).not.toBe(0);
  expect(existsSync(proof)).toBe(false);
});

it("a command cannot change an executor's module and have it loaded while it runs", async () => {
  const { cwd, proof, run } = createProject();
  for (const name of ["profiles", "x", "x/agents"]) mkdirSync(join(cwd, name));
  const put = (path: string, text: string): void => writeFileSync(join(cwd, path), text);
  put("profiles/own.json", '{"type":"own","module":"./x/own.mjs","agents_dir":"./x/agents","config":{}}');
  put("x/agents/mine.json", '{"name":"mine","executor":"own","demands":{"executor_type":"own"}}');
  const module = (effect: string): string => `import { writeFileSync } from "node:fs";
    export const executor = { name: "own", can: { resume: false, fork: false, ask: false, input: false }, run: async () => {
      ${effect}
      return { status: "completed", text: "done" };
    } };`;
  put("x/own.mjs", module(""));
  // The command itself could have written such a recent file.
  await expect.poll(async () => (await run(["exec", `${droverCommand} run mine --prompt x`], cwd)).code).toBe(0);
  put("changed.mjs", module(`writeFileSync(${JSON.stringify(proof)}, "");`));
  await run(["exec", `sh -c 'cat changed.mjs > x/own.mjs; ${droverCommand} run mine --prompt x'`], cwd);
  expect(existsSync(proof)).toBe(false);
});

it("commands inside a run can use definitions that existed before it", async () => {
  const { cwd, proof, run } = createProject();
  writeFileSync(join(cwd, "forge.sh"), forge(proof));
  await run(["exec", "sh forge.sh"], cwd);
  expect((await run(["exec", `${droverCommand} run thief`], cwd)).code).toBe(0);
  expect(existsSync(proof)).toBe(true);
});

it("a link to trusted profiles does not make the directory with the link trusted", async () => {
  const { cwd, proof, run } = createProject();
  symlinkSync(join(dirname(dirname(bin)), "examples", "profiles"), join(cwd, "profiles"));
  for (const name of ["agents", "scripts"]) mkdirSync(join(cwd, name));
  writeFileSync(
    join(cwd, "agents", "mine.json"),
    JSON.stringify({ name: "mine", type: "procedural", command: "scripts/mine" }),
  );
  writeFileSync(join(cwd, "scripts", "mine"), `#!/bin/sh\n: > ${proof}\necho {}\n`);
  chmodSync(join(cwd, "scripts", "mine"), 0o755);
  const { code, stderr } = await run(["run", "mine"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("DROVER-SUB-001")]);
  expect(existsSync(proof)).toBe(false);
});
