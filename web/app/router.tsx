import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { readChatSearch } from "../pages/chat/search.ts";
import { readOverviewSearch } from "../pages/overview/search.ts";
import { readRunSearch } from "../pages/run/search.ts";
import { readRunsSearch } from "../pages/runs/search.ts";
import { readSchedulesSearch } from "../pages/schedules/search.ts";
import { readWebhooksSearch } from "../pages/webhooks/search.ts";
import { NotFound, PageError } from "./page-error.tsx";
import { Shell } from "./shell.tsx";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

/** Creates a route whose page module loads on first visit. */
const createPageRoute = <const P extends string, S extends object = object>(
  path: P,
  load: () => Promise<{ Page: () => ReactNode }>,
  readSearch: (search: Record<string, unknown>) => S = () => ({}) as S,
) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(load, "Page"),
    validateSearch: readSearch,
  });

export const router = createRouter({
  basepath: "/ui",
  routeTree: root.addChildren([
    createPageRoute("/", () => import("../pages/overview/page.tsx"), readOverviewSearch),
    createPageRoute("/inbox", () => import("../pages/inbox/page.tsx")),
    createPageRoute("/runs", () => import("../pages/runs/page.tsx"), readRunsSearch),
    createPageRoute("/runs/$runId", () => import("../pages/run/page.tsx"), readRunSearch),
    createPageRoute("/chat", () => import("../pages/chat/page.tsx"), readChatSearch),
    createPageRoute("/sessions", () => import("../pages/sessions/page.tsx")),
    createPageRoute("/schedules", () => import("../pages/schedules/page.tsx"), readSchedulesSearch),
    createPageRoute("/schedules/new", () => import("../pages/schedule/new.tsx"), readSchedulesSearch),
    createPageRoute("/schedules/$scheduleId", () => import("../pages/schedule/page.tsx")),
    createPageRoute("/webhooks", () => import("../pages/webhooks/page.tsx"), readWebhooksSearch),
    createPageRoute("/runners", () => import("../pages/runners/page.tsx")),
    createPageRoute("/audit", () => import("../pages/audit/page.tsx")),
    createPageRoute("/settings", () => import("../pages/settings/page.tsx")),
    createPageRoute("/agents", () => import("../pages/agents/page.tsx")),
    createPageRoute("/agents/new", () => import("../pages/agent/new.tsx")),
    createPageRoute("/agents/$name", () => import("../pages/agent/page.tsx")),
  ]),
  defaultPreload: "intent",
  defaultErrorComponent: PageError,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
