import { randomBytes } from "node:crypto";
import type { ErrorCode } from "../model/errors.ts";
import type { Hook } from "../model/hook.ts";
import { fillTemplate, resolveValues, getValueAt } from "../model/json-values.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Run } from "../model/run.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { SubmitFault } from "../submit/submit-fault.ts";
import { createRateLimit } from "./rate-limit.ts";
import type { SecretBox } from "./secret-box.ts";
import { openTemplate } from "./template-secrets.ts";
import { signatureToleranceMs, verifyGithub, verifyTimestamped } from "./signature.ts";

export interface ReceiveDeps {
  store: Pick<Store, "read">;
  secrets: SecretBox;
  submit(
    request: RunRequest,
    who: { subject: string; role: "user" },
  ): Promise<{ ok: true; run: Pick<Run, "run_id"> } | { ok: false; fault: SubmitFault }>;
  now: () => Date;
  vault?: Vault;
}

/** A delivery as received, before its signature is checked. */
export interface IncomingDelivery {
  name: string;
  headers: {
    "drover-signature"?: string | undefined;
    "x-hub-signature-256"?: string | undefined;
    "x-github-delivery"?: string | undefined;
    "x-github-event"?: string | undefined;
  };
  body: Uint8Array;
  /** Throws if the body is not JSON. Called only after the signature was verified. */
  parse(body: Uint8Array): unknown;
}

export type ReceiveResult =
  | { ok: true; run_id: string | null; skipped?: string }
  | { ok: false; fault: SubmitFault; retry_after_seconds?: number };

export interface Receiver {
  /**
   * Call before reading a body into memory, and call the returned function when the body is complete or abandoned. No
   * signature has been checked at this point, so if too many bodies are being read, the oldest is abandoned: an
   * unauthenticated sender cannot lock others out.
   */
  startBody(abandon: () => void): () => void;
  receive(incoming: IncomingDelivery): Promise<ReceiveResult>;
}

const maxConcurrentBodies = 64;
/** How long the key of a timestamped delivery is stored to detect replays. Much longer than the tolerance, in case clocks differ. */
const timestampedKeyMs = 12 * signatureToleranceMs;
/** GitHub's signature has no timestamp, so only the stored key detects a replay. */
const githubKeyMs = 400 * 24 * 60 * 60 * 1000;
const ratePerHook = { burst: 60, perMinute: 120 };

/** Handles POST /hooks/{name}. Reveals nothing to a sender without a valid signature, not even whether the hook exists. */
export function createReceiver({ store, secrets, submit, now, vault }: ReceiveDeps): Receiver {
  const takeToken = createRateLimit(ratePerHook, () => now().getTime());
  const unknownSecret = randomBytes(32).toString("hex");
  const activeBodies = new Set<() => void>();
  return {
    receive,
    startBody(abandon) {
      const [abandonOldest] = activeBodies;
      if (abandonOldest !== undefined && activeBodies.size >= maxConcurrentBodies) {
        activeBodies.delete(abandonOldest);
        abandonOldest();
      }
      activeBodies.add(abandon);
      return () => void activeBodies.delete(abandon);
    },
  };

  async function receive(incoming: IncomingDelivery): Promise<ReceiveResult> {
    const { name, headers, body } = incoming;
    const stored = await store.read.hook(name);
    const hook = stored?.hook.enabled === true ? stored.hook : null;
    const secret = hook !== null && stored !== null ? secrets.open(`hook ${name}`, stored.secret) : unknownSecret;
    const verification =
      hook?.scheme === "github"
        ? verifyGithub(headers["x-hub-signature-256"], secret, body)
        : verifyTimestamped(headers["drover-signature"], secret, body, now());
    if (hook === null || (!verification.ok && verification.reason === "wrong"))
      return refuse(401, "DROVER-HOK-001", invalidSignature);
    if (!verification.ok) return refuse(401, "DROVER-HOK-002", staleSignature);
    const waitMs = takeToken(name);
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1000);
      return { ...refuse(429, "DROVER-HOK-005", describeTooMany(seconds)), retry_after_seconds: seconds };
    }
    if (body.length > hook.max_body_kb * 1024)
      return refuse(
        413,
        "DROVER-API-003",
        `The body is larger than the ${hook.max_body_kb} KB that this hook accepts.`,
      );
    const document = incoming.parse(body);
    const skipped = findSkipReason(hook, headers["x-github-event"], document);
    if (skipped !== null) return { ok: true, run_id: null, skipped };
    const { parameters, prompt } = openTemplate(hook.agent_name, hook, vault);
    const { values, missing } = resolveValues(parameters, document);
    if (missing.length > 0) return refuseMissingValues(missing);
    const submitted = await submit(
      {
        agent_name: hook.agent_name,
        parameters: values,
        ...(prompt === null ? {} : { prompt: fillTemplate(prompt, document).slice(0, maxPromptLength) }),
        ...(hook.attended === null ? {} : { attended: hook.attended }),
        mode: "start",
        priority: 0,
        trigger_type: "webhook",
        settles: { hook: name, ...buildReplayKeys(hook, headers["x-github-delivery"], verification.key, now()) },
      },
      { subject: hook.created_by, role: "user" },
    );
    return submitted.ok ? { ok: true, run_id: submitted.run.run_id } : submitted;
  }
}

/** The same limit as in a run request. */
const maxPromptLength = 1_000_000;
const invalidSignature = "There is no hook with that name, or the signature is not valid for it.";
const staleSignature =
  "The signature is valid, but its timestamp differs from this coordinator's clock by more than five minutes.";
const describeTooMany = (seconds: number): string =>
  `This hook accepts ${ratePerHook.perMinute} deliveries a minute; try again in ${seconds} s.`;

function buildReplayKeys(
  { scheme }: Hook,
  delivery: string | undefined,
  key: string,
  now: Date,
): { keys: string[]; until: number } {
  if (scheme === "drover") return { keys: [key], until: now.getTime() + timestampedKeyMs };
  return { keys: [key, ...(delivery ? [`delivery ${delivery}`] : [])], until: now.getTime() + githubKeyMs };
}

function findSkipReason({ scheme, events, only }: Hook, event: string | undefined, document: unknown): string | null {
  if (scheme === "github" && (events === null ? event === "ping" : !events.includes(event ?? "")))
    return `The hook ignores the event ${(event ?? "(none)").slice(0, 100)}.`;
  for (const [pointer, values] of Object.entries(only ?? {})) {
    const value = getValueAt(document, pointer);
    if (!values.some((allowed) => allowed === value))
      return `The hook ignores deliveries with this value at ${pointer}.`;
  }
  return null;
}

function refuseMissingValues(missing: readonly { name: string; from: string }[]): ReceiveResult {
  const faults = missing.map(({ name, from }) => ({
    path: `body${from}`,
    message: `missing; the parameter ${name} takes its value from here`,
  }));
  return refuse(400, "DROVER-HOK-004", `The body has no value at ${missing[0]!.from}.`, faults);
}

function refuse(
  status: number,
  code: ErrorCode,
  message: string,
  faults: SubmitFault["faults"] = [],
): Extract<ReceiveResult, { ok: false }> {
  return { ok: false, fault: { status, code, message, faults } };
}
