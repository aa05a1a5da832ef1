import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useConnection } from "../data/live.ts";
import type { Connection } from "../data/live-stream.ts";
import { IconButton } from "../parts/button.tsx";
import { Brand, Icon } from "../parts/icon.tsx";
import { Fleet } from "./fleet.tsx";
import { pages } from "./pages.ts";
import { useShortcuts } from "./shortcuts.ts";
import { InboxCount } from "./inbox-count.tsx";
import styles from "./shell.module.css";

// Loaded on first use.
const ShortcutHelp = lazy(async () => ({ default: (await import("./shortcut-help.tsx")).ShortcutHelp }));
const Palette = lazy(async () => ({ default: (await import("./palette.tsx")).Palette }));

export function Shell() {
  const [paletteOpen, setPaletteOpen] = useState(false);
  const [helpOpen, setHelpOpen] = useState(false);
  const [menuOpen, setMenuOpen] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => setMenuOpen(false), [path]);
  useShortcuts({ openPalette: () => setPaletteOpen(true), openHelp: () => setHelpOpen(true) });
  const main = useRef<HTMLElement>(null);
  return (
    <div className={styles["shell"]} data-menu={menuOpen || undefined}>
      <a className={styles["skip"]} href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to content
      </a>
      <nav className={styles["nav"]} aria-label="Pages">
        <Link to="/" className={styles["brand"]}>
          <Brand /> Drover
        </Link>
        {pages.map(({ to, icon, label }) => (
          <Link
            key={to}
            to={to}
            className={styles["link"]}
            activeOptions={{ exact: to === "/" }}
            activeProps={{ "aria-current": "page" }}
          >
            <Icon name={icon} />
            {label}
            {to === "/inbox" ? <InboxCount /> : null}
          </Link>
        ))}
        <Fleet />
      </nav>
      {menuOpen ? <div className={styles["scrim"]} onClick={() => setMenuOpen(false)} /> : null}
      <div className={styles["side"]}>
        <header className={styles["bar"]}>
          <span className={styles["menu"]}>
            <IconButton icon="menu" label="Menu" aria-expanded={menuOpen} onClick={() => setMenuOpen(!menuOpen)} />
          </span>
          <Crumbs path={path} />
          <button
            type="button"
            aria-label="Search or jump to"
            className={styles["search"]}
            onClick={() => setPaletteOpen(true)}
          >
            <Icon name="search" />
            <span>Search or jump to</span>
            <kbd>{isMac ? "⌘ K" : "Ctrl K"}</kbd>
          </button>
          <ConnectionState />
        </header>
        <main id="main" ref={main} tabIndex={-1} className={styles["main"]}>
          <Outlet />
        </main>
      </div>
      <Suspense>{paletteOpen ? <Palette open onOpenChange={setPaletteOpen} /> : null}</Suspense>
      <Suspense>{helpOpen ? <ShortcutHelp open onOpenChange={setHelpOpen} /> : null}</Suspense>
    </div>
  );
}

const isMac = /Mac|iP(?:hone|ad)/.test(navigator.platform);

function Crumbs({ path }: { path: string }) {
  const [, section = ""] = path.replace(/^\/ui/, "").split("/");
  const page = pages.find(({ to }) => to === `/${section}`) ?? pages[0]!;
  return (
    <span className={`dim ${styles["crumbs"]}`}>
      <Link to={page.to}>{page.label}</Link>
    </span>
  );
}

const connectionLabels: Record<Connection, string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  signed_out: "Signed out",
};

function ConnectionState() {
  const connection = useConnection();
  return (
    <span className={styles["live"]} data-connection={connection} role="status">
      <i aria-hidden="true" />
      {connectionLabels[connection]}
    </span>
  );
}
