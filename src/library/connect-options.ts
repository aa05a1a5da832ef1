import type { Environment } from "../model/environment.ts";

/** A coordinator that is already running. */
export interface CoordinatorAddress {
  /** `https://drover.example`, `http://127.0.0.1:8765` or `unix:/path/to/socket`. */
  url: string;
  token?: string | null;
  /** Allows sending the token to another machine unencrypted. */
  allowHttp?: boolean;
}

/** A state directory on this machine. */
export interface LocalState {
  /** Created if missing. Defaults to the one that Drover's commands use in `cwd`. */
  stateDir?: string;
  /** A directory of agent files, or a fleet file. */
  agents?: string;
  /** A directory of profiles, searched before Drover's own. */
  profiles?: string;
  /** The directory for relative paths, drover.yaml and profiles. Defaults to the working directory. */
  cwd?: string;
  /** The variables to run agents with and to find Drover's settings in. Defaults to those of this process. */
  env?: Environment;
}
