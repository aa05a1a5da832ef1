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

/** Loaded on first use. */
const ShortcutHelp = lazy(async () => ({ default: (await import("./shortcut-help.tsx")).ShortcutHelp }));
const Palette = lazy(async () => ({ default: (await import("./palette.tsx")).Palette }));

export function Shell() {
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [menu, setMenu] = useState(false);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useEffect(() => setMenu(false), [path]);
  useShortcuts({ openPalette: () => setPalette(true), openHelp: () => setHelp(true) });
  const main = useRef<HTMLElement>(null);
  return (
    <div className={styles["shell"]} data-menu={menu || undefined}>
      <a className={styles["skip"]} href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to content
      </a>
      <nav className={styles["nav"]} aria-label="Pages">
        <Link to="/" className={styles["brand"]}>
          <Brand /> Drover
        </Link>
        {pages.map(({ to, icon, word }) => (
          <Link
            key={to}
            to={to}
            className={styles["link"]}
            activeOptions={{ exact: to === "/" }}
            activeProps={{ "aria-current": "page" }}
          >
            <Icon name={icon} />
            {word}
            {to === "/inbox" ? <InboxCount /> : null}
          </Link>
        ))}
        <Fleet />
      </nav>
      {menu ? <div className={styles["scrim"]} onClick={() => setMenu(false)} /> : null}
      <div className={styles["side"]}>
        <header className={styles["bar"]}>
          <span className={styles["menu"]}>
            <IconButton icon="menu" label="Menu" aria-expanded={menu} onClick={() => setMenu(!menu)} />
          </span>
          <Crumbs path={path} />
          <button
            type="button"
            aria-label="Search or jump to"
            className={styles["search"]}
            onClick={() => setPalette(true)}
          >
            <Icon name="search" />
            <span>Search or jump to</span>
            <kbd>{isMac ? "⌘ K" : "Ctrl K"}</kbd>
          </button>
          <Live />
        </header>
        <main id="main" ref={main} tabIndex={-1} className={styles["main"]}>
          <Outlet />
        </main>
      </div>
      <Suspense>{palette ? <Palette open onOpenChange={setPalette} /> : null}</Suspense>
      <Suspense>{help ? <ShortcutHelp open onOpenChange={setHelp} /> : null}</Suspense>
    </div>
  );
}

const isMac = /Mac|iP(?:hone|ad)/.test(navigator.platform);

function Crumbs({ path }: { path: string }) {
  const [, first = ""] = path.replace(/^\/ui/, "").split("/");
  const page = pages.find(({ to }) => to === `/${first}`) ?? pages[0]!;
  return (
    <span className={`dim ${styles["crumbs"]}`}>
      <Link to={page.to}>{page.word}</Link>
    </span>
  );
}

const words: Record<Connection, string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  signed_out: "Signed out",
};

function Live() {
  const connection = useConnection();
  return (
    <span className={styles["live"]} data-connection={connection} role="status">
      <i aria-hidden="true" />
      {words[connection]}
    </span>
  );
}
