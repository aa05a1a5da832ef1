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
  /** `max_file_mb`: the largest file of a run that its coordinator takes. */
  files: { max_file_mb: number };
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
  files: { max_file_mb: 50 },
  isolation: "auto",
};

/** What is kept of a stream is held in memory, and becomes part of the record. */
export const maxOutputKb = 65_536;
/** A terabyte: more is a slip of the pen. */
export const maxFileMb = 1_048_576;
