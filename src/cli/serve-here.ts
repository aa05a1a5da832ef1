import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Coordinator, startCoordinator } from "../coordinator.ts";
import { findDatabase } from "../define/database.ts";
import { findPackageFolder } from "../define/package-folder.ts";
import type { Local } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import { replaceTokenFile, type TokenFile } from "../serve/token-file.ts";
import { type Beacon, beaconFile, readBeacon } from "./connect.ts";
import { write } from "./io.ts";
import { type CommandInput, type OptionSpec, text, usage } from "./options.ts";

export const serveOptions: Record<string, OptionSpec> = {
  port: { value: "N", about: "where to listen (default 8765; 0 for any free port)" },
  host: { value: "H", about: "which address (default 127.0.0.1; others need auth)" },
  "public-url": { value: "URL", repeat: true, about: "an address it is reached by, beside loopback" },
  agents: { value: "DIR", about: "a folder of agent files (default ./agents where there is one)" },
};

/** Longer than a database takes that is started together with us. */
const databaseWaitMs = 30_000;

/** A coordinator over this place's state directory, with a beacon that tells the command line where it is. */
export async function serveHere(
  input: CommandInput,
  local: Local,
  listen: { host: string; port: number },
): Promise<Coordinator & { tokenFile: string }> {
  const { stateDirectory } = local.places;
  const { audit } = local.config.execution;
  const database = findDatabase(input.env);
  const publicUrls = input.options["public-url"];
  const coordinator = await startCoordinator({
    stateDirectory,
    database,
    databaseWaitMs,
    onDatabaseAway: ({ message }) =>
      write(2, `drover: ${message} Waiting for it, ${databaseWaitMs / 1000} s at most.\n`),
    ...listen,
    agentsDirectory: agentsFolder(input, local),
    authEnabled: input.env["AUTH_ENABLED"] !== "false",
    ...(Array.isArray(publicUrls) ? { publicUrls } : {}),
    runRetentionDays: audit.retention_days,
    auditRetentionDays: audit.retention_days,
    tokenRetentionDays: audit.retention_days,
    maxFileBytes: local.config.files.max_file_mb * 1024 * 1024,
    onDefect: (error, where) =>
      write(2, `drover: ${where}: ${error instanceof Error ? error.message : String(error)}\n`),
    onAgentFaults: (faults) => faults.forEach((fault) => write(2, `drover: ${describeFault(fault)} [${fault.code}]\n`)),
  });
  // Nothing that a fleet needs; but commands given here find their way by it.
  const token_file: TokenFile = database ? "fleet-token" : "token";
  if (database) {
    mkdirSync(stateDirectory, { recursive: true, mode: 0o700 });
    replaceTokenFile(stateDirectory, coordinator.adminToken, token_file);
  }
  const removeBeacon = leaveBeacon(stateDirectory, { url: coordinator.url, pid: process.pid, token_file });
  return {
    ...coordinator,
    tokenFile: join(stateDirectory, token_file),
    async stop() {
      removeBeacon();
      await coordinator.stop();
    },
  };
}

/** Gives what takes it away again, unless another coordinator of this directory has put its own there meanwhile. */
function leaveBeacon(stateDirectory: string, mine: Beacon): () => void {
  const file = beaconFile(stateDirectory);
  writeFileSync(`${file}.${process.pid}`, JSON.stringify(mine), { mode: 0o600 });
  renameSync(`${file}.${process.pid}`, file);
  return () => {
    const found = readBeacon(stateDirectory);
    if (found?.pid === mine.pid && found.url === mine.url) rmSync(file, { force: true });
  };
}

export function readListen({ options }: CommandInput, command: "up" | "coordinator"): { host: string; port: number } {
  const given = text(options, "port") ?? "8765";
  const port = Number(given);
  if (!/^\d+$/.test(given) || port > 65_535) throw usage(`--port ${given} is not a port number.`, command, "--port");
  return { host: text(options, "host") ?? "127.0.0.1", port };
}

function agentsFolder(input: CommandInput, { places }: Local): string | null {
  const given = text(input.options, "agents");
  if (given) return given;
  const beside = join(places.configFile ? dirname(places.configFile) : input.cwd, "agents");
  return existsSync(beside) && beside !== join(findPackageFolder("examples") ?? "", "agents") ? beside : null;
}
