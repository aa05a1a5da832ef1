import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hostHas } from "../fixtures/process/host.ts";
import { isRoot, nobodyUid } from "./drover.ts";
import { droverCommand, listNestedCommands, type Project, createProject, readRecord } from "./nested-project.ts";
import { startDrover } from "./start-drover.ts";

// One run writes down how it reaches Drover, and waits. Another run of the same user then tries to abuse that.
const waitScript = `
printf '%s' "$DROVER_NESTED_LOG" > victim-log; printf '%s' "$DROVER_API_URL" > victim-url.new; mv victim-url.new victim-url
i=0; while ! test -e go && test $i -lt 3000; do sleep 0.1; i=$((i + 1)); done
${droverCommand} exec "echo mine"
`;
const attackScript = `
log=$(cat victim-log); url=$(cat victim-url); folder=$(dirname "$log"); nested=$(dirname "$folder")
DROVER_NESTED_LOG=$log ${droverCommand} exec "echo forged"
echo garbage >> "$log"
mkdir -p "$folder"; echo garbage >> "$log"
for file in $(find "$nested" -type f ! -path "$DROVER_NESTED_LOG"); do echo garbage >> "$file"; echo "found $file"; done
truncate -s 0 "$log"; rm -f "$log"; rm -rf "$folder"; mv "$folder" "$folder.away"
ln -sf "$log" here; echo garbage >> here
case $url in unix:*)
  socket=\${url#unix:}
  test -e "$socket" && echo "found $socket"
  rm -f "$socket"; mv "$socket" "$socket.away"; touch "$socket" && echo "made $socket" ;;
esac
ls "$nested"
true
`;

const levels = (["pid", "sandbox"] as const).filter((level) => hostHas(level));
const subjects = levels.flatMap((isolation) =>
  (isRoot ? [undefined, nobodyUid] : [undefined]).map((uid) => ({
    isolation,
    uid,
    who: isRoot && uid === undefined ? "root" : "an ordinary user",
  })),
);

function createProjectForTwoRuns(isolation: string, uid: number | undefined): Project {
  const project = createProject(`case "$*" in *waits*) ${waitScript};; *) ${attackScript};; esac\n`, uid, {
    isolation,
  });
  writeFileSync(
    join(project.cwd, "agents", "script.yaml"),
    `name: script\ncommand: sh ${join(project.cwd, "script.sh")}\nparameters_schema:\n  type: object\n  properties:\n    role: {type: string}\n`,
  );
  return project;
}

const text = (project: Project, name: string): string =>
  existsSync(join(project.cwd, name)) ? readFileSync(join(project.cwd, name), "utf8") : "";

/** Runs both, and returns what the attacker printed. */
async function attack(project: Project, words: (role: string) => string[]): Promise<string> {
  const victim = project.run(words("waits"));
  await expect.poll(() => text(project, "victim-url"), { timeout: 60_000 }).not.toBe("");
  const attacker = await project.run(words("attacks"));
  expect(attacker).toMatchObject({ code: 0 });
  await project.run(["exec", "touch go"]);
  expect(await victim).toMatchObject({ code: 0 });
  const runs = await readRecord(project);
  const victimRun = runs.find(({ executions }) => executions.some(({ start }) => start.argv.includes("waits")))!;
  expect(listNestedCommands(victimRun)).toEqual([["echo mine", 0]]);
  for (const { shown } of runs) expect(shown).not.toContain("nested_log_invalid");
  return attacker.stdout;
}

describe.each(subjects)("at $isolation as $who", ({ isolation, uid }) => {
  it.each([
    ["two runs without a coordinator", (role: string) => ["run", "script", "--role", role]],
    ["two execs", (role: string) => ["exec", "--isolation", isolation, `sh script.sh ${role}`]],
  ])("%s cannot reach each other's log or socket", async (_, words) => {
    const project = createProjectForTwoRuns(isolation, uid);
    const printed = await attack(project, words);
    expect(printed).not.toMatch(/found|made/);
    expect(printed.trim().split("\n")).toHaveLength(2);
  });

  it("two runs of one runner cannot reach each other's log", async () => {
    const project = createProjectForTwoRuns(isolation, uid);
    await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
    const printed = await attack(project, (role) => ["run", "script", "--role", role]);
    expect(printed).not.toMatch(/found|made/);
    expect(printed.trim().split("\n")).toHaveLength(1);
  });
});
