import { cloneElement, lazy, type ReactElement, Suspense, useState } from "react";
import type { IconName } from "./icon.tsx";

const OpenMenu = lazy(async () => ({ default: (await import("./open-menu.tsx")).OpenMenu }));

export interface MenuEntry {
  text: string;
  icon?: IconName;
  /** One of several that can be on at once; the menu stays open. */
  checked?: boolean;
  onSelect: () => void;
}

interface Trigger {
  onClick?: (event: { detail: number }) => void;
  onKeyDown?: (event: { key: string; preventDefault(): void }) => void;
  "aria-haspopup"?: "menu";
  "aria-expanded"?: boolean;
}

/** What opens it is there at once; what it opens is loaded when somebody opens the first one. */
export function Menu({ trigger, entries }: { trigger: ReactElement<Trigger>; entries: readonly MenuEntry[] }) {
  const [used, setUsed] = useState<"by pointer" | "by keyboard" | null>(null);
  const closed = cloneElement(trigger, {
    // a click that Enter or Space made counts no clicks
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
