/** What a run is asked with, as far as it may be secret. */
export interface RunInput {
  parameters: Record<string, unknown>;
  prompt: string | null;
}

/** Keeps secrets that runs are asked with unreadable in the record: see docs/decisions/0031-sealed-parameters.md. */
export interface Vault {
  /** null where nothing of it is secret. `schema` says which parameters are; `owner` is bound to what is sealed. */
  conceal(owner: string, schema: object | undefined, asked: RunInput): (RunInput & { sealed: string }) | null;
  open(owner: string, sealed: string): RunInput;
  /** Of a text with secrets in it, so that equal ones can be told without keeping anything that could be guessed from. */
  fingerprint(text: string): string;
}

/** What those of a schedule or hook are bound to. */
export function ownerOfTemplate(agent_name: string): string {
  return `definition for ${agent_name}`;
}

/** What the sealed parameters of a run are bound to. */
export function ownerOfRun(run_id: string): string {
  return `run ${run_id}`;
}
