import { useNavigate } from "@tanstack/react-router";
import { useEffect, useEffectEvent } from "react";
import { pages } from "./pages.ts";

/** Binds the keys that work on every page. A page binds more keys with `useKeys`. */
export function useShortcuts({ openPalette, openHelp }: { openPalette: () => void; openHelp: () => void }): void {
  const navigate = useNavigate();
  const goToPage = useEffectEvent((key: string) => {
    const page = pages.find((candidate) => candidate.key === key);
    if (page) void navigate({ to: page.to });
  });
  const onPalette = useEffectEvent(openPalette);
  const onHelp = useEffectEvent(openHelp);
  useEffect(() => {
    let previousKey = "";
    let forgetTimer: ReturnType<typeof setTimeout> | undefined;
    const onKeyDown = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return onPalette();
      }
      if (shouldIgnoreKey(event)) return;
      if (event.key === "?") onHelp();
      else if (event.key === "/") {
        event.preventDefault();
        onPalette();
      } else if (previousKey === "g") goToPage(event.key);
      previousKey = event.key;
      // Restart the timer, or an earlier key's timeout would clear this key.
      clearTimeout(forgetTimer);
      forgetTimer = setTimeout(() => (previousKey = ""), 1000);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Binds single keys on one page. Ignores them while the user types or a dialog is open. */
export function useKeys(keys: Record<string, () => void>): void {
  const onShortcut = useEffectEvent((event: KeyboardEvent) => {
    const action = keys[event.key];
    if (action === undefined || (event.key === "Enter" && handlesEnter(event))) return;
    // Otherwise the letter would be typed into the field that the action opens.
    event.preventDefault();
    action();
  });
  useEffect(() => {
    let previousKey = "";
    const onKeyDown = (event: KeyboardEvent): void => {
      if (shouldIgnoreKey(event) || previousKey === "g") return void (previousKey = "");
      previousKey = event.key;
      onShortcut(event);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function shouldIgnoreKey(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const element = event.target;
  if (!(element instanceof HTMLElement)) return false;
  return element.isContentEditable || element.closest("input, textarea, select, [role=dialog], [role=menu]") !== null;
}

/** Whether the focused element handles Enter itself. */
function handlesEnter({ target }: KeyboardEvent): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary") !== null;
}
