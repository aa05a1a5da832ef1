import { cloneElement, lazy, type ReactElement, Suspense, useState } from "react";
import type { IconName } from "./icon.tsx";

const OpenMenu = lazy(async () => ({ default: (await import("./open-menu.tsx")).OpenMenu }));

export interface MenuEntry {
  text: string;
  icon?: IconName;
  /** Makes the entry a checkbox. Toggling it leaves the menu open. */
  checked?: boolean;
  onSelect: () => void;
}

interface Trigger {
  onClick?: (event: { detail: number }) => void;
  onKeyDown?: (event: { key: string; preventDefault(): void }) => void;
  "aria-haspopup"?: "menu";
  "aria-expanded"?: boolean;
}

/** Renders only the trigger at first. The menu itself loads on first use. */
export function Menu({ trigger, entries }: { trigger: ReactElement<Trigger>; entries: readonly MenuEntry[] }) {
  const [used, setUsed] = useState<"by pointer" | "by keyboard" | null>(null);
  const closed = cloneElement(trigger, {
    // A click caused by Enter or Space has detail 0.
    onClick: ({ detail }) => setUsed(detail === 0 ? "by keyboard" : "by pointer"),
    onKeyDown: (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      setUsed("by keyboard");
    },
    "aria-haspopup": "menu",
    "aria-expanded": false,
  });
  if (used === null) return closed;
  return (
    <Suspense fallback={closed}>
      <OpenMenu trigger={trigger} entries={entries} byKeyboard={used === "by keyboard"} />
    </Suspense>
  );
}
