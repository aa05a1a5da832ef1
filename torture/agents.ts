import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { homesDirectory, runsDirectory, tmpDirectory, workDirectory } from "../src/model/state-layout.ts";
import { listFilesBelow, listRunProcesses } from "../test/fixtures/e2e/left-over.ts";
import { startModelServer } from "../test/model-server/server.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

/**
 * Runs agents and stops a third of the runs at random moments. A tenth of them use the real claude, the others a script
 * that leaves as much behind. Afterwards no process and no temporary file is left and, once the sessions are deleted, no
 * work directory and no HOME.
 */
export async function agents({ runs, atOnce }: { runs: number; atOnce: number }, tools: Tools): Promise<Finding> {
  const model = await startModelServer([
    { when: "stay", turns: [{ tool: { name: "shell", input: { command: "setsid sleep 3600 & sleep 3600" } } }] },
    { when: "work", turns: [{ tool: { name: "write_file", input: writtenFile } }, { text: "Done." }] },
  ]);
  try {
    return await withTestbed(tools, { leaseMs: 10_000, pollHoldMs: 5000 }, async (testbed) => {
      const kinds = await startRunners(testbed, model.url, tools);
      const ended: Ended[] = [];
      await forEachConcurrently(countUpTo(runs), atOnce, async (index) => {
        const kind = index % 10 === 0 && kinds.includes("real") ? "real" : "cheap";
        ended.push(await runOne(testbed, kind, index % 3 === 0));
        if (ended.length % 20 === 0) tools.progress(`${ended.length} of ${runs} runs`);
      });
      return judge(testbed, ended);
    });
  } finally {
    await model.stop();
  }
}

const writtenFile = { path: "made.txt", content: "made" };

type Kind = "real" | "cheap";

async function startRunners(testbed: Testbed, modelUrl: string, tools: Tools): Promise<Kind[]> {
  const claude = join(
    tools.root,
    "test/clients/node_modules/@anthropic-ai",
    `claude-agent-sdk-${process.platform}-${process.arch}`,
    "claude",
  );
  const cheapProgram = join(testbed.directory, "cheap-client");
  writeFileSync(cheapProgram, createCheapClient(join(tools.root, "test/fixtures/clients/claude-text.jsonl")), {
    mode: 0o755,
  });
  await startOne(testbed, "cheap", { bin: cheapProgram, slots: 12, modelUrl }, tools);
  if (!existsSync(claude)) {
    tools.progress("the real claude is not installed (`npm test` installs it): all runs use the script");
    return ["cheap"];
  }
  await startOne(testbed, "real", { bin: claude, slots: 4, modelUrl }, tools);
  return ["cheap", "real"];
}

/** A script in place of claude: does what its prompt says and leaves files behind. */
function createCheapClient(said: string): string {
  return `#!/bin/sh
task=$(cat)
mkdir -p "$TMPDIR/mess" "$HOME/.claude/mess"
echo x > "$TMPDIR/mess/file"; echo x > "$HOME/.claude/mess/file"; echo made > made.txt
case $task in stay) (sleep 3600 & setsid sleep 3600 &); sleep 3600 ;; esac
cat ${said}
`;
}

interface Client {
  bin: string;
  slots: number;
  modelUrl: string;
}

async function startOne(
  testbed: Testbed,
  kind: Kind,
  { bin, slots, modelUrl }: Client,
  { host }: Tools,
): Promise<void> {
  const home = join(testbed.directory, `home-${kind}`);
  mkdirSync(home);
  const profile = join(testbed.directory, "profiles", `${kind}.json`);
  const config = { bin, allow_full_auto: true };
  writeFileSync(
    profile,
    JSON.stringify({ type: "claude", config, home: "session", tags: [kind], require_matching_tags: true }),
  );
  const options = {
    profile,
    url: testbed.url,
    token: testbed.token,
    stateDirectory: getStateDirectory(testbed, kind),
    name: kind,
    slots,
    times: { sweepMs: 500 },
  };
  const child = testbed.processes.start([process.execPath, host, "runner", JSON.stringify(options)], {
    cwd: testbed.directory,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      DROVER_TRUST: testbed.directory,
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: "sk-ant-scripted",
      CLAUDE_CODE_MAX_RETRIES: "1",
    },
  });
  await child.waitForOutput(/^serving$/m, 60_000);
  await testbed.client.agents.put(kind, {
    type: "autonomous",
    executor: "claude",
    permissions: { mode: "bypassPermissions" },
    demands: { executor_type: "claude", tags: [kind] },
  });
}

const getStateDirectory = (testbed: Testbed, kind: Kind): string => join(testbed.directory, "runners", kind);

interface Ended {
  run_id: string;
  session_id: string;
  kind: Kind;
  status: string;
  fault: string | null;
  /** Processes still alive when the run was reported as ended. */
  alive: number;
}

async function runOne({ client }: Testbed, kind: Kind, stopIt: boolean): Promise<Ended> {
  const { run_id } = await client.submit({ agent_name: kind, prompt: stopIt ? "stay" : "work" });
  if (stopIt) {
    await waitFor(async () => ((await client.runs.get(run_id)).started_at === null ? null : true), 120_000);
    await pause(Math.random() * (kind === "real" ? 6000 : 500));
    await client.runs.stop(run_id);
  }
  const run = await waitFor(async () => {
    const seen = await client.runs.get(run_id);
    return seen.finished_at === null ? null : seen;
  }, 300_000);
  const status = run?.status ?? "did not end";
  const expectedStatus = stopIt ? "cancelled" : "completed";
  return {
    run_id,
    session_id: run?.session_id ?? "",
    kind,
    status,
    fault:
      status === expectedStatus
        ? null
        : `${kind} ${run_id} is ${status} (${run?.reason}: ${run?.error}), ${expectedStatus} was due`,
    alive: listRunProcesses(run_id).length,
  };
}

async function judge(testbed: Testbed, ended: readonly Ended[]): Promise<Finding> {
  const states = (["cheap", "real"] as const).map((kind) => getStateDirectory(testbed, kind));
  const temporaryFiles = () => states.flatMap((state) => listFilesBelow(tmpDirectory(runsDirectory(state))));
  // A runner reports the outcome of a run before it removes them.
  await waitFor(async () => (temporaryFiles().length === 0 ? true : null), 60_000, 200);
  const directoriesBefore = countDirectories(states);
  for (const { session_id } of ended) await testbed.client.sessions.remove(session_id);
  await waitFor(async () => (countDirectories(states) === 0 ? true : null), 60_000, 200);
  const directories = countDirectories(states);
  const temporary = temporaryFiles();
  const alive = ended.reduce((sum, item) => sum + item.alive, 0);
  return {
    seen: {
      runs: ended.length,
      "of the real claude": ended.filter(({ kind }) => kind === "real").length,
      stopped: ended.filter(({ status }) => status === "cancelled").length,
      "processes left": alive,
      "temporary files left": temporary.length,
      "work directories and HOMEs": directoriesBefore,
      "after their sessions were deleted": directories,
    },
    broken: [
      ...ended.flatMap(({ fault }) => fault ?? []),
      ...ended.flatMap(({ run_id, alive: remaining }) =>
        remaining > 0 ? [`${run_id} left ${remaining} processes`] : [],
      ),
      ...temporary.map((path) => `${path} was left`),
      ...(directories > 0 ? [`${directories} directories were left`] : []),
    ],
    late: [],
  };
}

function countDirectories(states: readonly string[]): number {
  const directories = states.flatMap((state) =>
    [workDirectory, homesDirectory].map((below) => below(runsDirectory(state))),
  );
  return directories.filter((path) => existsSync(path)).reduce((sum, path) => sum + readdirSync(path).length, 0);
}
