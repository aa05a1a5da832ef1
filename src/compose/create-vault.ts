import { createHmac } from "node:crypto";
import type { Redactor } from "../model/process.ts";
import type { RunInput, Vault } from "../model/vault.ts";
import { conceal } from "../redact/conceal.ts";
import { createSecretBox } from "../trigger/secret-box.ts";

const purpose = "drover run parameters";

/** Creates a vault with the key of the record, which also seals its audit chain. */
export function createVault(key: Uint8Array, redactor: Redactor): Vault {
  const box = createSecretBox(key, purpose);
  return {
    conceal(owner, schema, input) {
      const concealed = conceal(schema, input, redactor);
      if (concealed === null) return null;
      const { parameters, prompt } = concealed;
      return { parameters, prompt, sealed: box.seal(owner, JSON.stringify(input)) };
    },
    // The function `conceal` sealed this text for the same owner.
    open: (owner, sealed) => JSON.parse(box.open(owner, sealed)) as RunInput,
    redact: (value) => redactor.value(value),
    fingerprint: (text) => createHmac("sha256", key).update(`${purpose}\n${text}`).digest("hex"),
  };
}
