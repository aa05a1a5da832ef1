import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";
import { type Agent, agentSchema } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { acceptedAgentsDirectory, heldAgentsDirectory, recordDirectory } from "../model/state-layout.ts";
import type { LoadedAgent, LoadedAgents } from "./load-agents.ts";
import { requireErrorCode } from "./error-code.ts";

/**
 * Decides which definitions of a watched directory may be used. Definitions present at startup count as the operator's.
 * A definition added or changed later may have been written by a run, so the gate holds it until a user accepts it.
 */
export interface AgentGate {
  /** Filters the definitions just loaded. A held definition becomes a fault, and its last accepted version stays in use. */
  admit(loaded: LoadedAgents): LoadedAgents;
  /** Changes whenever a held definition is accepted. */
  getVersion(): string;
  /** Tells `drover agents accept` that the definitions admitted last are in use. */
  confirm(): void;
}

export interface HeldAgent {
  name: string;
  file: string;
  /** Covers the directory and the whole definition, so that accepting it does not accept later edits. */
  hash: string;
}

/** The content of the file that records a held definition. `previous` is the last accepted version, if there is one. */
interface HeldFile {
  name: string;
  file: string;
  previous?: LoadedAgent;
}

/** These directories are in the record, which isolated runs cannot write to. */
const heldDirectory = (stateDirectory: string): string => heldAgentsDirectory(recordDirectory(stateDirectory));
const acceptedDirectory = (stateDirectory: string): string => acceptedAgentsDirectory(recordDirectory(stateDirectory));

/**
 * Without a state directory the gate admits the first load and holds every later change. Short-lived commands have no one
 * to accept a change.
 */
export function createAgentGate(directory: string, stateDirectory: string | null): AgentGate {
  const accepted = new Set<string>();
  const lastAccepted = new Map<string, LoadedAgent>();
  let heldHashes = new Set<string>();
  let isStart = true;
  let unconfirmed: string[] = [];

  const isAccepted = (hash: string): boolean => {
    if (accepted.has(hash)) return true;
    const wasHeld = stateDirectory !== null && existsSync(join(heldDirectory(stateDirectory), hash));
    // A restart must not accept held definitions: a process supervisor may have triggered it.
    const isAcceptedNow = isStart
      ? !wasHeld
      : stateDirectory !== null && existsSync(join(acceptedDirectory(stateDirectory), hash));
    if (isAcceptedNow) accepted.add(hash);
    if (isAcceptedNow && !isStart) unconfirmed.push(hash);
    return isAcceptedNow;
  };

  /** After a restart, the file of a held change has the version to keep using. */
  const readPrevious = (hash: string): LoadedAgent | undefined => {
    if (stateDirectory === null) return undefined;
    const previous = readHeldFile(join(heldDirectory(stateDirectory), hash))?.previous;
    if (previous !== undefined) accepted.add(hashDefinition(directory, previous));
    return previous;
  };

  return {
    admit(loaded) {
      const faults: DefinitionFault[] = [];
      const held = new Map<string, HeldFile>();
      const agents = loaded.agents.flatMap((entry): LoadedAgent[] => {
        const { name } = entry.agent;
        const hash = hashDefinition(directory, entry);
        if (isAccepted(hash)) {
          lastAccepted.set(name, entry);
          return [entry];
        }
        const lastEntry = lastAccepted.get(name) ?? readPrevious(hash);
        if (lastEntry !== undefined) lastAccepted.set(name, lastEntry);
        held.set(hash, { name, file: entry.file, ...(lastEntry && { previous: lastEntry }) });
        const fault = createHeldFault(entry, lastEntry !== undefined);
        faults.push(fault);
        return lastEntry ? [{ ...lastEntry, fault: describeFault(fault) }] : [];
      });
      for (const name of lastAccepted.keys())
        if (!loaded.agents.some(({ agent }) => agent.name === name)) lastAccepted.delete(name);
      if (stateDirectory !== null) syncHeldFiles(stateDirectory, held, heldHashes);
      heldHashes = new Set(held.keys());
      isStart = false;
      return { ...loaded, agents, faults: [...loaded.faults, ...faults] };
    },
    confirm() {
      if (stateDirectory !== null)
        for (const hash of unconfirmed) writeFileSync(confirmationFile(stateDirectory, hash), "", { mode: 0o600 });
      unconfirmed = [];
    },
    getVersion: () => (stateDirectory === null ? "" : listNames(acceptedDirectory(stateDirectory)).length.toString()),
  };
}

/** The definitions held in this state directory, sorted by name. */
export function listHeldAgents(stateDirectory: string): HeldAgent[] {
  const directory = heldDirectory(stateDirectory);
  const all = listNames(directory).flatMap((hash): HeldAgent[] => {
    const held = readHeldFile(join(directory, hash));
    return held ? [{ name: held.name, file: held.file, hash }] : [];
  });
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function acceptHeldAgent(stateDirectory: string, { hash }: HeldAgent): void {
  rmSync(confirmationFile(stateDirectory, hash), { force: true });
  mkdirSync(acceptedDirectory(stateDirectory), { recursive: true, mode: 0o700 });
  renameSync(join(heldDirectory(stateDirectory), hash), join(acceptedDirectory(stateDirectory), hash));
}

/** Whether the process that held this definition has started to use it. */
export function isInUse(stateDirectory: string, { hash }: HeldAgent): boolean {
  return existsSync(confirmationFile(stateDirectory, hash));
}

/** A hidden file, so that `getVersion` does not count it. */
function confirmationFile(stateDirectory: string, hash: string): string {
  return join(acceptedDirectory(stateDirectory), `.${hash}.used`);
}

/**
 * Whether no process of this user can change the directory or its files, so any change was made by another user. For
 * root this is only true of a read-only mount.
 */
export function isReadOnlyForUser(directory: string): boolean {
  const files = listNames(directory).map((name) => join(directory, name));
  for (let path = directory; ; path = dirname(path)) {
    files.push(path);
    if (dirname(path) === path) break;
  }
  return files.every((path) => {
    try {
      accessSync(path, constants.W_OK);
      return false;
    } catch (error) {
      // The owner of a file could make it writable again.
      return requireErrorCode(error) === "EROFS" || (requireErrorCode(error) === "EACCES" && !isOwnedByUser(path));
    }
  });
}

function isOwnedByUser(path: string): boolean {
  try {
    return statSync(path).uid === process.getuid?.();
  } catch (error) {
    requireErrorCode(error);
    return false;
  }
}

function hashDefinition(directory: string, { agent }: LoadedAgent): string {
  return createHash("sha256")
    .update(`${directory}\n${JSON.stringify(agent)}`)
    .digest("hex");
}

function createHeldFault({ agent, file, line }: LoadedAgent, isChange: boolean): DefinitionFault {
  const { name } = agent;
  return {
    code: "DROVER-AGT-010",
    file,
    line,
    path: "",
    message: isChange
      ? `the change to ${name} is held: it was made while Drover was serving, perhaps by a run; the previous definition stays in use`
      : `${name} is held: it was added while Drover was serving, perhaps by a run`,
    next: `Read the file, then accept it: drover agents accept ${name}`,
  };
}

/** Writes a file for each held definition and removes the files of those this gate no longer holds. */
function syncHeldFiles(
  stateDirectory: string,
  held: ReadonlyMap<string, HeldFile>,
  previousHashes: ReadonlySet<string>,
): void {
  const directory = heldDirectory(stateDirectory);
  for (const hash of previousHashes) if (!held.has(hash)) rmSync(join(directory, hash), { force: true });
  if (held.size === 0) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [hash, content] of held)
    if (!existsSync(join(directory, hash))) {
      writeFileSync(join(directory, `.${hash}.${process.pid}`), JSON.stringify(content), { mode: 0o600 });
      renameSync(join(directory, `.${hash}.${process.pid}`), join(directory, hash));
    }
}

const heldFileSchema = z.object({
  name: z.string(),
  file: z.string(),
  // Another version of Drover may have written it, with fields that this one does not know.
  previous: z
    .object({
      // Kept as it is, so that its hash stays the same.
      agent: z.custom<Agent>((value) => agentSchema.safeParse(value).success),
      file: z.string(),
      line: z.number().nullable(),
      source: z.string(),
    })
    .optional()
    .catch(undefined),
});

function readHeldFile(file: string): HeldFile | null {
  try {
    const { data } = heldFileSchema.safeParse(JSON.parse(readFileSync(file, "utf8")));
    if (data === undefined) return null;
    const { previous, ...held } = data;
    return { ...held, ...(previous && { previous }) };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    requireErrorCode(error);
    return null;
  }
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => !name.startsWith("."));
  } catch (error) {
    requireErrorCode(error);
    return [];
  }
}
