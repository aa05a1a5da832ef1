export const tabs = ["timeline", "conversation", "log", "result", "files", "audit", "raw"] as const;
export type Tab = (typeof tabs)[number];

export interface RunSearch {
  tab?: Tab;
  step?: string;
  file?: string;
}

export function readRunSearch(params: Record<string, unknown>): RunSearch {
  const tab = tabs.find((candidate) => candidate === params["tab"]);
  return {
    ...(tab ? { tab } : {}),
    ...(typeof params["step"] === "string" ? { step: params["step"] } : {}),
    ...(typeof params["file"] === "string" ? { file: params["file"] } : {}),
  };
}
