import type { Hook } from "../../model/hook.ts";
import { maxPerOwner } from "../../model/hook-ops.ts";
import { type Webhook, webhookSchema } from "../../model/webhook.ts";
import { toCursor } from "../../show/cursor.ts";
import { createSecret } from "../../trigger/secret-box.ts";
import { openTemplate, sealTemplate, omitSealed, wouldExposeSecrets } from "../../trigger/template-secrets.ts";
import { openWebhook, sealWebhook, toShownWebhook } from "../../trigger/webhook-secrets.ts";
import type { ApiDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { created } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people, type Principal, getVisibleOwner, getSubject, submitters } from "../rule.ts";

const route = createRouteBuilder<ApiDeps>();

/** The size limit of a hook's definition, because a page of hooks is read and sent in one piece. */
const maxHookBytes = 64 * 1024;

/** Routes that manage hooks, webhooks and deliveries. ./receive.ts handles incoming deliveries. */
export const triggerRoutes = [
  route("GET /hooks", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor } }) {
      const { before: after } = parsePage("hooks", limit, cursor);
      const owner = getVisibleOwner(principal) ?? undefined;
      const { items, more } = await deps.store.read.hooks(omitUndefined({ limit, after, owner }));
      const last = more ? items.at(-1) : undefined;
      return { items: items.map(omitSealed), next_cursor: last === undefined ? null : toCursor("hooks", last.name) };
    },
  }),
  route("POST /hooks", {
    rule: { roles: submitters },
    async handle({ deps, principal, body: { secret = createSecret(), ...definition } }) {
      const at = deps.now().toISOString();
      const hook: Hook = { ...definition, created_by: getSubject(principal), created_at: at, updated_at: at };
      if (measureBytes(hook) > maxHookBytes) throw tooLarge();
      const sealed = deps.triggers.secrets.seal(`hook ${hook.name}`, secret);
      const sealedHook = await sealSecrets(deps, hook);
      const [put] = await deps.store.apply([{ op: "put_hook", hook: sealedHook, secret: sealed, create: true }]);
      if (!put.ok) throw notCreated("hook", hook.name, put.conflict);
      return created({ ...omitSealed(sealedHook), secret });
    },
  }),
  route("GET /hooks/{name}", {
    rule: { roles: people, object: "hook" },
    handle: async ({ object }) => omitSealed(object),
  }),
  route("PATCH /hooks/{name}", {
    rule: { roles: submitters, object: "hook" },
    async handle({ deps, object, body: { secret: requestedSecret, rotate_secret, ...changes } }) {
      const changesTemplate = changes.parameters !== undefined || changes.prompt !== undefined || changes.agent_name;
      const before = changesTemplate ? openTemplate(object.agent_name, object, deps.triggers.vault) : object;
      const hook: Hook = { ...before, ...omitUndefined(changes), updated_at: deps.now().toISOString() };
      // A hook that is already larger can still be disabled or made smaller.
      if (measureBytes(hook) > Math.max(maxHookBytes, measureBytes(before))) throw tooLarge();
      const secret = requestedSecret ?? (rotate_secret === true ? createSecret() : undefined);
      const sealed = secret === undefined ? {} : { secret: deps.triggers.secrets.seal(`hook ${hook.name}`, secret) };
      const sealedHook = changesTemplate ? await sealSecrets(deps, hook) : hook;
      if (wouldExposeSecrets(object, sealedHook, omitUndefined(changes))) throw secretsBelongTo(object.agent_name);
      const [put] = await deps.store.apply([{ op: "put_hook", hook: sealedHook, ...sealed, create: false }]);
      if (!put.ok) throw notFound("hook", "path.name");
      return { ...omitSealed(sealedHook), ...omitUndefined({ secret }) };
    },
  }),
  route("DELETE /hooks/{name}", {
    rule: { roles: submitters, object: "hook" },
    async handle({ deps, object: { name } }) {
      const [deleted] = await deps.store.apply([{ op: "delete_hook", name }]);
      if (!deleted.ok) throw notFound("hook", "path.name");
      return undefined;
    },
  }),
  route("GET /webhooks", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor } }) {
      const { before: after } = parsePage("webhooks", limit, cursor);
      const owner = getVisibleOwner(principal) ?? undefined;
      const { items, more } = await deps.store.read.webhooks(omitUndefined({ limit, after, owner }));
      const last = more ? items.at(-1) : undefined;
      return {
        items: items.map(toShownWebhook),
        next_cursor: last === undefined ? null : toCursor("webhooks", last.name),
      };
    },
  }),
  route("POST /webhooks", {
    rule: { roles: submitters },
    async handle({ deps, principal, body: { secret = createSecret(), payload = null, ...definition } }) {
      checkUrl(deps, definition.url);
      const webhook: Webhook = {
        ...definition,
        payload,
        created_by: getSubject(principal),
        everyones: isAdmin(principal),
        created_at: deps.now().toISOString(),
      };
      const sealed = deps.triggers.secrets.seal(`webhook ${webhook.name}`, secret);
      const sealedWebhook = sealWebhook(webhook, deps.triggers.vault);
      const [put] = await deps.store.apply([
        { op: "put_webhook", webhook: sealedWebhook, secret: sealed, create: true },
      ]);
      if (!put.ok) throw notCreated("webhook", webhook.name, put.conflict);
      return created({ ...toShownWebhook(sealedWebhook), secret });
    },
  }),
  route("PATCH /webhooks/{name}", {
    rule: { roles: submitters, object: "webhook" },
    async handle({ deps, object, body: { secret: requestedSecret, rotate_secret, ...changes } }) {
      if (changes.url !== undefined) checkUrl(deps, changes.url);
      const { secrets, vault } = deps.triggers;
      const original = openWebhook(object.name, object, object.sealed ?? null, vault);
      const webhook = webhookSchema.parse({ ...object, ...original, ...omitUndefined(changes) });
      const secret = requestedSecret ?? (rotate_secret === true ? createSecret() : undefined);
      const sealed = secret === undefined ? {} : { secret: secrets.seal(`webhook ${webhook.name}`, secret) };
      const sealedWebhook = sealWebhook(webhook, vault);
      const [put] = await deps.store.apply([{ op: "put_webhook", webhook: sealedWebhook, ...sealed, create: false }]);
      if (!put.ok) throw notFound("webhook", "path.name");
      return { ...toShownWebhook(sealedWebhook), ...omitUndefined({ secret }) };
    },
  }),
  route("DELETE /webhooks/{name}", {
    rule: { roles: submitters, object: "webhook" },
    async handle({ deps, object: { name } }) {
      const [deleted] = await deps.store.apply([{ op: "delete_webhook", name }]);
      if (!deleted.ok) throw notFound("webhook", "path.name");
      return undefined;
    },
  }),
  route("GET /deliveries", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor, ...filter } }) {
      const owner = getVisibleOwner(principal) ?? undefined;
      const page = parsePage("deliveries", limit, cursor);
      const { items, next } = await deps.store.read.deliveries(omitUndefined({ ...filter, owner }), page);
      return { items, next_cursor: next === null ? null : toCursor("deliveries", next) };
    },
  }),
  route("POST /deliveries/{delivery_id}/redeliver", {
    rule: { roles: submitters, object: "delivery" },
    async handle({ deps, object: { delivery_id } }) {
      const [redelivered] = await deps.store.apply([{ op: "redeliver", delivery_id }]);
      const stored = redelivered.ok ? await deps.store.read.delivery(delivery_id) : null;
      if (stored === null) throw notFound("delivery", "path.delivery_id");
      const { created_by: _by, everyones: _all, ...delivery } = stored;
      return delivery;
    },
  }),
];

/** Seals secret parameters for storage. If the agent does not exist yet, it is unknown which parameters are secret. */
async function sealSecrets({ agents, triggers }: ApiDeps, hook: Hook): Promise<Hook> {
  const match = await agents.find(hook.agent_name);
  const schema = match !== null && "agent" in match ? match.agent.parameters_schema : undefined;
  return sealTemplate(hook.agent_name, hook, schema, triggers.vault);
}

/** An admin's webhook is notified about all runs, a user's about their own. */
function isAdmin(principal: Principal): boolean {
  return principal.kind === "token" && principal.role === "admin";
}

function checkUrl({ triggers }: ApiDeps, url: string): void {
  const problem = triggers.addresses.checkUrl(url);
  if (problem === null) return;
  throw new Refusal(400, "DROVER-HOK-007", `body.url ${problem}.`, {
    faults: [{ path: "body.url", message: problem }],
  });
}

function secretsBelongTo(agent_name: string): Refusal {
  return new Refusal(409, "DROVER-API-030", `The secret values of this hook belong to the agent ${agent_name}.`, {
    faults: [{ path: "body.parameters", message: "must be passed again" }],
    next: "Send the parameters again with this change, and the prompt if the hook has one.",
  });
}

/** Does not count the encrypted copy of the hook's secrets, which the owner does not see. */
function measureBytes(hook: Hook): number {
  return Buffer.byteLength(JSON.stringify(omitSealed(hook)));
}

function tooLarge(): Refusal {
  return new Refusal(400, "DROVER-API-006", `A hook may have at most ${maxHookBytes / 1024} KB of JSON.`, {
    faults: [{ path: "body", message: `larger than ${maxHookBytes / 1024} KB` }],
    next: "Shorten its prompt, its parameters or its filter.",
  });
}

function notCreated(what: "hook" | "webhook", name: string, conflict: string): Refusal {
  if (conflict === "too_many")
    return new Refusal(409, "DROVER-API-030", `You have ${maxPerOwner} ${what}s, the most that one owner may have.`, {
      next: `Remove a ${what} that is no longer needed.`,
    });
  return new Refusal(409, "DROVER-HOK-006", `A ${what} named ${name} already exists.`, {
    faults: [{ path: "body.name", message: "taken" }],
  });
}
