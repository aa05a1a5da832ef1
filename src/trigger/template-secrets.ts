import { isDeepStrictEqual } from "node:util";
import { getTemplateOwner, type Vault } from "../model/vault.ts";

/** The part of a schedule or hook from which runs are created repeatedly. */
interface RunTemplate {
  parameters: Record<string, unknown>;
  prompt?: string | null | undefined;
  /** The original parameters and prompt, encrypted. Set if they contain secrets, which are then redacted above. */
  sealed?: string | undefined;
}

/** Returns the template with its secrets sealed, for storage. `schema` is the agent's, which may declare secret parameters. */
export function sealTemplate<T extends RunTemplate>(
  agent_name: string,
  template: T,
  schema: object | undefined,
  vault: Vault | undefined,
): T {
  const { parameters, prompt = null } = template;
  const concealed = vault?.conceal(getTemplateOwner(agent_name), schema, { parameters, prompt }) ?? null;
  if (concealed === null) return template;
  return {
    ...template,
    parameters: concealed.parameters,
    sealed: concealed.sealed,
    ...buildPromptFields(template, concealed.prompt),
  };
}

/** Returns the template with its secrets restored. */
export function openTemplate<T extends RunTemplate>(agent_name: string, template: T, vault: Vault | undefined): T {
  if (template.sealed === undefined || vault === undefined) return template;
  const { parameters, prompt } = vault.open(getTemplateOwner(agent_name), template.sealed);
  return { ...omitSealed(template), parameters, ...buildPromptFields(template, prompt) };
}

/** Removes the encrypted part, which is not shown to people. */
export function omitSealed<T extends RunTemplate>(template: T): T {
  const { sealed: _, ...visible } = template;
  // `sealed` is optional, so the result is still a T.
  return visible as T;
}

/**
 * Whether a change would show sealed values. Parameters and prompt that the change does not replace must look the same as
 * before. They may differ if the agent was replaced or removed, or no longer declares its parameters as secret.
 */
export function wouldExposeSecrets(
  oldTemplate: RunTemplate,
  newTemplate: RunTemplate,
  changes: { parameters?: unknown; prompt?: unknown },
): boolean {
  if (oldTemplate.sealed === undefined) return false;
  const exposesParameters =
    changes.parameters === undefined && !isDeepStrictEqual(newTemplate.parameters, oldTemplate.parameters);
  return (
    exposesParameters || (changes.prompt === undefined && (newTemplate.prompt ?? null) !== (oldTemplate.prompt ?? null))
  );
}

/** Adds a prompt only if the template has one. */
function buildPromptFields({ prompt: previous }: RunTemplate, prompt: string | null): Pick<RunTemplate, "prompt"> {
  return previous === undefined || previous === null ? {} : { prompt };
}
