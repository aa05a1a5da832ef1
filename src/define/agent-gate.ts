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
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { acceptedAgentsDirectory, heldAgentsDirectory, recordDirectory } from "../model/state-layout.ts";
import type { LoadedAgent, LoadedAgents } from "./load-agents.ts";
import { errorCode } from "./error-code.ts";

/**
 * Decides which definitions of a watched folder may be used. Those that are there at the start count as the operator's;
 * one that is new or changed since then may be the work of a run, and is held until somebody accepts it.
 */
export interface AgentGate {
  /** What may be used of what the folder holds now: a held definition is a fault, and the one before it stays. */
  admit(loaded: LoadedAgents): LoadedAgents;
  /** Changes when somebody accepts something. */
  state(): string;
}

export interface HeldAgent {
  name: string;
  file: string;
  /** Of the folder and the whole definition: what is accepted is what was held, whatever the file says by then. */
  hash: string;
}

/** Beside the record, where no run can write that is kept from it. */
const heldDirectory = (stateDirectory: string): string => heldAgentsDirectory(recordDirectory(stateDirectory));
const acceptedDirectory = (stateDirectory: string): string => acceptedAgentsDirectory(recordDirectory(stateDirectory));

/** With no state directory nothing is kept, and nothing can be accepted: for a command that is over soon. */
export function createAgentGate(folder: string, stateDirectory: string | null): AgentGate {
  const accepted = new Set<string>();
  const lastAccepted = new Map<string, LoadedAgent>();
  let holding = new Set<string>();
  let isStart = true;

  const isAccepted = (hash: string): boolean => {
    if (accepted.has(hash)) return true;
    const wasHeld = stateDirectory !== null && existsSync(join(heldDirectory(stateDirectory), hash));
    // a restart, perhaps by a supervisor, is nobody's consent
    const isNow = isStart
      ? !wasHeld
      : stateDirectory !== null && existsSync(join(acceptedDirectory(stateDirectory), hash));
    if (isNow) accepted.add(hash);
    return isNow;
  };

  return {
    admit(loaded) {
      const faults: DefinitionFault[] = [];
      const held = new Map<string, HeldAgent>();
      const agents = loaded.agents.flatMap((each): LoadedAgent[] => {
        const { name } = each.agent;
        const hash = hashOf(folder, each);
        if (isAccepted(hash)) {
          lastAccepted.set(name, each);
          return [each];
        }
        held.set(hash, { name, file: each.file, hash });
        const last = lastAccepted.get(name);
        const fault = heldFault(each, last !== undefined);
        faults.push(fault);
        return last ? [{ ...last, fault: describeFault(fault) }] : [];
      });
      for (const name of lastAccepted.keys())
        if (!loaded.agents.some(({ agent }) => agent.name === name)) lastAccepted.delete(name);
      if (stateDirectory !== null) keepHeld(stateDirectory, held, holding);
      holding = new Set(held.keys());
      isStart = false;
      return { ...loaded, agents, faults: [...loaded.faults, ...faults] };
    },
    state: () => (stateDirectory === null ? "" : namesIn(acceptedDirectory(stateDirectory)).length.toString()),
  };
}

/** What is held in this place, by name. */
export function listHeld(stateDirectory: string): HeldAgent[] {
  const directory = heldDirectory(stateDirectory);
  const all = namesIn(directory).flatMap((hash): HeldAgent[] => {
    const held = parseHeld(join(directory, hash));
    return held ? [{ ...held, hash }] : [];
  });
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function acceptHeld(stateDirectory: string, { hash }: HeldAgent): void {
  mkdirSync(acceptedDirectory(stateDirectory), { recursive: true, mode: 0o700 });
  renameSync(join(heldDirectory(stateDirectory), hash), join(acceptedDirectory(stateDirectory), hash));
}

/**
 * Is the folder out of reach for what this user runs? Then only somebody else can have changed it. For root nothing is,
 * but what is mounted read-only.
 */
export function isReadOnlyForUser(folder: string): boolean {
  const files = namesIn(folder).map((name) => join(folder, name));
  for (let path = folder; ; path = dirname(path)) {
    files.push(path);
    if (dirname(path) === path) break;
  }
  return files.every((path) => {
    try {
      accessSync(path, constants.W_OK);
      return false;
    } catch (error) {
      // its owner can make it writable
      return errorCode(error) === "EROFS" || (errorCode(error) === "EACCES" && !isOwn(path));
    }
  });
}

function isOwn(path: string): boolean {
  try {
    return statSync(path).uid === process.getuid?.();
  } catch (error) {
    errorCode(error);
    return false;
  }
}

function hashOf(folder: string, { agent }: LoadedAgent): string {
  return createHash("sha256")
    .update(`${folder}\n${JSON.stringify(agent)}`)
    .digest("hex");
}

function heldFault({ agent, file, line }: LoadedAgent, isChange: boolean): DefinitionFault {
  const { name } = agent;
  return {
    code: "DROVER-AGT-010",
    file,
    line,
    path: "",
    message: isChange
      ? `the change of ${name} is held: it was made while Drover serves, perhaps by a run; the definition before it stays`
      : `${name} is held: it came while Drover serves, perhaps from a run`,
    next: `Read the file, then accept it: drover agents accept ${name}`,
  };
}

/** Writes what is held now, and removes what this gate held before and does no longer. */
function keepHeld(stateDirectory: string, held: ReadonlyMap<string, HeldAgent>, before: ReadonlySet<string>): void {
  const directory = heldDirectory(stateDirectory);
  for (const hash of before) if (!held.has(hash)) rmSync(join(directory, hash), { force: true });
  if (held.size === 0) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [hash, { name, file }] of held)
    if (!existsSync(join(directory, hash))) {
      writeFileSync(join(directory, `.${hash}.${process.pid}`), JSON.stringify({ name, file }), { mode: 0o600 });
      renameSync(join(directory, `.${hash}.${process.pid}`), join(directory, hash));
    }
}

function parseHeld(file: string): Pick<HeldAgent, "name" | "file"> | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value !== "object" || value === null || !("name" in value) || !("file" in value)) return null;
    return typeof value.name === "string" && typeof value.file === "string"
      ? { name: value.name, file: value.file }
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    errorCode(error);
    return null;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => !name.startsWith("."));
  } catch (error) {
    errorCode(error);
    return [];
  }
}
