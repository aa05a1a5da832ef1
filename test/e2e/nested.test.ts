import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isRoot, nobodyUid } from "./drover.ts";
import { droverCommand, listNestedCommands, type Project, createProject, readRecord } from "./nested-project.ts";
import { startDrover } from "./start-drover.ts";

const lines = `
${droverCommand} exec "echo one; exit 3"
${droverCommand} exec "${droverCommand} exec 'echo two'" || exit 1
${droverCommand} run echo --message three || exit 1
echo "key $DROVER_API_KEY"
printf '%s' "$DROVER_API_KEY" | base64 -w0 | tee key64
test -z "$DROVER_STATE_DIR"
`;
const asReported = [
  ["echo one; exit 3", 3],
  [`${droverCommand} exec 'echo two'`, 0],
  ["echo two", 0],
];

async function expectRecorded(project: Project, agent: string): Promise<void> {
  const runs = await readRecord(project);
  const outer = runs.find(({ agent_name }) => agent_name === agent)!;
  expect(outer).toMatchObject({ status: "completed", parent_run_id: null });
  expect(listNestedCommands(outer)).toEqual(asReported);
  for (const { start } of outer.executions)
    if (start.reported_by) expect(start.execution_id).toMatch(new RegExp(`^${outer.run_id}\\.1\\.`));
  const child = runs.find(({ agent_name }) => agent_name === "echo")!;
  expect(child).toMatchObject({ status: "completed", parent_run_id: outer.run_id });
  expect(runs).toHaveLength(2);
  expect(outer.shown).toContain("key [redacted:");
  expect(outer.shown).not.toMatch(/drva_[^\]]/);
  const key64 = readFileSync(join(project.cwd, "key64"), "utf8");
  expect(key64.length).toBeGreaterThan(90);
  expect(outer.shown).not.toContain(key64);
}

describe.each([["root", undefined] as const, ["an ordinary user", nobodyUid] as const])(
  "nested commands as %s",
  (_, uid) => {
    it.skipIf(!isRoot && uid !== undefined)("are recorded under their exec", async () => {
      const project = createProject(lines, uid);
      const result = await project.run(["exec", "sh script.sh"]);
      expect(result.stderr).not.toContain("DROVER_API_KEY");
      expect(result.code).toBe(0);
      await expectRecorded(project, "exec");
      const exported = (await project.run(["audit", "export"])).stdout.trim().split("\n");
      expect(exported.map((line) => JSON.parse(line).reportedBy).filter((by) => by === "command")).toHaveLength(3);
      expect((await project.run(["audit", "verify"])).code).toBe(0);
    });

    it.skipIf(!isRoot && uid !== undefined)("are recorded under their run if there is no coordinator", async () => {
      const project = createProject(lines, uid);
      expect(await project.run(["run", "script"])).toMatchObject({
        code: 0,
        stderr: expect.not.stringContaining("warning"),
      });
      await expectRecorded(project, "script");
    });

    it.skipIf(!isRoot && uid !== undefined)("are recorded under their run of drover up", async () => {
      const project = createProject(lines, uid);
      await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
      expect((await project.run(["run", "script"])).code).toBe(0);
      await expectRecorded(project, "script");
    });
  },
);
