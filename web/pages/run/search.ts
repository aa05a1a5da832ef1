export const tabs = ["timeline", "conversation", "log", "result", "files", "audit", "raw"] as const;
export type Tab = (typeof tabs)[number];

export interface RunSearch {
  tab?: Tab;
  step?: string;
  file?: string;
}

export function readRunSearch(given: Record<string, unknown>): RunSearch {
  const tab = tabs.find((one) => one === given["tab"]);
  return {
    ...(tab ? { tab } : {}),
    ...(typeof given["step"] === "string" ? { step: given["step"] } : {}),
    ...(typeof given["file"] === "string" ? { file: given["file"] } : {}),
  };
}
