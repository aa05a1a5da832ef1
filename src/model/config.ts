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
  /** How many days what has ended is kept; see docs/operating.md. */
  retention: { runs_days: number; events_days: number; files_days: number; sessions_days: number };
  /** For exec, and for runs of profiles that choose none. */
  isolation: Isolation | "auto";
  /** The coordinator's folder of agents; absolute. null: `agents` beside drover.yaml, where there is one. */
  agents: string | null;
  /** Whether agents that are new or changed while Drover serves are used at once; else somebody accepts them first. */
  agents_auto_accept: boolean;
  /** The folder where profiles are looked for first; absolute. null: `./profiles`. */
  profiles: string | null;
  /** The provider of models for agents and profiles that name none. null: the first that is set up. */
  provider: string | null;
  /** Addresses the coordinator is reached by, beside loopback. */
  public_urls: string[];
  /** Hosts, addresses and ranges that webhooks may reach although they are not public. */
  webhooks: { allow: string[] };
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
  retention: { runs_days: 30, events_days: 30, files_days: 30, sessions_days: 30 },
  isolation: "auto",
  agents: null,
  agents_auto_accept: false,
  profiles: null,
  provider: null,
  public_urls: [],
  webhooks: { allow: [] },
};

/** What is kept of a stream is held in memory, and becomes part of the record. */
export const maxOutputKb = 65_536;
/** A terabyte: more is a slip of the pen. */
export const maxFileMb = 1_048_576;
