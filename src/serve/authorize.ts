import type { RecordDeps } from "./deps.ts";
import { notFound, Refusal } from "./refusal.ts";
import {
  needsNoToken,
  type ObjectKind,
  type Objects,
  type Principal,
  type Rule,
  canSee,
  getVisibleOwner,
  getTokenOwner,
  getWebhookOwner,
} from "./rule.ts";

/** Throws a Refusal if the rule does not admit this principal. */
export function authorize(rule: Rule, principal: Principal): void {
  if (needsNoToken(rule)) return;
  if ("enrolment" in rule) {
    if (principal.kind !== "enrolment") throw forbidden("Only an enrolment token can be used here.");
    return;
  }
  switch (principal.kind) {
    case "token":
      if (!rule.roles.includes(principal.role))
        throw forbidden(`This needs the role ${rule.roles.join(" or ")}; this token has the role ${principal.role}.`);
      if (rule.allOwners && getVisibleOwner(principal) !== null)
        throw forbidden("This shows data of all users: a viewer needs a token with the subject *.");
      return;
    case "attempt":
      if (!rule.attempt) throw forbidden("A run's attempt token cannot do this.");
      return;
    case "enrolment":
      throw forbidden("An enrolment token can only be exchanged with POST /runner/enroll.");
    default:
      principal satisfies never;
  }
}

/** Loads the object named by the path. Missing objects and those of other owners get the same 404. */
export async function loadObject(
  rule: Rule,
  principal: Principal,
  params: Readonly<Record<string, string>>,
  deps: RecordDeps,
): Promise<Objects[ObjectKind] | undefined> {
  if (!("roles" in rule) || rule.object === undefined) return undefined;
  const name = rule.object === "hook" || rule.object === "webhook" ? "name" : `${rule.object}_id`;
  const pathId = params[name] ?? "";
  const id = rule.object === "token" && pathId === "self" ? getOwnTokenId(principal) : pathId;
  const loaded = isId(id) ? await load(rule.object, id, deps) : null;
  if (loaded === null || loaded.owner === null || !canSee(principal, loaded.owner))
    throw notFound(rule.object, `path.${name}`);
  if (principal.kind === "attempt" && !belongsToRun(principal.run.run_id, loaded.object))
    throw notFound(rule.object, `path.${name}`);
  return loaded.object;
}

/** An attempt token reaches its own run and that run's children. */
function belongsToRun(run_id: string, object: Objects[ObjectKind]): boolean {
  return (
    "run_id" in object && (object.run_id === run_id || ("parent_run_id" in object && object.parent_run_id === run_id))
  );
}

/** Resolves `self`, with which a caller addresses its own token without knowing the id. */
function getOwnTokenId(principal: Principal): string {
  return principal.kind === "token" ? principal.token_id : "";
}

/** Accepts Drover's ids and external ones, as long as they are short and printable. */
function isId(id: string): boolean {
  return /^[\w@.:-]{1,200}$/.test(id);
}

async function load(
  kind: ObjectKind,
  id: string,
  { store: { read }, owners }: RecordDeps,
): Promise<{ object: Objects[ObjectKind]; owner: string | null } | null> {
  switch (kind) {
    case "run": {
      const run = await read.run_row(id);
      return run && { object: run, owner: run.created_by };
    }
    case "session": {
      const session = await read.session(id);
      return session && { object: session, owner: session.created_by };
    }
    case "execution": {
      const execution = await read.execution(id);
      return execution && { object: execution, owner: await owners(execution.run_id) };
    }
    case "runner": {
      const runner = await read.runner(id);
      return runner && { object: runner, owner: runner.owner };
    }
    case "schedule": {
      const schedule = await read.schedule(id);
      return schedule && { object: schedule, owner: schedule.created_by };
    }
    case "token": {
      // The list is read backwards, exclusive of `before`. "!" sorts after the id itself and before the ids derived from it,
      // which continue with a dot.
      const [token] = await read.tokens({ before: `${id}!`, limit: 1 });
      return token?.token_id === id ? { object: token, owner: getTokenOwner(token) } : null;
    }
    case "hook": {
      const stored = await read.hook(id);
      return stored && { object: stored.hook, owner: stored.hook.created_by };
    }
    case "webhook": {
      const stored = await read.webhook(id);
      return stored && { object: stored.webhook, owner: getWebhookOwner(stored.webhook) };
    }
    case "delivery": {
      const stored = await read.delivery(id);
      if (stored === null) return null;
      const { created_by, everyones, ...delivery } = stored;
      return { object: delivery, owner: getWebhookOwner({ created_by, everyones }) };
    }
  }
}

function forbidden(detail: string): Refusal {
  return new Refusal(403, "DROVER-API-011", detail, {
    faults: [{ path: "header.authorization", message: "not allowed with this token" }],
  });
}
