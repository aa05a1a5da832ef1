import { useSyncExternalStore } from "react";
import { describeError } from "../data/client.ts";
import { Icon } from "./icon.tsx";
import styles from "./toasts.module.css";

interface Toast {
  id: number;
  tone: "ok" | "bad";
  text: string;
  detail: string | null;
}

let toasts: readonly Toast[] = [];
let lastId = 0;
const watchers = new Set<() => void>();

export function toast(text: string, detail: string | null = null): void {
  add({ tone: "ok", text, detail });
}

export function toastError(error: unknown): void {
  const { message, next, code } = describeError(error);
  add({ tone: "bad", text: message, detail: [next, code].filter(Boolean).join(" · ") || null });
}

function add(content: Omit<Toast, "id">): void {
  const id = ++lastId;
  set([...toasts.slice(-3), { ...content, id }]);
  setTimeout(() => close(id), content.tone === "bad" ? 12_000 : 5000);
}

function close(id: number): void {
  set(toasts.filter((candidate) => candidate.id !== id));
}

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

export function Toasts() {
  const visible = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => toasts,
  );
  return (
    <div className={styles["toasts"]} role="status" aria-live="polite">
      {visible.map(({ id, tone, text, detail }) => (
        <div key={id} className={`${styles["toast"]} ${styles[tone]}`}>
          <Icon name={tone === "ok" ? "ok" : "warn"} />
          <div className={styles["text"]}>
            <div>{text}</div>
            {detail === null ? null : <div className="faint">{detail}</div>}
          </div>
          <button type="button" aria-label="Dismiss" onClick={() => close(id)}>
            <Icon name="close" small />
          </button>
        </div>
      ))}
    </div>
  );
}
