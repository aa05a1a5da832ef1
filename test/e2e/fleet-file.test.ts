import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { drover, createDirectory } from "./drover.ts";

it("checks, lists and runs the agents of the fleet file that drover.yaml names", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  mkdirSync(join(cwd, "defs"));
  writeFileSync(join(cwd, "drover.yaml"), "agents: defs/fleet.yaml\n");
  const fleet = join(cwd, "defs", "fleet.yaml");
  writeFileSync(
    fleet,
    `defaults: { timeout_seconds: 60 }
agents:
  - { name: hello, command: echo hello }
  - { name: bye, command: echo bye, timeout_seconds: 5 }
`,
  );
  const checked = await drover(["agents", "check"], { cwd, env });
  expect([checked.code, checked.stdout], checked.stderr).toEqual([0, "ok hello\nok bye\n"]);
  const shown = await drover(["agents", "show", "hello"], { cwd, env });
  expect(JSON.parse(shown.stdout)).toMatchObject({ name: "hello", timeout_seconds: 60, source: "file" });
  const result = await drover(["run", "bye"], { cwd, env });
  expect([result.code, result.stdout], result.stderr).toEqual([0, "bye\n"]);

  writeFileSync(fleet, "include: [fleet.yaml]\nagents:\n  - { name: hello, comand: echo }\n");
  const refused = await drover(["agents", "check"], { cwd, env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`${fleet}:1: the fleet file includes itself`);
  expect(refused.stderr).toContain(`${fleet}:3: unknown key comand. Did you mean command?`);
});
