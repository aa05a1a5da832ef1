import type { IconName } from "../parts/icon.tsx";

interface PageLink {
  to: string;
  icon: IconName;
  label: string;
  /** Pressed after `g` to go to this page. */
  key: string;
}

/** The pages in the order of the navigation. */
export const pages: readonly PageLink[] = [
  { to: "/", icon: "overview", label: "Overview", key: "o" },
  { to: "/inbox", icon: "inbox", label: "Inbox", key: "i" },
  { to: "/runs", icon: "runs", label: "Runs", key: "r" },
  { to: "/agents", icon: "agents", label: "Agents", key: "a" },
  { to: "/chat", icon: "chat", label: "Chat", key: "c" },
  { to: "/sessions", icon: "sessions", label: "Sessions", key: "s" },
  { to: "/schedules", icon: "schedules", label: "Schedules", key: "d" },
  { to: "/webhooks", icon: "webhooks", label: "Webhooks", key: "w" },
  { to: "/runners", icon: "runners", label: "Runners", key: "n" },
  { to: "/audit", icon: "audit", label: "Audit", key: "u" },
  { to: "/settings", icon: "settings", label: "Settings", key: "t" },
];
