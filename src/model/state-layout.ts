import { basename, dirname, join } from "node:path";

/**
 * The layout of a state directory. It has two parts: the record, which commands inside runs must not see, and the
 * directories that runs work in. The functions below take the part that contains the path, because the store knows only
 * the record.
 */
export const recordDirectory = (stateDirectory: string): string => join(stateDirectory, "record");
export const runsDirectory = (stateDirectory: string): string => join(stateDirectory, "runs");

/** In neither part: commands may read it but not change it. */
export const cacheDirectory = (stateDirectory: string): string => join(stateDirectory, "cache");
/** Compiled executor modules. They are outside the record because the processes that load them cannot see it. */
export const moduleCacheDirectory = (stateDirectory: string): string => join(cacheDirectory(stateDirectory), "modules");

export type TokenFileName = "token" | "fleet-token";

export const databaseFile = (record: string): string => join(record, "drover.db");
export const auditKeyFile = (record: string): string => join(record, "audit.key");
export const auditHeadFile = (record: string): string => join(record, "audit.head");
export const placeIdFile = (record: string): string => join(record, "place");
export const announcementFile = (record: string): string => join(record, "coordinator.json");
/** Contains the directory of the coordinator's socket if the record's path is too long for a socket. */
export const socketDirectoryFile = (record: string): string => join(record, "socket-folder");
export const coordinatorLockFile = (record: string): string => join(record, "coordinator.lock");
/** `fleet-token` is for a record in PostgreSQL. The directory may also hold a local record with its own token. */
export const tokenFile = (record: string, name: TokenFileName): string => join(record, name);
export const runnerTokenFile = (record: string): string => join(record, "runner-token");
export const retentionStampFile = (record: string): string => join(record, "retention.stamp");
export const chatHistoryFile = (record: string): string => join(record, "chat-history");
export const logsDirectory = (record: string): string => join(record, "logs");
export const blobsDirectory = (record: string): string => join(record, "files");
export const locksDirectory = (record: string): string => join(record, "locks");
/** Agent definitions that changed while Drover was running, named by their hashes: held, and accepted. */
export const heldAgentsDirectory = (record: string): string => join(record, "held-agents");
export const acceptedAgentsDirectory = (record: string): string => join(record, "accepted-agents");
export const runnersDirectory = (record: string): string => join(record, "runners");
export const runnerDirectory = (record: string, runner: string): string => join(runnersDirectory(record), runner);

export const workDirectory = (runs: string): string => join(runs, "work");
export const homesDirectory = (runs: string): string => join(runs, "homes");
export const tmpDirectory = (runs: string): string => join(runs, "tmp");
/**
 * How commands inside runs reach Drover. Each command sees only two directories in here: one with the log of its attempt,
 * and one with the socket of the Drover that started it. Names are short because socket paths are limited in length.
 */
export const nestedDirectory = (runs: string): string => join(runs, "nested");
/** Whether the path is a command's own directory in the nested directory of some state directory. */
export const isNestedDirectory = (path: string): boolean =>
  path === join(nestedDirectory(runsDirectory(dirname(dirname(dirname(path))))), basename(path));
export const nestedLogFile = (runs: string, run_id: string, attempt: number): string =>
  join(nestedDirectory(runs), `${run_id.slice(-12)}.${attempt}`, `${run_id}.${attempt}`);
export const nestedSocketName = "s";
export const nestedSocketFile = (runs: string, name: string): string =>
  join(nestedDirectory(runs), name, nestedSocketName);

/** Directories hidden from commands, except for their own directories in `runs/nested`. */
export const hiddenFromCommands = (stateDirectory: string): string[] => [
  recordDirectory(stateDirectory),
  nestedDirectory(runsDirectory(stateDirectory)),
];

/**
 * The entries of the record. Earlier versions kept them directly in the state directory under the same names. The
 * database comes last when a state is moved: while it is in the old directory, the move is not finished.
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

/** Exists while a state is being moved to this directory, and contains the path of the source. */
export const movingFile = (stateDirectory: string): string => join(stateDirectory, "moving.json");
