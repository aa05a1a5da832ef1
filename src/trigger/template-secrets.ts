import { isDeepStrictEqual } from "node:util";
import { ownerOfTemplate, type Vault } from "../model/vault.ts";

/** A definition that runs are made of again and again: a schedule's or a hook's. */
interface Standing {
  parameters: Record<string, unknown>;
  prompt?: string | null | undefined;
  /** What it was given with, encrypted, where its parameters or prompt are redacted. */
  sealed?: string | undefined;
}

/** As it is stored. `schema` is the agent's, which may mark parameters as secret. */
export function sealTemplate<T extends Standing>(
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

/** As it was given. */
export function openTemplate<T extends Standing>(agent_name: string, kept: T, vault: Vault | undefined): T {
  if (kept.sealed === undefined || vault === undefined) return kept;
  const { parameters, prompt } = vault.open(ownerOfTemplate(agent_name), kept.sealed);
  return { ...withoutSealed(kept), parameters, ...withPrompt(kept, prompt) };
}

/** As people see it. */
export function withoutSealed<T extends Standing>(kept: T): T {
  const { sealed: _, ...shown } = kept;
  // What is left out may always be.
  return shown as T;
}

/**
 * Whether a change would show what was sealed: what it does not give anew has to look as before. The agent may be another
 * now, may be gone, or may no longer mark its parameters.
 */
export function wouldExposeSecrets(
  before: Standing,
  after: Standing,
  changes: { parameters?: unknown; prompt?: unknown },
): boolean {
  if (before.sealed === undefined) return false;
  const isShown = changes.parameters === undefined && !isDeepStrictEqual(after.parameters, before.parameters);
  return isShown || (changes.prompt === undefined && (after.prompt ?? null) !== (before.prompt ?? null));
}

/** One that has no prompt gets none. */
function withPrompt({ prompt: before }: Standing, prompt: string | null): Pick<Standing, "prompt"> {
  return before === undefined || before === null ? {} : { prompt };
}
