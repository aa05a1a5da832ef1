import type { Command, RunningProcess } from "../model/process.ts";
import type { Model } from "./conversation.ts";
import type { Environment } from "../model/environment.ts";

/** An operator's settings for a provider: from a profile, drover.yaml or variables. */
export interface ProviderSettings {
  base_url?: string;
  /** The file that the provider `scripted` reads its turns from. */
  script?: string;
}

/** The environment in which a provider runs. */
export interface ProviderHost {
  env: Environment;
  /** The runner's directory. Drover looks for optional packages here, then next to itself. */
  directory: string;
  /** The run's work directory. */
  workDirectory: string;
  /** Starts a program. During a run, records it too. */
  start(command: Command): Promise<RunningProcess>;
}

export interface ProviderDefinition {
  /** The environment variable with the provider's key; null if it needs none. */
  keyVariable: string | null;
  /** The environment variable with the base URL, used if the settings have none. */
  baseUrlVariable?: string;
  defaultModel: string | null;
  /** Whether the provider works here without further setup. Defaults to whether `keyVariable` is set. */
  isReady?(host: Pick<ProviderHost, "env" | "directory">): Promise<boolean>;
  /** Call this only when the provider is used, because it loads the service's package. */
  open(settings: ProviderSettings, host: ProviderHost): Promise<Model>;
}
