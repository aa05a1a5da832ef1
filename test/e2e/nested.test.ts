import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isRoot, nobody } from "./drover.ts";
import { me, nestedOf, type Place, place, record } from "./nested-place.ts";
import { startDrover } from "./start-drover.ts";

const lines = `
${me} exec "echo one; exit 3"
${me} exec "${me} exec 'echo two'" || exit 1
${me} run echo --message three || exit 1
echo "key $DROVER_API_KEY"
printf '%s' "$DROVER_API_KEY" | base64 -w0 | tee key64
test -z "$DROVER_STATE_DIR"
`;
const asReported = [
  ["echo one; exit 3", 3],
  [`${me} exec 'echo two'`, 0],
  ["echo two", 0],
];

async function expectOnRecord(here: Place, agent: string): Promise<void> {
  const runs = await record(here);
  const outer = runs.find(({ agent_name }) => agent_name === agent)!;
  expect(outer).toMatchObject({ status: "completed", parent_run_id: null });
  expect(nestedOf(outer)).toEqual(asReported);
  for (const { start } of outer.executions)
    if (start.reported_by) expect(start.execution_id).toMatch(new RegExp(`^${outer.run_id}\\.1\\.`));
  const child = runs.find(({ agent_name }) => agent_name === "echo")!;
  expect(child).toMatchObject({ status: "completed", parent_run_id: outer.run_id });
  expect(runs).toHaveLength(2);
  expect(outer.shown).toContain("key [redacted:");
  expect(outer.shown).not.toMatch(/drva_[^\]]/);
  const key64 = readFileSync(join(here.cwd, "key64"), "utf8");
  expect(key64.length).toBeGreaterThan(90);
  expect(outer.shown).not.toContain(key64);
}

describe.each([["root", undefined] as const, ["an ordinary user", nobody] as const])(
  "nested commands as %s",
  (_, uid) => {
    it.skipIf(!isRoot && uid !== undefined)("of an exec are on the record under it", async () => {
      const here = place(lines, uid);
      const ran = await here.run(["exec", "sh script.sh"]);
      expect(ran.stderr).not.toContain("DROVER_API_KEY");
      expect(ran.code).toBe(0);
      await expectOnRecord(here, "exec");
      const exported = (await here.run(["audit", "export"])).stdout.trim().split("\n");
      expect(exported.map((line) => JSON.parse(line).reportedBy).filter((by) => by === "command")).toHaveLength(3);
      expect((await here.run(["audit", "verify"])).code).toBe(0);
    });

    it.skipIf(!isRoot && uid !== undefined)("of a run without a coordinator are on the record under it", async () => {
      const here = place(lines, uid);
      expect(await here.run(["run", "script"])).toMatchObject({
        code: 0,
        stderr: expect.not.stringContaining("warning"),
      });
      await expectOnRecord(here, "script");
    });

    it.skipIf(!isRoot && uid !== undefined)("of a run of drover up are on the record under it", async () => {
      const here = place(lines, uid);
      await startDrover(["up", "--port", "0"], { ...here, ready: /Drover is up at/ });
      expect((await here.run(["run", "script"])).code).toBe(0);
      await expectOnRecord(here, "script");
    });
  },
);
