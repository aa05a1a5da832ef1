import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { hasEnded } from "../src/model/states.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { countUpTo, waitFor } from "./wait.ts";

/** What a command leaves in its temporary directory, as Perl code. */
const kinds = {
  "deep directories": (depth: number) => `for (1..${depth}) { mkdir "d"; chdir "d" }`,
  "long names": (depth: number) => `my $n = "n" x 250; for (1..${Math.ceil(depth / 50)}) { mkdir $n; chdir $n }`,
  "closed directories": () => `mkdir "a"; mkdir "a/b"; chmod 0000, "a/b"; chmod 0500, "a"`,
  "immutable files": () => `open(my $f, ">", "f"); close $f; system("chattr", "+i", "f")`,
  "a loop of links": () => `mkdir "a"; symlink "..", "a/up"; symlink "/", "a/root"`,
  "a pipe and strange names": () => `system("mkfifo", "p"); mkdir "-rf"; mkdir "a\\nb"; mkdir "\\xff\\xfe"`,
} as const;

/**
 * H6: commands leave directories that are hard to remove, and their runner stops or is killed together with the command.
 * The runner starts again, takes other runs, and leaves nothing behind except what cannot be removed.
 */
export async function deepDirectories(
  { rounds, depth }: { rounds: number; depth: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const broken: string[] = [];
    const seen = { rounds: 0, killed: 0, "did not start again": 0, "left over": 0 };
    try {
      for (const index of countUpTo(rounds)) {
        for (const [kind, script] of Object.entries(kinds)) {
          const isKilled = index % 2 === 1;
          const fault = await leaveAndStart(testbed, kind, script(depth), isKilled);
          seen.rounds += 1;
          if (isKilled) seen.killed += 1;
          if (fault === null) continue;
          seen[fault.endsWith("left") ? "left over" : "did not start again"] += 1;
          broken.push(`${kind}${isKilled ? ", killed" : ""}: ${fault}`);
        }
      }
    } finally {
      // Node could not remove these, so use programs that can.
      spawnSync("chattr", ["-R", "-i", join(testbed.directory, "runners")], { stdio: "ignore" });
      spawnSync("rm", ["-rf", join(testbed.directory, "runners")]);
    }
    return { seen, broken, late: [] };
  });
}

const runner = "leaver";

async function leaveAndStart(
  testbed: Testbed,
  kind: string,
  script: string,
  isKilled: boolean,
): Promise<string | null> {
  const { client } = testbed;
  const started = join(testbed.directory, "begun");
  const stay = isKilled ? "sleep 600" : "";
  const command = `perl -e 'chdir $ENV{TMPDIR}; ${script}; open(my $f, ">", "${started}"); close $f; ${stay}'`;
  await client.agents.put("leaves", { type: "procedural", command });
  const first = await testbed.startRunner({ name: runner, slots: 1 });
  const { run_id } = await client.submit({ agent_name: "leaves" });
  const isThere = async (): Promise<true | null> =>
    isKilled ? existsSync(started) || null : hasEnded((await client.runs.get(run_id)).status) || null;
  if ((await waitFor(isThere, 120_000)) === null) return "the command did not get so far";
  first.child.signal(isKilled ? "SIGKILL" : "SIGTERM");
  await first.child.closed;
  spawnSync("rm", ["-f", started]);

  const second = testbed.spawnRunner({ name: runner, slots: 1 });
  await testbed.putAgent("after");
  const after = await client.submit({ agent_name: "after" });
  const ended = await waitFor(async () => {
    const run = await client.runs.get(after.run_id);
    return hasEnded(run.status) || !second.alive ? run.status : null;
  }, 120_000);
  const { output: firstOutput } = second;
  second.signal("SIGTERM");
  await second.closed;
  if (ended !== "completed") return `a run after it is ${ended}: ${firstOutput.slice(-500)}`;
  return kind !== "immutable files" && findLeftovers(testbed, run_id) ? "something is left" : null;
}

/** Ignores logs, and does not descend into the directories, which may be deep. */
function findLeftovers({ directory }: Testbed, run_id: string): boolean {
  const isIn = (path: string, levels: number): boolean =>
    readdirSync(path, { withFileTypes: true }).some((entry) => {
      if (!entry.isDirectory() || entry.name === "logs") return false;
      return entry.name.includes(run_id) || (levels > 0 && isIn(join(path, entry.name), levels - 1));
    });
  return isIn(join(directory, "runners", runner), 2);
}
