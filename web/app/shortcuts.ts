import { useNavigate } from "@tanstack/react-router";
import { useEffect, useEffectEvent } from "react";
import { pages } from "./pages.ts";

/** Keys that work on every page. Pages add their own with `useKeys`. */
export function useShortcuts({ openPalette, openHelp }: { openPalette: () => void; openHelp: () => void }): void {
  const navigate = useNavigate();
  const go = useEffectEvent((key: string) => {
    const page = pages.find((one) => one.key === key);
    if (page) void navigate({ to: page.to });
  });
  const palette = useEffectEvent(openPalette);
  const help = useEffectEvent(openHelp);
  useEffect(() => {
    let after = "";
    let forget: ReturnType<typeof setTimeout> | undefined;
    const press = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return palette();
      }
      if (isTyping(event)) return;
      if (event.key === "?") help();
      else if (event.key === "/") {
        event.preventDefault();
        palette();
      } else if (after === "g") go(event.key);
      after = event.key;
      // Restart the timer, or an earlier key's timeout would clear this key.
      clearTimeout(forget);
      forget = setTimeout(() => (after = ""), 1000);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Binds single keys on one page. Ignores them while the user types or a dialog is open. */
export function useKeys(keys: Record<string, () => void>): void {
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    const act = keys[event.key];
    if (act === undefined || (event.key === "Enter" && hasOwnEnter(event))) return;
    // Otherwise the letter would be typed into the field that the action opens.
    event.preventDefault();
    act();
  });
  useEffect(() => {
    let after = "";
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event) || after === "g") return void (after = "");
      after = event.key;
      pressed(event);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const at = event.target;
  if (!(at instanceof HTMLElement)) return false;
  return at.isContentEditable || at.closest("input, textarea, select, [role=dialog], [role=menu]") !== null;
}

/** Whether the focused element handles Enter itself. */
function hasOwnEnter({ target }: KeyboardEvent): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary") !== null;
}
