import type { RecordDeps } from "./deps.ts";
import { notFound, Refusal } from "./refusal.ts";
import {
  needsNoToken,
  type ObjectKind,
  type Objects,
  type Principal,
  type Rule,
  sees,
  seesOnly,
  tokenOwner,
} from "./rule.ts";

/** Throws where the rule has no place for this principal. */
export function authorize(rule: Rule, principal: Principal): void {
  if (needsNoToken(rule)) return;
  if ("enrolment" in rule) {
    if (principal.kind !== "enrolment") throw forbidden("Only an enrolment token can be exchanged here.");
    return;
  }
  switch (principal.kind) {
    case "token":
      if (!rule.roles.includes(principal.role))
        throw forbidden(`This needs the role ${rule.roles.join(" or ")}; the token's is ${principal.role}.`);
      if (rule.everyones && seesOnly(principal) !== null)
        throw forbidden("This tells of everyone's: a viewer needs the subject * for it.");
      return;
    case "attempt":
      if (!rule.attempt) throw forbidden("The token of a run's attempt cannot do this.");
      return;
    case "enrolment":
      throw forbidden("An enrolment token can only be exchanged, at POST /runner/enroll.");
    default:
      principal satisfies never;
  }
}

/** The object that the path names, where the principal may see it. Everything else is one and the same 404. */
export async function loadObject(
  rule: Rule,
  principal: Principal,
  params: Readonly<Record<string, string>>,
  deps: RecordDeps,
): Promise<Objects[ObjectKind] | undefined> {
  if (!("roles" in rule) || rule.object === undefined) return undefined;
  const name = rule.object === "hook" || rule.object === "webhook" ? "name" : `${rule.object}_id`;
  const given = params[name] ?? "";
  const id = rule.object === "token" && given === "self" ? ownTokenId(principal) : given;
  const found = isId(id) ? await load(rule.object, id, deps) : null;
  if (found === null || found.owner === null || !sees(principal, found.owner))
    throw notFound(rule.object, `path.${name}`);
  if (principal.kind === "attempt" && !isOfRun(principal.run.run_id, found.object))
    throw notFound(rule.object, `path.${name}`);
  return found.object;
}

/** A run reaches itself and the runs that it has started. */
function isOfRun(run_id: string, object: Objects[ObjectKind]): boolean {
  return (
    "run_id" in object && (object.run_id === run_id || ("parent_run_id" in object && object.parent_run_id === run_id))
  );
}

/** Who has a token need not know its id. */
function ownTokenId(principal: Principal): string {
  return principal.kind === "token" ? principal.token_id : "";
}

/** Ids of ours, and whatever others may once have given: short and printable. */
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
      // the list goes backwards from a place, and just after an id is that id with something behind it; ids that derive
      // from it have a dot there
      const [token] = await read.tokens({ before: `${id}!`, limit: 1 });
      return token?.token_id === id ? { object: token, owner: tokenOwner(token) } : null;
    }
    case "hook": {
      const found = await read.hook(id);
      return found && { object: found.hook, owner: found.hook.created_by };
    }
    case "webhook": {
      const found = await read.webhook(id);
      return found && { object: found.webhook, owner: found.webhook.created_by };
    }
    case "delivery": {
      const found = await read.delivery(id);
      if (found === null) return null;
      const { owner, ...delivery } = found;
      return { object: delivery, owner };
    }
  }
}

function forbidden(detail: string): Refusal {
  return new Refusal(403, "DROVER-API-011", detail, {
    faults: [{ path: "header.authorization", message: "not allowed with this token" }],
  });
}
