import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { homesDirectory, runsDirectory, tmpDirectory, workDirectory } from "../src/model/state-layout.ts";
import { filesBelow, processesOf } from "../test/fixtures/e2e/left-over.ts";
import { startModelServer } from "../test/model-server/server.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import { each, pause, upTo, waitFor } from "./wait.ts";

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
    return await inPlace(tools, { leaseMs: 10_000, pollHoldMs: 5000 }, async (place) => {
      const kinds = await startRunners(place, model.url, tools);
      const ended: Ended[] = [];
      await each(upTo(runs), atOnce, async (at) => {
        const kind = at % 10 === 0 && kinds.includes("real") ? "real" : "cheap";
        ended.push(await runOne(place, kind, at % 3 === 0));
        if (ended.length % 20 === 0) tools.progress(`${ended.length} of ${runs} runs`);
      });
      return judge(place, ended);
    });
  } finally {
    await model.stop();
  }
}

const writtenFile = { path: "made.txt", content: "made" };

type Kind = "real" | "cheap";

async function startRunners(place: Place, modelUrl: string, tools: Tools): Promise<Kind[]> {
  const claude = join(
    tools.root,
    "test/clients/node_modules/@anthropic-ai",
    `claude-agent-sdk-${process.platform}-${process.arch}`,
    "claude",
  );
  const cheap = join(place.directory, "cheap-client");
  writeFileSync(cheap, cheapClient(join(tools.root, "test/fixtures/clients/claude-text.jsonl")), { mode: 0o755 });
  await startOne(place, "cheap", { bin: cheap, slots: 12, modelUrl }, tools);
  if (!existsSync(claude)) {
    tools.progress("the real claude is not installed (`npm test` installs it): all runs use the script");
    return ["cheap"];
  }
  await startOne(place, "real", { bin: claude, slots: 4, modelUrl }, tools);
  return ["cheap", "real"];
}

/** A script in place of claude: does what its prompt says and leaves files behind. */
function cheapClient(said: string): string {
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

async function startOne(place: Place, kind: Kind, { bin, slots, modelUrl }: Client, { host }: Tools): Promise<void> {
  const home = join(place.directory, `home-${kind}`);
  mkdirSync(home);
  const profile = join(place.directory, "profiles", `${kind}.json`);
  const config = { bin, allow_full_auto: true };
  writeFileSync(
    profile,
    JSON.stringify({ type: "claude", config, home: "session", tags: [kind], require_matching_tags: true }),
  );
  const options = {
    profile,
    url: place.url,
    token: place.token,
    stateDirectory: stateOf(place, kind),
    name: kind,
    slots,
    times: { sweepMs: 500 },
  };
  const child = place.processes.start([process.execPath, host, "runner", JSON.stringify(options)], {
    cwd: place.directory,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      DROVER_TRUST: place.directory,
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: "sk-ant-scripted",
      CLAUDE_CODE_MAX_RETRIES: "1",
    },
  });
  await child.says(/^serving$/m, 60_000);
  await place.client.agents.put(kind, {
    type: "autonomous",
    executor: "claude",
    permissions: { mode: "bypassPermissions" },
    demands: { executor_type: "claude", tags: [kind] },
  });
}

const stateOf = (place: Place, kind: Kind): string => join(place.directory, "runners", kind);

interface Ended {
  run_id: string;
  session_id: string;
  kind: Kind;
  status: string;
  fault: string | null;
  /** Processes still alive when the run was reported as ended. */
  alive: number;
}

async function runOne({ client }: Place, kind: Kind, stopIt: boolean): Promise<Ended> {
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
  const due = stopIt ? "cancelled" : "completed";
  return {
    run_id,
    session_id: run?.session_id ?? "",
    kind,
    status,
    fault: status === due ? null : `${kind} ${run_id} is ${status} (${run?.reason}: ${run?.error}), ${due} was due`,
    alive: processesOf(run_id).length,
  };
}

async function judge(place: Place, ended: readonly Ended[]): Promise<Finding> {
  const states = (["cheap", "real"] as const).map((kind) => stateOf(place, kind));
  const temporary = states.flatMap((state) => filesBelow(tmpDirectory(runsDirectory(state))));
  const directoriesBefore = countDirectories(states);
  for (const { session_id } of ended) await place.client.sessions.remove(session_id);
  await waitFor(async () => (countDirectories(states) === 0 ? true : null), 60_000, 200);
  const directories = countDirectories(states);
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
