import type { IconName } from "../parts/icon.tsx";

interface PageLink {
  to: string;
  icon: IconName;
  word: string;
  /** Pressed after `g` to go to this page. */
  key: string;
}

/** In navigation order. */
export const pages: readonly PageLink[] = [
  { to: "/", icon: "overview", word: "Overview", key: "o" },
  { to: "/inbox", icon: "inbox", word: "Inbox", key: "i" },
  { to: "/runs", icon: "runs", word: "Runs", key: "r" },
  { to: "/agents", icon: "agents", word: "Agents", key: "a" },
  { to: "/chat", icon: "chat", word: "Chat", key: "c" },
  { to: "/sessions", icon: "sessions", word: "Sessions", key: "s" },
  { to: "/schedules", icon: "schedules", word: "Schedules", key: "d" },
  { to: "/webhooks", icon: "webhooks", word: "Webhooks", key: "w" },
  { to: "/runners", icon: "runners", word: "Runners", key: "n" },
  { to: "/audit", icon: "audit", word: "Audit", key: "u" },
  { to: "/settings", icon: "settings", word: "Settings", key: "t" },
];
