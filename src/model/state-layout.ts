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

export const databaseFile = (recordPath: string): string => join(recordPath, "drover.db");
export const auditKeyFile = (recordPath: string): string => join(recordPath, "audit.key");
export const auditHeadFile = (recordPath: string): string => join(recordPath, "audit.head");
export const placeIdFile = (recordPath: string): string => join(recordPath, "place");
export const announcementFile = (recordPath: string): string => join(recordPath, "coordinator.json");
/** Contains the directory of the coordinator's socket if the record's path is too long for a socket. */
export const socketDirectoryFile = (recordPath: string): string => join(recordPath, "socket-folder");
export const coordinatorLockFile = (recordPath: string): string => join(recordPath, "coordinator.lock");
/** `fleet-token` is for a record in PostgreSQL. The directory may also hold a local record with its own token. */
export const tokenFile = (recordPath: string, name: TokenFileName): string => join(recordPath, name);
export const runnerTokenFile = (recordPath: string): string => join(recordPath, "runner-token");
export const retentionStampFile = (recordPath: string): string => join(recordPath, "retention.stamp");
export const chatHistoryFile = (recordPath: string): string => join(recordPath, "chat-history");
export const logsDirectory = (recordPath: string): string => join(recordPath, "logs");
export const blobsDirectory = (recordPath: string): string => join(recordPath, "files");
export const locksDirectory = (recordPath: string): string => join(recordPath, "locks");
/** Agent definitions that changed while Drover was running, named by their hashes: held, and accepted. */
export const heldAgentsDirectory = (recordPath: string): string => join(recordPath, "held-agents");
export const acceptedAgentsDirectory = (recordPath: string): string => join(recordPath, "accepted-agents");
export const runnersDirectory = (recordPath: string): string => join(recordPath, "runners");
export const runnerRecordDirectory = (recordPath: string, runner: string): string =>
  join(runnersDirectory(recordPath), runner);

export const workDirectory = (runsPath: string): string => join(runsPath, "work");
export const homesDirectory = (runsPath: string): string => join(runsPath, "homes");
export const tmpDirectory = (runsPath: string): string => join(runsPath, "tmp");
/**
 * How commands inside runs reach Drover. Each command sees only two directories in here: one with the log of its attempt,
 * and one with the socket of the Drover process that started it. Names are short because socket paths are limited in
 * length.
 */
export const nestedDirectory = (runsPath: string): string => join(runsPath, "nested");
/** Whether the path is a command's own directory in the nested directory of some state directory. */
export const isNestedDirectory = (path: string): boolean =>
  path === join(nestedDirectory(runsDirectory(dirname(dirname(dirname(path))))), basename(path));
export const nestedLogFile = (runsPath: string, run_id: string, attempt: number): string =>
  join(nestedDirectory(runsPath), `${run_id.slice(-12)}.${attempt}`, `${run_id}.${attempt}`);
export const nestedSocketName = "s";
export const nestedSocketFile = (runsPath: string, name: string): string =>
  join(nestedDirectory(runsPath), name, nestedSocketName);

/** Directories hidden from commands, except for their own directories in `runs/nested`. */
export const listHiddenDirectories = (stateDirectory: string): string[] => [
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
