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

/** A route whose page module loads on first visit. */
const page = <const P extends string, S extends object = object>(
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
    page("/", () => import("../pages/overview/page.tsx"), readOverviewSearch),
    page("/inbox", () => import("../pages/inbox/page.tsx")),
    page("/runs", () => import("../pages/runs/page.tsx"), readRunsSearch),
    page("/runs/$runId", () => import("../pages/run/page.tsx"), readRunSearch),
    page("/chat", () => import("../pages/chat/page.tsx"), readChatSearch),
    page("/sessions", () => import("../pages/sessions/page.tsx")),
    page("/schedules", () => import("../pages/schedules/page.tsx"), readSchedulesSearch),
    page("/schedules/new", () => import("../pages/schedule/new.tsx"), readSchedulesSearch),
    page("/schedules/$scheduleId", () => import("../pages/schedule/page.tsx")),
    page("/webhooks", () => import("../pages/webhooks/page.tsx"), readWebhooksSearch),
    page("/runners", () => import("../pages/runners/page.tsx")),
    page("/audit", () => import("../pages/audit/page.tsx")),
    page("/settings", () => import("../pages/settings/page.tsx")),
    page("/agents", () => import("../pages/agents/page.tsx")),
    page("/agents/new", () => import("../pages/agent/new.tsx")),
    page("/agents/$name", () => import("../pages/agent/page.tsx")),
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
