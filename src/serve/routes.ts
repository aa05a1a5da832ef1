import type { Route } from "./route.ts";
import { agentRoutes } from "./routes/agents.ts";
import { eventRoutes } from "./routes/events.ts";
import { executionRoutes } from "./routes/executions.ts";
import { fileRoutes } from "./routes/files.ts";
import { runnerRoutes } from "./routes/runners.ts";
import { runRoutes } from "./routes/runs.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { systemRoutes } from "./routes/system.ts";
import { tokenRoutes } from "./routes/tokens.ts";

/** Every route there is. Order counts where a fixed path could be taken for a parameter. */
export const routes: readonly Route[] = [
  ...runRoutes,
  ...eventRoutes,
  ...fileRoutes,
  ...agentRoutes,
  ...runnerRoutes,
  ...sessionRoutes,
  ...executionRoutes,
  ...tokenRoutes,
  ...systemRoutes,
];
