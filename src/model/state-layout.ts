import { join } from "node:path";

/**
 * What lies where below a state directory. It has two halves: the record, which no command of a run may see, and the
 * folders that runs work in. Functions below take the half they are in, as the store knows nothing but the record.
 */
export const recordDirectory = (stateDirectory: string): string => join(stateDirectory, "record");
export const runsDirectory = (stateDirectory: string): string => join(stateDirectory, "runs");

/** In neither half: commands read it, and must not change it. */
export const cacheDirectory = (stateDirectory: string): string => join(stateDirectory, "cache");
/** Compiled modules of executors: the processes that load them see no record. */
export const moduleCacheDirectory = (stateDirectory: string): string => join(cacheDirectory(stateDirectory), "modules");

export type TokenFileName = "token" | "fleet-token";

export const databaseFile = (record: string): string => join(record, "drover.db");
export const auditKeyFile = (record: string): string => join(record, "audit.key");
export const auditHeadFile = (record: string): string => join(record, "audit.head");
export const placeIdFile = (record: string): string => join(record, "place");
export const announcementFile = (record: string): string => join(record, "coordinator.json");
/** Names the folder of the coordinator's socket where the record's own path is too long for one. */
export const socketDirectoryFile = (record: string): string => join(record, "socket-folder");
export const coordinatorLockFile = (record: string): string => join(record, "coordinator.lock");
/** `fleet-token`: of a record in PostgreSQL, as the directory may have a record of its own with a token of its own. */
export const tokenFile = (record: string, name: TokenFileName): string => join(record, name);
export const runnerTokenFile = (record: string): string => join(record, "runner-token");
export const retentionStampFile = (record: string): string => join(record, "retention.stamp");
export const chatHistoryFile = (record: string): string => join(record, "chat-history");
export const logsDirectory = (record: string): string => join(record, "logs");
export const blobsDirectory = (record: string): string => join(record, "files");
export const locksDirectory = (record: string): string => join(record, "locks");
/** Agent definitions that came while serving, by their hashes: held, and accepted since. */
export const heldAgentsDirectory = (record: string): string => join(record, "held-agents");
export const acceptedAgentsDirectory = (record: string): string => join(record, "accepted-agents");
export const runnersDirectory = (record: string): string => join(record, "runners");
export const runnerDirectory = (record: string, runner: string): string => join(runnersDirectory(record), runner);

export const workDirectory = (runs: string): string => join(runs, "work");
export const homesDirectory = (runs: string): string => join(runs, "homes");
export const tmpDirectory = (runs: string): string => join(runs, "tmp");
/**
 * What commands inside runs reach Drover by. It is hidden from them but for two folders: one has the log of their attempt,
 * the other the socket of the Drover that started them. The names are short, as the path of a socket has a limit.
 */
export const nestedDirectory = (runs: string): string => join(runs, "nested");
export const nestedLogFile = (runs: string, run_id: string, attempt: number): string =>
  join(nestedDirectory(runs), `${run_id.slice(-12)}.${attempt}`, `${run_id}.${attempt}`);
export const nestedSocketName = "s";
export const nestedSocketFile = (runs: string, name: string): string =>
  join(nestedDirectory(runs), name, nestedSocketName);

/** What no command sees, but for its own folders in `runs/nested`. */
export const hiddenFromCommands = (stateDirectory: string): string[] => [
  recordDirectory(stateDirectory),
  nestedDirectory(runsDirectory(stateDirectory)),
];

/**
 * Earlier versions kept everything directly in the state directory, under these names: the functions above, given the state
 * directory itself, say where. The database comes last: while it is there, the state has not been moved.
 */
export const recordNames = [
  "audit.key",
  "audit.head",
  "place",
  "token",
  "fleet-token",
  "runner-token",
  "retention.stamp",
  "chat-history",
  "logs",
  "files",
  "locks",
  "runners",
  "held-agents",
  "accepted-agents",
  "drover.db",
] as const;
export const runsNames = ["work", "homes", "tmp", "nested"] as const;

/** In a directory that a state is being moved to: from where. */
export const movingFile = (stateDirectory: string): string => join(stateDirectory, "moving.json");
