import type { Command, Running } from "../model/process.ts";
import type { Model } from "./conversation.ts";
import type { Environment } from "../model/environment.ts";

/** An operator's settings for a provider: from a profile, drover.yaml or variables. */
export interface ProviderSettings {
  base_url?: string;
  /** The file with the turns of `scripted`. */
  script?: string;
}

/** The environment in which a provider runs. */
export interface ProviderHost {
  env: Environment;
  /** The runner's directory. Packages that Drover does not include are searched here, then beside Drover. */
  directory: string;
  /** The run's work directory. */
  workDirectory: string;
  /** Starts a program, and records it if there is a run. */
  start(command: Command): Promise<Running>;
}

export interface ProviderDefinition {
  /** The variable that holds its key; null if it needs none. */
  variable: string | null;
  /** The variable that holds its address if the settings do not. */
  address_variable?: string;
  default_model: string | null;
  /** Whether it works here without further setup. By default, whether its variable is set. */
  isReady?(host: Pick<ProviderHost, "env" | "directory">): Promise<boolean>;
  /** Loads the vendor's package, so it is called only when the provider is used. */
  open(settings: ProviderSettings, host: ProviderHost): Promise<Model>;
}
