import type { StoredWebhook, Webhook } from "../model/webhook.ts";
import type { Vault } from "../model/vault.ts";

/** The parts of a webhook that may contain secrets and that deliveries need. */
type Target = Pick<StoredWebhook, "url" | "payload">;

const toVaultOwner = (name: string): string => `webhook ${name}`;

/** Returns the webhook for storage, with the secrets in its address and payload sealed. */
export function sealWebhook(webhook: Webhook, vault: Vault): StoredWebhook {
  const { url, payload } = webhook;
  const concealed = vault.conceal(toVaultOwner(webhook.name), undefined, { parameters: { payload }, prompt: url });
  if (concealed === null) return webhook;
  return {
    ...webhook,
    // `conceal` gets the address as the prompt, and returns it redacted in the same place.
    url: concealed.prompt ?? "",
    payload: concealed.parameters["payload"],
    sealed: concealed.sealed,
  };
}

/** Returns the original address and payload. */
export function openWebhook(name: string, { url, payload }: Target, sealed: string | null, vault: Vault): Target {
  if (sealed === null) return { url, payload };
  const original = vault.open(toVaultOwner(name), sealed);
  return { url: original.prompt ?? url, payload: original.parameters["payload"] };
}

/** Removes the encrypted part, which is not shown to people. */
export function toShownWebhook(stored: StoredWebhook): Webhook {
  const { sealed: _, ...webhook } = stored;
  return webhook;
}
