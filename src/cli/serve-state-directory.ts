import { renameSync, rmSync, writeFileSync } from "node:fs";
import { type Coordinator, startCoordinator } from "../coordinator.ts";
import { readDatabaseSettings } from "../define/database-settings.ts";
import type { Project } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { RunnerPort } from "../model/runner-port.ts";
import { HostError } from "../model/errors.ts";
import { announcementFile, recordDirectory, tokenFile, type TokenFileName } from "../model/state-layout.ts";
import { lockCoordinator, type CoordinatorLock } from "../record/coordinator-lock.ts";
import { toRetentionDays } from "../record/apply-retention.ts";
import { replaceTokenFile } from "../serve/token-file.ts";
import { findDeadRunners } from "../compose/short-lived-runners.ts";
import { acceptOption, createGateFactory } from "./agents-accept.ts";
import { findAgentsDirectory } from "./agents-directory.ts";
import { type Announcement, isAlive, readAnnouncement } from "./announcement.ts";
import { chooseSocketPath } from "./coordinator-socket.ts";
import { withDroverCommand } from "./drover-command.ts";
import { write } from "./io.ts";
import { type CommandInput, readList, type OptionSpec, readText, usageError } from "./options.ts";

export const serveOptions: Record<string, OptionSpec> = {
  port: { placeholder: "N", description: "port to listen on (default: 8765; 0 for any free port)" },
  host: { placeholder: "H", description: "address to listen on (default: 127.0.0.1; others require authentication)" },
  "public-url": {
    placeholder: "URL",
    repeat: true,
    description: "a URL at which clients reach the coordinator, in addition to loopback",
  },
  agents: { placeholder: "DIR", description: "directory of agent files (default: ./agents if it exists)" },
  ...acceptOption,
};

/** How long to wait for an unreachable database. This is enough for one that is started at the same time. */
const databaseWaitMs = 30_000;

interface ServedCoordinator extends Coordinator {
  tokenFile: string;
  /** Writes the announcement. From now on every command for this state directory uses this coordinator. */
  announce(): void;
}

interface ListenAddress {
  host: string;
  port: number;
}

/**
 * Starts the coordinator of this state directory. Commands find it once it is announced. A second coordinator for the
 * same state directory is refused before it writes anything, even on another port.
 */
export async function serveStateDirectory(
  input: CommandInput,
  project: Project,
  address: ListenAddress,
): Promise<ServedCoordinator> {
  const { stateDirectory } = project.locations;
  const lock = lockCoordinator(recordDirectory(stateDirectory));
  if (lock === null) throw alreadyServed(stateDirectory);
  try {
    return await serveLocked(input, project, address, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function serveLocked(
  input: CommandInput,
  project: Project,
  address: ListenAddress,
  lock: CoordinatorLock,
): Promise<ServedCoordinator> {
  const { stateDirectory } = project.locations;
  const database = readDatabaseSettings(input.env);
  const agents = findAgentsDirectory(input, project);
  const publicUrls = [...readList(input.options, "public-url"), ...project.config.public_urls];
  const coordinator = await startCoordinator({
    stateDirectory,
    headCopy: project.locations.headCopy,
    database,
    databaseWaitMs,
    onDatabaseUnreachable: ({ message }) =>
      write(2, `drover: ${message} Waiting for it for up to ${databaseWaitMs / 1000} s.\n`),
    ...address,
    socket: chooseSocketPath(recordDirectory(stateDirectory), input.env),
    agentsDirectory: agents,
    agentGate: agents === null ? null : createGateFactory(input, project)(agents),
    authEnabled: input.env["AUTH_ENABLED"] !== "false",
    publicUrls,
    variables: input.env,
    webhookAllow: project.config.webhooks.allow,
    retention: toRetentionDays(project.config),
    maxFileBytes: project.config.files.max_file_mb * 1024 * 1024,
    onDefect: (error, where) =>
      write(2, `drover: ${where}: ${error instanceof Error ? error.message : String(error)}${describeNext(error)}\n`),
    onAgentFaults: (faults) =>
      faults.forEach((fault) =>
        write(2, `drover: ${describeFault(fault)} [${fault.code}] ${withDroverCommand(fault.next)}\n`),
      ),
  });
  // Local commands read the admin token from this file.
  const tokenFileName: TokenFileName = database ? "fleet-token" : "token";
  const record = recordDirectory(stateDirectory);
  if (database) replaceTokenFile(record, coordinator.adminToken, tokenFileName);
  // With a database, neither the record nor short-lived runners are in this directory.
  const sweepTimer = database ? null : startSweeping(input, project, coordinator.port);
  let removeAnnouncement: (() => void) | null = null;
  let stopResult: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    removeAnnouncement?.();
    clearInterval(sweepTimer ?? undefined);
    await coordinator.stop();
    lock.release();
  };
  return {
    ...coordinator,
    tokenFile: tokenFile(record, tokenFileName),
    announce() {
      if (stopResult) return;
      const { url, socket } = coordinator;
      removeAnnouncement = writeAnnouncement(stateDirectory, {
        url,
        socket,
        pid: process.pid,
        token_file: tokenFileName,
      });
    },
    stop: () => (stopResult ??= stop()),
  };
}

/** Returns the next step of an error that the operator can fix. */
function describeNext(error: unknown): string {
  return error instanceof HostError && error.next ? ` ${error.next}` : "";
}

/** How often to sweep. The run of a killed `drover run` appears to be running for at most this long. */
const sweepEveryMs = 5000;

/** Finishes the runs of killed commands, now and at regular intervals. */
function startSweeping(input: CommandInput, project: Project, port: RunnerPort): NodeJS.Timeout {
  const { stateDirectory } = project.locations;
  const onNotice = (message: string): void => write(2, `drover: ${message}\n`);
  const options = {
    port,
    stateDirectory,
    env: input.env,
    maxOutputKb: project.config.execution.max_output_kb,
    onNotice,
  };
  const sweep = async (): Promise<void> => {
    const deadRunners = findDeadRunners(stateDirectory);
    // Import this only now: a coordinator does not otherwise need the code that executes runs.
    if (deadRunners.length > 0)
      await (await import("../compose/sweep-short-lived.ts")).sweepShortLived(deadRunners, options);
  };
  const startSweep = (): void =>
    void sweep().catch((error: unknown) => onNotice(error instanceof Error ? error.message : String(error)));
  startSweep();
  return setInterval(startSweep, sweepEveryMs).unref();
}

/** Returns a function that removes the announcement. Only the holder of the coordinator lock may write or remove it. */
function writeAnnouncement(stateDirectory: string, announcement: Announcement): () => void {
  const file = announcementFile(recordDirectory(stateDirectory));
  writeFileSync(`${file}.new`, JSON.stringify(announcement), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return () => rmSync(file, { force: true });
}

function alreadyServed(stateDirectory: string): HostError {
  const announcement = readAnnouncement(stateDirectory);
  const where =
    announcement && isAlive(announcement.pid)
      ? `at ${announcement.url} (process ${announcement.pid})`
      : "(it is still starting)";
  return new HostError({
    code: "DROVER-STA-011",
    message: `A coordinator already serves ${stateDirectory} ${where}.`,
    next: "Use that coordinator: commands in this directory find it. Or stop it, or set DROVER_STATE_DIR to another directory.",
  });
}

export function readListenAddress(
  { options }: CommandInput,
  command: "up" | "coordinator",
): { host: string; port: number } {
  const value = readText(options, "port") ?? "8765";
  const port = Number(value);
  if (!/^\d+$/.test(value) || port > 65_535)
    throw usageError(`--port ${value} is not a port number.`, command, "--port");
  return { host: readText(options, "host") ?? "127.0.0.1", port };
}
