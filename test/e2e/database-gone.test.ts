import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { listFiles } from "../fixtures/e2e/canaries.ts";
import { drover, createDirectory } from "./drover.ts";

const createProject = () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const run = (args: string[], at = state) => drover(args, { cwd, env: { DROVER_STATE_DIR: at } });
  return { cwd, state, run };
};

it("exec reports that its command deleted the record, and writes what it still had to a file that can be restored", async () => {
  const { cwd, state, run } = createProject();
  expect((await run(["exec", "echo first"])).code).toBe(0);
  const { code, stderr, stdout } = await run([
    "exec",
    "--isolation",
    "none",
    "--",
    "sh",
    "-c",
    `rm -r '${state}'; echo gone`,
  ]);
  expect({ code, stdout }).toEqual({ code: 125, stdout: "gone\n" });
  expect(stderr).toContain("DROVER-STA-012");
  const file = /The record up to this moment is in (\S+\.backup)\./.exec(stderr)?.[1] ?? "none";
  const restoredState = join(cwd, "again");
  expect(await run(["restore", "--keep-tokens", file], restoredState)).toMatchObject({ code: 0 });
  const { stdout: exported } = await run(["audit", "export"], restoredState);
  expect(exported).toContain("first");
  expect(exported).toContain("echo gone");
  expect(await run(["audit", "verify"], restoredState)).toMatchObject({ code: 0 });
});

it("restore revokes the backup's tokens, and says where the new one is and what to do next", async () => {
  const { cwd, run } = createProject();
  expect((await run(["exec", "true"])).code).toBe(0);
  expect((await run(["backup", "copy"])).code).toBe(0);
  const restoredState = join(cwd, "again");
  const { code, stdout, stderr } = await run(["restore", "--json", "copy"], restoredState);
  expect(code).toBe(0);
  const parsed = JSON.parse(stdout);
  expect(parsed).toMatchObject({ revoked_tokens: 0, token_file: expect.stringMatching(/token$/) });
  expect(readFileSync(parsed.token_file, "utf8")).toMatch(/^drv_\w{32}\n$/);
  expect(stderr).toContain("drover tokens enrol");
  writeFileSync(join(cwd, "longer"), Buffer.concat([readFileSync(join(cwd, "copy")), Buffer.from("junk")]));
  const repeatedRestore = await run(["restore", "longer"], join(cwd, "third"));
  expect(repeatedRestore).toMatchObject({ code: 2, stderr: expect.stringContaining("4 bytes were appended") });
});

it("run without a coordinator passes a secret parameter to its command and writes it nowhere", async () => {
  const { cwd, state, run } = createProject();
  const word = "correct horse battery staple";
  mkdirSync(join(cwd, "agents"));
  const agent = {
    name: "login",
    type: "procedural",
    command: `${process.execPath} -e "console.log(Buffer.from(process.argv.at(-1)).length, process.argv.at(-1))" --`,
    parameters_schema: { type: "object", properties: { password: { type: "string", format: "password" } } },
  };
  writeFileSync(join(cwd, "agents", "login.json"), JSON.stringify(agent));
  const { code, stderr } = await run(["run", "login", "--agents", join(cwd, "agents"), "--password", word]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const { stdout: runs } = await run(["runs", "list", "--json"]);
  expect(runs).toContain("login");
  const { stdout: events } = await run(["runs", "events", JSON.parse(runs.trim().split("\n")[0]!).run_id, "--json"]);
  expect(events).toContain(`${word.length} [redacted:password]`);
  for (const file of listFiles(state)) expect([file, readFileSync(file).includes(word)]).toEqual([file, false]);
});
