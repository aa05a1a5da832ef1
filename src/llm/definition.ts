import type { Command, Running } from "../model/process.ts";
import type { Model } from "./conversation.ts";

/** What an operator says about a provider: in a profile, in drover.yaml or by variables. */
export interface ProviderSettings {
  base_url?: string;
  /** For `scripted`: the file with its turns. */
  script?: string;
}

/** The machine that a provider works on. */
export interface ProviderHost {
  env: Env;
  /** The runner's directory. Packages that Drover does not bring are found from here, or beside Drover. */
  directory: string;
  /** Where the run works. */
  workDirectory: string;
  /** Starts a program, on the record where there is a run. */
  start(command: Command): Promise<Running>;
}

export interface ProviderDefinition {
  /** The variable with its key; null where it needs none. */
  variable: string | null;
  /** The variable that holds its address where the settings do not. */
  address_variable?: string;
  default_model: string | null;
  /** Whether it works here without further setup. Unless given: whether its variable is set. */
  isReady?(host: Pick<ProviderHost, "env" | "directory">): Promise<boolean>;
  /** Loads the vendor's package: only when it is used. */
  open(settings: ProviderSettings, host: ProviderHost): Promise<Model>;
}

export type Env = Readonly<Record<string, string | undefined>>;
