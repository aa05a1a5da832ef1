import { auditRows } from "./audit-rows.ts";
import { testBombs } from "./bombs.ts";
import { busyCores } from "./busy-cores.ts";
import { conversationRunnersKilled } from "./conversations.ts";
import { coordinatorKilled } from "./coordinator-killed.ts";
import { databaseKilled } from "./database-killed.ts";
import { ignoredSigterm } from "./ignored-sigterm.ts";
import { drain } from "./drain.ts";
import { escapes } from "./escapes.ts";
import { fleetReaders } from "./fleet-readers.ts";
import { fleetKilled } from "./fleet-killed.ts";
import { hang } from "./hang.ts";
import { idle } from "./idle.ts";
import { ioFaults } from "./io-faults.ts";
import { manyReaders } from "./many-readers.ts";
import { manyWriters } from "./many-writers.ts";
import { databaseOutage, databaseSilence, testFrozenCoordinator, outage } from "./outage.ts";
import { race } from "./race.ts";
import { replay } from "./replay.ts";
import { runnerKilled } from "./runner-killed.ts";
import { soak } from "./soak.ts";
import { staleWriter } from "./stale-writer.ts";
import { wake } from "./wake.ts";
import { bothEngines, scaleSize, onlyPostgres, onlySqlite, type Torture } from "./torture.ts";

export const reliabilitySizes: readonly Torture[] = [
  {
    name: "R1",
    promise: "coordinator killed: no run lost, stuck, carried out twice or off the record (R1, R2, R8)",
    engines: bothEngines,
    run: (scale, tools) =>
      coordinatorKilled(
        { kills: scaleSize(100, scale), runs: scaleSize(5000, scale), runners: tools.engine === "sqlite" ? 2 : 4 },
        tools,
      ),
  },
  {
    name: "R1-runners",
    promise: "coordinators and runners killed: no run lost or stuck, no attempt carried out twice (R1 to R4)",
    engines: bothEngines,
    run: (scale, tools) => fleetKilled({ kills: scaleSize(150, scale), runs: scaleSize(5000, scale) }, tools),
  },
  {
    name: "R1-database",
    promise: "database killed: nothing acknowledged lost, nothing twice",
    engines: onlyPostgres,
    run: (scale, tools) => databaseKilled({ kills: scaleSize(20, scale), runs: scaleSize(3000, scale) }, tools),
  },
  {
    name: "R2",
    promise: "claimers race: each run is handed out once",
    engines: bothEngines,
    run: (scale, tools) => race({ claimers: 50, runs: scaleSize(10_000, scale) }, tools),
  },
  {
    name: "R3",
    promise: "stale writer: refused and on the record",
    engines: bothEngines,
    run: (scale, tools) =>
      staleWriter({ stops: scaleSize(1000, scale), lanes: Math.min(6, scaleSize(1000, scale)) }, tools),
  },
  {
    name: "R4",
    promise: "runner killed: noticed within 15 s",
    engines: bothEngines,
    run: (scale, tools) => runnerKilled({ kills: scaleSize(200, scale), atOnce: 16 }, tools),
  },
  {
    name: "R4-model",
    promise: "runners of conversations killed: continued elsewhere, no effect and no recorded answer twice",
    engines: bothEngines,
    run: (scale, tools) => conversationRunnersKilled({ runs: scaleSize(50, scale), atOnce: 6 }, tools),
  },
  {
    name: "R5",
    promise: "all cores busy: no lease expires",
    engines: bothEngines,
    run: (scale, tools) => busyCores({ runs: 20, seconds: Math.max(5, scaleSize(600, scale)) }, tools),
  },
  {
    name: "R6",
    promise: "SIGTERM to a runner: it drains",
    engines: bothEngines,
    run: (scale, tools) => drain({ terms: scaleSize(100, scale), atOnce: 4 }, tools),
  },
  {
    name: "R7",
    promise: "coordinator away: nothing lost, no gap",
    engines: bothEngines,
    run: (scale, tools) => outage({ runs: scaleSize(100, scale), seconds: Math.max(5, scaleSize(60, scale)) }, tools),
  },
  {
    name: "R7-database",
    promise: "database away: nothing lost, no gap",
    engines: onlyPostgres,
    run: (scale, tools) =>
      databaseOutage({ runs: scaleSize(100, scale), seconds: Math.max(5, scaleSize(60, scale)) }, tools),
  },
  {
    name: "R7-silence",
    promise: "database does not answer: nothing lost, no gap",
    engines: onlyPostgres,
    run: (scale, tools) =>
      databaseSilence({ runs: scaleSize(100, scale), seconds: Math.max(5, scaleSize(60, scale)) }, tools),
  },
  {
    name: "R7-hang",
    promise: "one of two coordinators freezes: nothing lost, no gap",
    engines: onlyPostgres,
    run: (scale, tools) =>
      testFrozenCoordinator({ runs: scaleSize(100, scale), seconds: Math.max(5, scaleSize(60, scale)) }, tools),
  },
  {
    name: "R7-idle",
    promise: "one of two coordinators freezes: a runner waiting there gets work elsewhere within 30 s",
    engines: onlyPostgres,
    run: (scale, tools) => idle({ waiting: scaleSize(10, scale), times: null, withinMs: 30_000 }, tools),
  },
  {
    name: "R8",
    promise:
      "eight processes write one record, some are killed: everything that ran is recorded, and the chain is intact",
    engines: onlySqlite,
    run: (scale, tools) => manyWriters({ executions: scaleSize(10_000, scale), kills: 6 }, tools),
  },
  {
    name: "R8-row",
    promise: "one audit row is durable within 5 ms (p99)",
    engines: bothEngines,
    run: (scale, tools) => auditRows({ rows: scaleSize(4000, scale) }, tools),
  },
  {
    name: "R9",
    promise: "disk full, read-only, locked: nothing damaged, every reported error is true",
    engines: bothEngines,
    run: (scale, tools) =>
      ioFaults({ runs: Math.max(4, scaleSize(20, scale)), seconds: Math.max(8, scaleSize(30, scale)) }, tools),
  },
  {
    name: "R10",
    promise: "each request three times, shuffled: as if once",
    engines: bothEngines,
    run: (scale, tools) => replay({ runs: scaleSize(2000, scale) }, tools),
  },
  {
    name: "R11",
    promise: "many runs: no growth of memory, descriptors, processes, cgroups, folders or connections",
    engines: bothEngines,
    run: (scale, tools) => soak({ runs: scaleSize(20_000, scale) }, tools),
  },
  {
    name: "readers",
    promise: "20 readers, each cut off ten times: every line once, in order",
    engines: bothEngines,
    run: (scale, tools) => manyReaders({ lines: scaleSize(1_000_000, scale), readers: 20, cutsEach: 10 }, tools),
  },
  {
    name: "fleet-readers",
    promise:
      "events written through one coordinator, read at another while they are killed: every event once, in order",
    engines: onlyPostgres,
    run: (scale, tools) =>
      fleetReaders({ bursts: scaleSize(1200, scale), readers: 10, kills: Math.max(2, scaleSize(40, scale)) }, tools),
  },
  {
    name: "wake",
    promise: "a poll that waits at one coordinator is woken by a submit at another",
    engines: onlyPostgres,
    run: (scale, tools) => wake({ times: scaleSize(1000, scale) }, tools),
  },
  {
    name: "hang",
    promise: "a coordinator freezes in a transaction: the others wait 5 s at most, nothing is stored twice",
    engines: onlyPostgres,
    run: (scale, tools) => hang({ stops: scaleSize(20, scale) }, tools),
  },
  {
    name: "K1",
    promise: "eight escapes: no process alive at the end",
    engines: onlySqlite,
    run: (scale, tools) => escapes({ kills: scaleSize(8000, scale) }, tools),
  },
  {
    name: "K2",
    promise: "SIGTERM ignored: ends within timeout + grace + 0.5 s",
    engines: onlySqlite,
    run: (scale, tools) => ignoredSigterm({ runs: scaleSize(500, scale), atOnce: 20 }, tools),
  },
  {
    name: "K3",
    promise:
      "bombs of processes, memory, one file, disk, files, time and output: ended as over their limit, others are answered",
    engines: onlySqlite,
    run: (scale, tools) =>
      testBombs(
        { each: scaleSize(25, scale), outputMb: scaleSize(10_240, scale), files: scaleSize(1_000_000, scale) },
        tools,
      ),
  },
];
