import { resolve } from "node:path";
import { isAgentFile, loadAgentFiles } from "../define/load-agents.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { type LoadedProfile, loadProfile } from "../define/profiles.ts";
import { chooseProvider, openProvider } from "../llm/providers.ts";
import { type Project, createLocalIds } from "../local.ts";
import type { Agent } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { BugError, RequestError } from "../model/errors.ts";
import { profileSchema } from "../model/profile.ts";
import type { RunnerProfile } from "../runner.ts";
import { findProfileDirectories } from "../compose/open-profiles.ts";
import { findModelAgentFaults } from "./model-agent-faults.ts";
import { type CommandInput, usageError } from "./options.ts";

/**
 * Loads an agent file with the profile `model` that executes it, and checks that its provider can be used. Drops settings
 * that choose a runner or a directory, because the command line has already chosen them.
 */
export async function loadAgentFileWithProfile(
  file: string,
  provider: string | undefined,
  { env, cwd }: Pick<CommandInput, "env" | "cwd">,
  project: Project,
): Promise<RunnerProfile & { agent: Agent }> {
  const agent = await readAgentFile(file);
  const loaded = loadModelProfile({ cwd, env }, project, provider);
  const readSetting = (key: string): string | undefined => {
    const value = loaded.profile.config[key];
    return typeof value === "string" ? value : undefined;
  };
  const location = { env, directory: loaded.directory };
  const candidates = { option: provider, agent: agent.provider, profile: readSetting("provider") };
  const providerName = await chooseProvider({ ...candidates, config: project.config.provider ?? undefined }, location);
  const base_url = readSetting("base_url");
  const script = agent.script ?? readSetting("script");
  const openedProvider = await openProvider(providerName, {
    ...location,
    settings: {
      ...(base_url === undefined ? {} : { base_url }),
      ...(script === undefined ? {} : { script: resolve(loaded.directory, script) }),
    },
    workDirectory: cwd,
    store: { load: async () => null, save: async () => undefined },
    newId: createLocalIds(),
    start() {
      throw new BugError("a provider started a program outside a run");
    },
  });
  await openedProvider.close();
  const { demands: _demands, model, ...rest } = agent;
  // The model that the agent names belongs to the provider that the agent names.
  const isOtherProvider = agent.provider !== undefined && agent.provider !== providerName;
  const preparedAgent: Agent = {
    ...rest,
    provider: providerName,
    workspace: "in_place",
    ...(model === undefined || isOtherProvider ? {} : { model }),
  };
  return { loaded, agents: [preparedAgent], agent: preparedAgent };
}

async function readAgentFile(file: string): Promise<Agent> {
  if (!isAgentFile(file))
    throw usageError(
      `${file} is not an agent file: its name must end in .md, .json, .yaml or .yml.`,
      "agent-executor",
      "SPEC",
    );
  const schemas = openSchemaChecker();
  const { agents, faults } = await loadAgentFiles([file], { ...schemas, checkAgent: findModelAgentFaults });
  await schemas.stop();
  const agent = agents[0]?.agent;
  if (!agent) throw toRequestError("SPEC", faults);
  const executorName = agent.type === "procedural" ? "a command" : agent.executor;
  if (executorName === undefined || executorName === "model") return agent;
  throw new RequestError({
    code: "DROVER-AGT-004",
    field: "SPEC",
    message: `agent-executor cannot run ${agent.name}: its executor is ${executorName}, not model.`,
    next: `Run it with: drover run ${agent.name}`,
  });
}

/** Loads the project's profile `model`, or creates one without settings. Uses its base_url only with its own provider. */
function loadModelProfile(
  { cwd, env }: Pick<CommandInput, "env" | "cwd">,
  { config: { profiles, isolation } }: Project,
  provider?: string,
): LoadedProfile {
  const host = { builtIn: ["model"], hasCommand: () => true };
  const loadResult = loadProfile("model", findProfileDirectories(cwd, { profiles }, false, env), host);
  if (!loadResult.ok && loadResult.faults[0]?.code !== "DROVER-PRF-001")
    throw toRequestError("profile", loadResult.faults);
  const emptyProfile: LoadedProfile = {
    name: "model",
    file: "model",
    directory: cwd,
    profile: profileSchema.parse({ type: "model" }),
    agentsDirectory: null,
    module: null,
  };
  const usesBuiltInLoop =
    loadResult.ok && loadResult.profile.profile.type === "model" && !loadResult.profile.profile.command;
  const loaded = usesBuiltInLoop && loadResult.profile.module === null ? loadResult.profile : emptyProfile;
  const { base_url, ...config } = loaded.profile.config;
  const isOtherProvider = provider !== undefined && provider !== config["provider"];
  return {
    ...loaded,
    profile: {
      ...loaded.profile,
      isolation: loaded.profile.isolation ?? isolation,
      config: isOtherProvider || base_url === undefined ? config : { ...config, base_url },
    },
  };
}

function toRequestError(field: string, faults: readonly DefinitionFault[]): RequestError {
  const [first] = faults;
  if (!first) throw new BugError("loading an agent file or a profile failed without a fault");
  return new RequestError({
    code: first.code,
    field,
    message: faults.map(describeFault).join("\n"),
    next: first.next,
  });
}
