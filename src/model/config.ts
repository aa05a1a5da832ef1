import type { EnvironmentMode, Isolation } from "./process.ts";

/** drover.yaml, complete. Apart from its schema, so that a command without a file never loads one. */
export interface Config {
  execution: {
    default_timeout_seconds: number;
    max_output_kb: number;
    output_limit: "truncate" | "fail";
    use_shell: "auto" | boolean;
    environment: { mode: EnvironmentMode; allow: string[]; deny: string[] };
    audit: { enabled: boolean; retention_days: number };
  };
  isolation: Isolation | "auto";
}

export const defaultConfig: Config = {
  execution: {
    default_timeout_seconds: 300,
    max_output_kb: 1024,
    output_limit: "truncate",
    use_shell: "auto",
    environment: { mode: "inherit", allow: [], deny: [] },
    audit: { enabled: true, retention_days: 30 },
  },
  isolation: "auto",
};

/** What is kept of a stream is held in memory, and becomes part of the record. */
export const maxOutputKb = 65_536;
