import type { EnvironmentMode, Isolation } from "./process.ts";

/** The contents of drover.yaml. The schema is in another file, so that a command without a drover.yaml never loads it. */
export interface Config {
  execution: {
    default_timeout_seconds: number;
    max_output_kb: number;
    output_limit: "truncate" | "fail";
    use_shell: "auto" | boolean;
    environment: { mode: EnvironmentMode; allow: string[]; deny: string[] };
    audit: { enabled: boolean; retention_days: number };
  };
  /** `max_file_mb`: the largest file that the coordinator accepts from a run. */
  files: { max_file_mb: number };
  /** How many days finished work is retained; see docs/operating.md. */
  retention: { runs_days: number; events_days: number; files_days: number; sessions_days: number };
  /** Applies to `exec` and to profiles that do not set their own. */
  isolation: Isolation | "auto";
  /** Absolute path of the coordinator's agents directory. null: `agents` beside drover.yaml, if it exists. */
  agents: string | null;
  /** Whether agents added or changed while Drover is running take effect at once, without being accepted by a person. */
  agents_auto_accept: boolean;
  /** Absolute path of the directory searched first for profiles. null: `./profiles`. */
  profiles: string | null;
  /** The model provider for agents and profiles that do not set one. null: the first that is configured. */
  provider: string | null;
  /** URLs under which the coordinator is reachable, in addition to loopback. */
  public_urls: string[];
  /** Non-public hosts, addresses and ranges that webhooks may reach. */
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

/** Captured output is held in memory and stored in the record. */
export const maxOutputKb = 65_536;
/** One terabyte. A larger value is probably a typo. */
export const maxFileMb = 1_048_576;
