import type { IconName } from "./icon.tsx";

export type Theme = "light" | "dark" | "system";

export const themes: readonly { name: Theme; label: string; icon: IconName }[] = [
  { name: "light", label: "Light theme", icon: "sun" },
  { name: "dark", label: "Dark theme", icon: "moon" },
  { name: "system", label: "System theme", icon: "settings" },
];

const key = "drover.theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");
systemDark.addEventListener("change", apply);

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
  const dark = theme === "dark" || (theme === "system" && systemDark.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}
