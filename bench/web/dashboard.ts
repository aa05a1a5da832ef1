import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Browser } from "../../test/browser/playwright.ts";
import { createLocalIds } from "../../src/local.ts";
import { openStore } from "../../src/record/open.ts";
import { type ApiClient, createClient } from "../../src/wire/client.ts";
import { owned, ownedDirectory, stopChild } from "../dispatch/children.ts";
import { waitUntil } from "../dispatch/drover.ts";
import { createNoopRun } from "../dispatch/noop-run.ts";

export interface Dashboard {
  url: string;
  client: ApiClient;
  stop(): Promise<void>;
}

/** Starts `drover up` with `runs` runs on record, and agents that print lines, print the time, and stream text. */
export async function startDashboard(root: string, runs: number, lines: number): Promise<Dashboard> {
  const directory = ownedDirectory(mkdtempSync(join(tmpdir(), "drover-bench-web-")));
  const state = join(directory, "state");
  await fill(recordDirectory(state), runs);
  const write = (file: string, value: object): void => writeFileSync(join(directory, file), JSON.stringify(value));
  for (const folder of ["profiles", "agents"]) mkdirSync(join(directory, folder));
  const sources = join(root, "bench", "web");
  write("profiles/commands.json", { type: "procedural", agents_dir: "./agents" });
  write("profiles/talker.json", {
    type: "talker",
    module: join(sources, "talker-executor.mjs"),
    agents_dir: "./talkers",
  });
  const line = 'print "line " i " of a log that is as long as the logs of builds are"';
  write("agents/lines.json", {
    name: "lines",
    type: "procedural",
    command: `awk 'BEGIN { for (i = 1; i <= ${lines}; i++) ${line} }'`,
  });
  write("agents/ticks.json", { name: "ticks", type: "procedural", command: `node ${join(sources, "ticks.mjs")}` });
  mkdirSync(join(directory, "talkers"));
  write("talkers/talker.json", { name: "talker", type: "autonomous", executor: "talker" });
  const up = owned(
    spawn(process.execPath, [join(root, "bin", "drover.js"), "up", "--port", "0", "--quiet"], {
      cwd: directory,
      env: { ...process.env, HOME: directory, DROVER_TRUST: directory, DROVER_STATE_DIR: state },
      stdio: ["ignore", "ignore", "inherit"],
    }),
  );
  const announcement = announcementFile(recordDirectory(state));
  await waitUntil("Drover", () => existsSync(announcement));
  const { url } = JSON.parse(readFileSync(announcement, "utf8")) as { url: string };
  const client = createClient({ url, token: readFileSync(tokenFile(recordDirectory(state), "token"), "utf8").trim() });
  await waitUntil("the agents", async () => {
    const { items } = await client.agents.list();
    return ["lines", "ticks", "talker"].every((name) => items.some((agent) => agent.name === name));
  });
  return { url, client, stop: () => stopChild(up) };
}

/** The runs need an executor that no runner has, so they stay pending. */
async function fill(directory: string, runs: number): Promise<void> {
  const newId = createLocalIds();
  const store = await openStore({ directory, now: () => new Date(), createIfMissing: true });
  for (let stored = 0; stored < runs; stored += 1000)
    await store.apply(Array.from({ length: Math.min(1000, runs - stored) }, () => createNoopRun(newId, "some")));
  await store.close();
}

/** Starts Chromium like the tests do, and installs its packages if they are missing. */
export async function launchChromium(root: string): Promise<Browser> {
  const directory = join(root, "test", "browser");
  const { ensureBrowser, findChromium } = (await import(
    pathToFileURL(join(directory, "find-chromium.mjs")).href
  )) as typeof import("../../test/browser/find-chromium.mjs");
  ensureBrowser();
  const { chromium } = createRequire(join(directory, "package.json"))("playwright-core") as {
    chromium: { launch(options: object): Promise<Browser> };
  };
  const { executablePath, env } = findChromium();
  const args = ["--no-sandbox", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath, args, env: { ...process.env, ...env } });
}
