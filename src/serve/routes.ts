import { contracts } from "../wire/contracts.ts";
import { apiRoutes } from "./api-routes.ts";
import type { SystemDeps } from "./deps.ts";
import type { Route } from "./route.ts";
import { followRoutes } from "./routes/events.ts";
import { mcpRoutes } from "./routes/mcp.ts";
import { receiveRoutes } from "./routes/receive.ts";
import { runnerPortRoutes } from "./routes/runners.ts";
import { signInRoutes } from "./routes/sign-in.ts";
import { systemRoutes } from "./routes/system.ts";

const namesInOrder = Object.keys(contracts);

/** Every route, in the order of the contracts. */
export const routes: readonly Route<SystemDeps>[] = [
  ...apiRoutes,
  ...runnerPortRoutes,
  ...followRoutes,
  ...receiveRoutes,
  ...signInRoutes,
  ...mcpRoutes,
  ...systemRoutes,
].toSorted((a, b) => namesInOrder.indexOf(a.name) - namesInOrder.indexOf(b.name));
