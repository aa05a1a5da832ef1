import { agents } from "./agents.ts";
import { backups } from "./backups.ts";
import { migration } from "./migration.ts";
import { questions } from "./questions.ts";
import { schedules } from "./schedules.ts";
import { reliabilitySizes } from "./reliability-sizes.ts";
import { securitySizes } from "./security-sizes.ts";
import { bothEngines, scaleSize, onlyPostgres, onlySqlite, type Torture } from "./torture.ts";

export const tortures: readonly Torture[] = [
  ...reliabilitySizes,
  ...securitySizes,
  {
    name: "questions",
    promise: "coordinators and runners killed: no question lost, none answered twice, no command without its approval",
    engines: bothEngines,
    run: (scale, tools) => questions({ runs: scaleSize(20, scale), questions: 10, kills: scaleSize(40, scale) }, tools),
  },
  {
    name: "schedules",
    promise:
      "200 schedules each minute at 60 times the speed, coordinators killed: every slot one line, at most one run",
    engines: bothEngines,
    run: (scale, tools) =>
      schedules(
        { schedules: Math.max(10, scaleSize(200, scale)), seconds: Math.max(10, scaleSize(600, scale)) },
        tools,
      ),
  },
  {
    name: "agents",
    promise:
      "runs of agents, a third of them stopped: no process, no file and, without their sessions, no directory left",
    engines: onlySqlite,
    run: (scale, tools) => agents({ runs: scaleSize(200, scale), atOnce: 14 }, tools),
  },
  {
    name: "migration",
    promise: "a record moved to PostgreSQL: every run, event, session and file as it was, the chain intact",
    engines: onlyPostgres,
    run: (scale, tools) => migration({ runs: scaleSize(100_000, scale) }, tools),
  },
  {
    name: "backups",
    promise: "backups while 10 runs/s go on, restored elsewhere: complete",
    engines: bothEngines,
    run: (scale, tools) => backups({ seconds: Math.max(4, scaleSize(120, scale)), perSecond: 10, backups: 6 }, tools),
  },
];
