import type { ApiDeps } from "./deps.ts";
import type { Route } from "./route.ts";
import { agentRoutes } from "./routes/agents.ts";
import { eventRoutes } from "./routes/events.ts";
import { fileRoutes } from "./routes/files.ts";
import { questionRoutes } from "./routes/questions.ts";
import { recordRoutes } from "./routes/record.ts";
import { runnerRoutes } from "./routes/runners.ts";
import { runRoutes } from "./routes/runs.ts";
import { scheduleRoutes } from "./routes/schedules.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { tokenRoutes } from "./routes/tokens.ts";
import { triggerRoutes } from "./routes/triggers.ts";

/** The routes that also work in process, without an HTTP server. */
export const apiRoutes: readonly Route<ApiDeps>[] = [
  ...recordRoutes,
  ...runRoutes,
  ...questionRoutes,
  ...eventRoutes,
  ...fileRoutes,
  ...agentRoutes,
  ...scheduleRoutes,
  ...runnerRoutes,
  ...sessionRoutes,
  ...tokenRoutes,
  ...triggerRoutes,
];
