import type { IconName } from "./icon.tsx";

export type Theme = "light" | "dark" | "system";

export const themes: readonly { name: Theme; label: string; icon: IconName }[] = [
  { name: "light", label: "Light theme", icon: "sun" },
  { name: "dark", label: "Dark theme", icon: "moon" },
  { name: "system", label: "System theme", icon: "settings" },
];

const key = "drover.theme";
const systemDarkQuery = matchMedia("(prefers-color-scheme: dark)");
systemDarkQuery.addEventListener("change", apply);

export function getTheme(): Theme {
  const stored = localStorage.getItem(key);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(key, theme);
  apply();
}

function apply(): void {
  const theme = getTheme();
  const isDark = theme === "dark" || (theme === "system" && systemDarkQuery.matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}
