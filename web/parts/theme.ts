import type { IconName } from "./icon.tsx";

export type Theme = "light" | "dark" | "system";

export const themes: readonly { name: Theme; word: string; icon: IconName }[] = [
  { name: "light", word: "Light theme", icon: "sun" },
  { name: "dark", word: "Dark theme", icon: "moon" },
  { name: "system", word: "System theme", icon: "settings" },
];

const key = "drover.theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");
systemDark.addEventListener("change", apply);

export function getTheme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(key, theme);
  apply();
}

function apply(): void {
  const theme = getTheme();
  const dark = theme === "dark" || (theme === "system" && systemDark.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}
