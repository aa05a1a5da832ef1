import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { type PreparedClient, prepareClient } from "../test/clients/clients.ts";
import { startModelServer } from "../test/model-server/server.ts";
import { owned, stopChild } from "./dispatch/children.ts";
import { startCoordinator, waitUntil } from "./dispatch/drover.ts";
import {
  formatAdded,
  computeDifference,
  interleave,
  formatMs,
  printTable,
  computeRatio,
  formatTimes,
} from "./rounds.ts";

const [, , benchDirectory = ""] = process.argv;
const root = dirname(benchDirectory);
const prompt = "create file hello.txt with hi";
const rounds = 5;
const perRound = 4;

/** Arguments for the bare clients, in the mode that Drover uses. */
const bareWords = {
  claude: ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"],
  codex: ["exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "-"],
} as const;
type Name = keyof typeof bareWords;
const names = ["claude", "codex"] as const satisfies readonly Name[];

/** One turn with a tool that writes a file, with the bare client and through Drover from submit to finished. */
async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "drover-bench-"));
  const tool = { name: "write_file", input: { path: "hello.txt", content: "hi" } };
  const model = await startModelServer([{ when: prompt, turns: [{ tool }, { text: "Done." }] }]);
  try {
    const loads = loadavg().map((load) => load.toFixed(1));
    process.stdout.write(
      `Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load ${loads.join(" ")}\n`,
    );
    for (const name of names) await measure(name, directory, model.url);
  } finally {
    await model.stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
  process.exit(0);
}

async function measure(name: Name, directory: string, url: string): Promise<void> {
  const home = join(directory, `home-${name}`);
  mkdirSync(home);
  const prepared = prepareClient(name, { home, url, directory: join(root, "test", "clients") });
  const drover = await startDrover(name, directory, prepared);
  const bareName = `bare ${name}`;
  const droverName = `${name} by Drover, submit to finished`;
  const variants = [
    { name: bareName, once: () => runBare(name, prepared) },
    {
      name: droverName,
      async once() {
        const run = await drover.client.submit({ agent_name: name, parameters: {}, prompt });
        for await (const { event } of drover.client.runs.follow(run.run_id))
          if (event.type === "result" && event.status !== "completed")
            throw new Error(`${event.reason}: ${event.error}`);
      },
    },
  ];
  try {
    const durations = await interleave(variants, rounds, perRound);
    const formatMedian = (variant: string): string =>
      formatMs(durations.get(variant)!.toSorted((a, b) => a - b)[rounds >> 1]!);
    printTable(
      `${name}: one turn with a tool, audited, PID namespace`,
      ["what", "median", "against the bare client", "more", "goal"],
      [
        [bareName, formatMedian(bareName), "1x", "", ""],
        [
          droverName,
          formatMedian(droverName),
          formatTimes(computeRatio(durations, droverName, bareName)),
          formatAdded(computeDifference(durations, droverName, bareName)),
          "<= 1.15x",
        ],
      ],
    );
  } finally {
    await drover.stop();
  }
}

function runBare(name: Name, { bin, env }: PreparedClient): Promise<void> {
  const workDirectory = mkdtempSync(join(tmpdir(), "drover-bench-bare-"));
  const [cwd, tmp] = [join(workDirectory, "work"), join(workDirectory, "tmp")];
  for (const directory of [cwd, tmp]) mkdirSync(directory);
  const child = spawn(bin, bareWords[name], { cwd, env: { PATH: process.env["PATH"] ?? "", TMPDIR: tmp, ...env } });
  child.stdin.on("error", () => undefined).end(prompt);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output = (output + chunk.toString("utf8")).slice(-2000)));
  child.stderr.resume();
  return new Promise((done, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      const wrote = existsSync(join(cwd, "hello.txt"));
      rmSync(workDirectory, { recursive: true, force: true });
      if (code === 0 && wrote) done();
      else reject(new Error(`${name} ended with ${code} and wrote ${wrote ? "the file" : "no file"}: ${output}`));
    });
  });
}

async function startDrover(name: Name, directory: string, { bin, env }: PreparedClient) {
  const bundled = join(root, "bundled");
  const profile = JSON.parse(readFileSync(join(bundled, "profiles", `${name}.json`), "utf8")) as { agents_dir: string };
  const file = join(directory, "profiles", `${name}.json`);
  mkdirSync(dirname(file), { recursive: true });
  mkdirSync(join(directory, "agents"), { recursive: true });
  writeFileSync(file, JSON.stringify({ ...profile, agents_dir: resolve(bundled, profile.agents_dir) }));
  const coordinator = await startCoordinator(root, directory, `state-${name}`);
  const runner = owned(
    spawn(process.execPath, [join(root, "bin", "drover.js"), "runner", "-x", file, "--quiet"], {
      cwd: directory,
      env: {
        PATH: process.env["PATH"] ?? "",
        DROVER_TRUST: directory,
        ...env,
        [`${name.toUpperCase()}_BIN`]: bin,
        DROVER_STATE_DIR: join(directory, `state-${name}`),
        DROVER_API_URL: coordinator.url,
        DROVER_API_KEY: coordinator.token,
      },
      stdio: ["pipe", "ignore", "inherit"],
    }),
  );
  await waitUntil("the runner", async () => (await coordinator.client.runners.list()).items.length === 1);
  return {
    client: coordinator.client,
    async stop() {
      await stopChild(runner);
      await coordinator.stop();
    },
  };
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
