/** The parts of a run request that may contain secrets. */
export interface RunInput {
  parameters: Record<string, unknown>;
  prompt: string | null;
}

/** Encrypts secrets in run requests before they reach the record. See docs/decisions/0031-sealed-parameters.md. */
export interface Vault {
  /** Redacts the input and seals the original for `owner`. null if nothing is secret. `schema` marks secret parameters. */
  conceal(owner: string, schema: object | undefined, input: RunInput): (RunInput & { sealed: string }) | null;
  open(owner: string, sealed: string): RunInput;
  /** Puts marks in place of the secrets that Drover recognizes, for text that is stored unencrypted. */
  redact<T>(value: T): T;
  /** A keyed hash, which recognizes an equal text without revealing the secrets in it. */
  fingerprint(text: string): string;
}

/** The owner for the sealed parameters of a schedule or hook. */
export function getTemplateOwner(agent_name: string): string {
  return `definition for ${agent_name}`;
}

/** The owner for the sealed parameters of a run. */
export function getRunOwner(run_id: string): string {
  return `run ${run_id}`;
}
