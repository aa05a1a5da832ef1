import { isDeepStrictEqual } from "node:util";
import { ownerOfTemplate, type Vault } from "../model/vault.ts";

/** The part of a schedule or hook from which runs are created repeatedly. */
interface RunTemplate {
  parameters: Record<string, unknown>;
  prompt?: string | null | undefined;
  /** The original parameters and prompt, encrypted. Set if they contain secrets, which are then redacted above. */
  sealed?: string | undefined;
}

/** The template as stored, with secrets sealed. `schema` is the agent's, which may mark parameters as secret. */
export function sealTemplate<T extends RunTemplate>(
  agent_name: string,
  given: T,
  schema: object | undefined,
  vault: Vault | undefined,
): T {
  const { parameters, prompt = null } = given;
  const hidden = vault?.conceal(ownerOfTemplate(agent_name), schema, { parameters, prompt }) ?? null;
  if (hidden === null) return given;
  return { ...given, parameters: hidden.parameters, sealed: hidden.sealed, ...withPrompt(given, hidden.prompt) };
}

/** The template as given, with secrets restored. */
export function openTemplate<T extends RunTemplate>(agent_name: string, kept: T, vault: Vault | undefined): T {
  if (kept.sealed === undefined || vault === undefined) return kept;
  const { parameters, prompt } = vault.open(ownerOfTemplate(agent_name), kept.sealed);
  return { ...withoutSealed(kept), parameters, ...withPrompt(kept, prompt) };
}

/** The template as shown to people, without its encrypted part. */
export function withoutSealed<T extends RunTemplate>(kept: T): T {
  const { sealed: _, ...shown } = kept;
  // `sealed` is optional, so the result is still a T.
  return shown as T;
}

/**
 * Whether a change would show sealed values: input that the change does not replace must look the same as before. The
 * agent may have been replaced or removed, or may no longer mark its parameters as secret.
 */
export function wouldExposeSecrets(
  before: RunTemplate,
  after: RunTemplate,
  changes: { parameters?: unknown; prompt?: unknown },
): boolean {
  if (before.sealed === undefined) return false;
  const isShown = changes.parameters === undefined && !isDeepStrictEqual(after.parameters, before.parameters);
  return isShown || (changes.prompt === undefined && (after.prompt ?? null) !== (before.prompt ?? null));
}

/** A template without a prompt stays without one. */
function withPrompt({ prompt: before }: RunTemplate, prompt: string | null): Pick<RunTemplate, "prompt"> {
  return before === undefined || before === null ? {} : { prompt };
}
