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

interface TriggerProps {
  onClick?: (event: { detail: number }) => void;
  onKeyDown?: (event: { key: string; preventDefault(): void }) => void;
  "aria-haspopup"?: "menu";
  "aria-expanded"?: boolean;
}

/** Renders only the trigger at first. The menu itself loads on first use. */
export function Menu({ trigger, entries }: { trigger: ReactElement<TriggerProps>; entries: readonly MenuEntry[] }) {
  const [openedBy, setOpenedBy] = useState<"pointer" | "keyboard" | null>(null);
  const closedTrigger = cloneElement(trigger, {
    // A click caused by Enter or Space has detail 0.
    onClick: ({ detail }) => setOpenedBy(detail === 0 ? "keyboard" : "pointer"),
    onKeyDown: (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      setOpenedBy("keyboard");
    },
    "aria-haspopup": "menu",
    "aria-expanded": false,
  });
  if (openedBy === null) return closedTrigger;
  return (
    <Suspense fallback={closedTrigger}>
      <OpenMenu trigger={trigger} entries={entries} byKeyboard={openedBy === "keyboard"} />
    </Suspense>
  );
}
