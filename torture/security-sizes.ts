import { stalledReaders } from "./stalled-readers.ts";
import { deepDirectories } from "./deep-directories.ts";
import { fileEscapes } from "./file-escapes.ts";
import { testForgeries } from "./forgeries.ts";
import { freshStarts } from "./fresh-starts.ts";
import { fuzz } from "./fuzz.ts";
import { greedyCallers } from "./greedy-callers.ts";
import { hostileRepositories } from "./hostile-repositories.ts";
import { impostors } from "./impostors.ts";
import { injection } from "./injection.ts";
import { largeEvents } from "./large-events.ts";
import { secrets } from "./secrets.ts";
import { slowPatterns } from "./slow-patterns.ts";
import { foreignOrigins } from "./foreign-origins.ts";
import { strangers } from "./strangers.ts";
import { uploads } from "./uploads.ts";
import { urlTricks } from "./url-tricks.ts";
import { accessRules } from "./access-rules.ts";
import { bothEngines, scaleSize, onlySqlite, type Torture } from "./torture.ts";

export const securitySizes: readonly Torture[] = [
  {
    name: "H6",
    promise: "commands leave directories that are hard to remove: their runner starts again and removes them",
    engines: onlySqlite,
    run: (scale, tools) => deepDirectories({ rounds: Math.max(2, scaleSize(10, scale)), depth: 3000 }, tools),
  },
  {
    name: "H7",
    promise: "readers that never read: no stall of 100 ms, others are answered as before",
    engines: bothEngines,
    run: (scale, tools) => stalledReaders({ lines: scaleSize(900_000, scale), readers: scaleSize(1000, scale) }, tools),
  },
  {
    name: "M1",
    promise:
      "submits with a slow pattern, half of the senders disconnected: no stall of 100 ms, others are answered as before",
    engines: bothEngines,
    run: (scale, tools) => slowPatterns({ submits: scaleSize(510, scale) }, tools),
  },
  {
    name: "S13",
    promise: "one caller repeats every costly request: no stall of 100 ms, others are answered as before",
    engines: bothEngines,
    run: (scale, tools) =>
      greedyCallers({ runs: scaleSize(5000, scale), requests: Math.max(32, scaleSize(1000, scale)) }, tools),
  },
  {
    name: "S1",
    promise: "file tools: nothing outside the workspace is read, listed or changed",
    engines: onlySqlite,
    run: (scale, tools) => fileEscapes({ vectors: scaleSize(500, scale), raceSeconds: scaleSize(60, scale) }, tools),
  },
  {
    name: "S2",
    promise: "hostile values through the database to every executor: none misread",
    engines: bothEngines,
    run: (scale, tools) => injection({ values: scaleSize(300, scale) }, tools),
  },
  {
    name: "S3",
    promise: "fuzzed requests: no 5xx, no crash, no stall of 100 ms",
    engines: bothEngines,
    run: (scale, tools) => fuzz({ requests: scaleSize(100_000, scale) }, tools),
  },
  {
    name: "S4",
    promise: "access rules hold at every coordinator, and a token ended at one is refused at the others at once",
    engines: bothEngines,
    run: (scale, tools) => accessRules({ rounds: scaleSize(400, scale) }, tools),
  },
  {
    name: "S5",
    promise: "requests from pages of other origins, on every route: refused",
    engines: onlySqlite,
    run: (scale, tools) => foreignOrigins({ variants: scaleSize(100, scale) }, tools),
  },
  {
    name: "S6",
    promise: "secrets printed in every encoding: found nowhere",
    engines: bothEngines,
    run: (scale, tools) => secrets({ canaries: 200, runs: Math.max(2, scaleSize(20, scale)) }, tools),
  },
  {
    name: "S8",
    promise: "webhooks at addresses that are not allowed, in every form: no connection",
    engines: onlySqlite,
    run: (scale, tools) => urlTricks({ rounds: scaleSize(100, scale) }, tools),
  },
  {
    name: "S9",
    promise: "hostile repositories: nothing in them runs, contacts another host or reaches the model",
    engines: onlySqlite,
    run: (scale, tools) => hostileRepositories({ share: scale }, tools),
  },
  {
    name: "S10",
    promise: "impostors: no runner, run or name taken over",
    engines: bothEngines,
    run: (scale, tools) => impostors({ tries: scaleSize(1000, scale) }, tools),
  },
  {
    name: "S11",
    promise: "hostile uploads: nothing outside, in part or changed",
    engines: bothEngines,
    run: (scale, tools) => uploads({ rounds: scaleSize(200, scale), kills: Math.max(2, scaleSize(20, scale)) }, tools),
  },
  {
    name: "S12",
    promise: "a fresh start is closed to everybody else",
    engines: bothEngines,
    run: (scale, tools) => freshStarts({ starts: scaleSize(50, scale) }, tools),
  },
  {
    name: "H1",
    promise:
      "forged executions: nobody else's record is changed, no execution is hidden, every attempt is on the record",
    engines: bothEngines,
    run: (scale, tools) => testForgeries({ tries: Math.max(11, scaleSize(2000, scale)) }, tools),
  },
  {
    name: "M2",
    promise: "the largest possible reports and registrations: memory stays flat, pages stay small, nobody waits",
    engines: bothEngines,
    run: (scale, tools) => largeEvents({ rounds: scaleSize(10, scale) }, tools),
  },
  {
    name: "H5",
    promise:
      "strangers on the port of a dead coordinator: they get no secret, no run is taken from them, runners return",
    engines: onlySqlite,
    run: (scale, tools) => strangers({ rounds: scaleSize(100, scale) }, tools),
  },
];
