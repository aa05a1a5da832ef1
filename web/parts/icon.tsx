import styles from "./icon.module.css";

/** SVG paths on a 16 by 16 grid, drawn with a 1.5 stroke. */
const paths = {
  overview: "M2 13V8m4 5V3m4 10V6m4 7V9",
  inbox: "M2 9h3l1.5 2h3L11 9h3M2 9l2-6h8l2 6v4H2z",
  runs: "M4 3l9 5-9 5z",
  agents: "M8 2v2M4 4h8v5H4zM3 13c1-2 3-3 5-3s4 1 5 3",
  chat: "M2 3h12v8H7l-3 3v-3H2z",
  sessions: "M4 3v7m0 0a3 3 0 003 3h5M4 6h6a2 2 0 002-2",
  schedules: "M8 14A6 6 0 108 2a6 6 0 000 12zM8 4.500V8l2.500 1.500",
  webhooks: "M2 8h6m0 0L5.500 5.500M8 8l-2.500 2.500M11 3h3v10h-3",
  skip: "M3 4l6 4-6 4zM12 4v8",
  runners: "M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01",
  audit: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM6 8l1.5 1.5L10.5 6.5",
  settings: "M2 5h7m3 0h2M2 11h2m3 0h7M10.5 5a1.5 1.5 0 10 0-.01M5.5 11a1.5 1.5 0 10 0-.01",
  ok: "M3 8.5l3.2 3.2L13 5",
  close: "M4 4l8 8M12 4l-8 8",
  wait: "M6 4v8M10 4v8",
  run: "M8 2a6 6 0 106 6",
  park: "M5 13V3h4a3 3 0 010 6H5",
  idle: "M8 14A6 6 0 108 2a6 6 0 000 12",
  search: "M7 12A5 5 0 107 2a5 5 0 000 10zM11 11l3 3",
  copy: "M5 5V2h9v9h-3M2 5h9v9H2z",
  stop: "M4 4h8v8H4z",
  retry: "M13 8a5 5 0 11-1.5-3.5L13 6m0-3v3h-3",
  fork: "M4 2v12M4 8c5 0 8-1 8-6",
  plus: "M8 3v10M3 8h10",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  link: "M6.5 9.5l3-3M7 4.5l1-1a3.2 3.2 0 014.5 4.5l-1 1M9 11.5l-1 1a3.2 3.2 0 01-4.5-4.5l1-1",
  download: "M8 2v8m0 0l3-3m-3 3L5 7M3 13h10",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  edit: "M10.5 3l2.5 2.5L6 12.5 3 13l.5-3z",
  trash: "M3 4h10M6 4V2h4v2M4.5 4l.5 10h6l.5-10",
  menu: "M2 4h12M2 8h12M2 12h12",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  sun: "M8 11a3 3 0 100-6 3 3 0 000 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.5 9.5A6 6 0 016.5 2.5a6 6 0 107 7z",
  signOut: "M6 3H3v10h3M7 8h6m0 0l-2.5-2.5M13 8l-2.5 2.5",
  send: "M2 8l12-6-4 12-2.5-4.5z",
  tool: "M9.5 6.5L4 12a1.4 1.4 0 002 2l5.5-5.5M9.5 6.5a3 3 0 014-3.5l-2 2 1 1 2-2a3 3 0 01-3.5 4z",
  warn: "M8 2.5l6 11H2zM8 7v3M8 12h.01",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.01M6.5 6.5h.01M9 6.5h.01M11.5 6.5h.01M5 9.5h6",
  user: "M8 8a2.5 2.5 0 100-5 2.5 2.5 0 000 5zM3 13.5c.8-2.4 2.7-3.5 5-3.5s4.200 1.100 5 3.500",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, spin = false, small = false }: { name: IconName; spin?: boolean; small?: boolean }) {
  const classes = [styles["icon"], spin ? styles["spin"] : "", small ? styles["small"] : ""].join(" ");
  return (
    <svg className={classes} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

export function Brand() {
  return (
    <svg className={`${styles["icon"]} ${styles["brand"]}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d="M3 13V5a2 2 0 014 0v3a2 2 0 004 0V3M3 9h4M9 6h4" />
    </svg>
  );
}
