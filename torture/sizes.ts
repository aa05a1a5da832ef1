import { agents } from "./agents.ts";
import { backups } from "./backups.ts";
import { migration } from "./migration.ts";
import { questions } from "./questions.ts";
import { schedules } from "./schedules.ts";
import { reliabilitySizes } from "./reliability-sizes.ts";
import { securitySizes } from "./security-sizes.ts";
import { both, scaled, postgres, sqlite, type Torture } from "./torture.ts";

export const tortures: readonly Torture[] = [
  ...reliabilitySizes,
  ...securitySizes,
  {
    name: "questions",
    promise: "coordinators and runners killed: no question lost, none answered twice, no command without its approval",
    engines: both,
    run: (scale, tools) => questions({ runs: scaled(20, scale), questions: 10, kills: scaled(40, scale) }, tools),
  },
  {
    name: "schedules",
    promise:
      "200 schedules each minute at 60 times the speed, coordinators killed: every slot one line, at most one run",
    engines: both,
    run: (scale, tools) =>
      schedules({ schedules: Math.max(10, scaled(200, scale)), seconds: Math.max(10, scaled(600, scale)) }, tools),
  },
  {
    name: "agents",
    promise: "runs of agents, a third of them stopped: no process, no file and, without their sessions, no folder left",
    engines: sqlite,
    run: (scale, tools) => agents({ runs: scaled(200, scale), atOnce: 14 }, tools),
  },
  {
    name: "migration",
    promise: "a record moved to PostgreSQL: every run, event, session and file as it was, the chain intact",
    engines: postgres,
    run: (scale, tools) => migration({ runs: scaled(100_000, scale) }, tools),
  },
  {
    name: "backups",
    promise: "backups while 10 runs/s go on, restored elsewhere: complete",
    engines: both,
    run: (scale, tools) => backups({ seconds: Math.max(4, scaled(120, scale)), perSecond: 10, backups: 6 }, tools),
  },
];
