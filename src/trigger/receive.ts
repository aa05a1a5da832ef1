import { randomBytes } from "node:crypto";
import type { ErrorCode } from "../model/errors.ts";
import type { Hook } from "../model/hook.ts";
import { fillTemplate, resolveValues, valueAt } from "../model/json-values.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Run } from "../model/run.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { SubmitFault } from "../submit/submit-fault.ts";
import { createRateLimit } from "./rate-limit.ts";
import type { SecretBox } from "./secret-box.ts";
import { openTemplate } from "./template-secrets.ts";
import { toleranceMs, verifyGithub, verifyTimestamped } from "./signature.ts";

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

/** Of one request, as far as it has been read. */
export interface Incoming {
  name: string;
  headers: {
    "drover-signature"?: string | undefined;
    "x-hub-signature-256"?: string | undefined;
    "x-github-delivery"?: string | undefined;
    "x-github-event"?: string | undefined;
  };
  body: Uint8Array;
  /** Refuses what is not JSON. Called only for a sender who can sign. */
  parse(body: Uint8Array): unknown;
}

export type Received =
  | { ok: true; run_id: string | null; skipped?: string }
  | { ok: false; fault: SubmitFault; retry_after_seconds?: number };

export interface Receiver {
  /**
   * Called before a body is read into memory. Call what it returns when the body is there or given up. Nothing is signed at
   * this point: when too many bodies are being read, the oldest is given up, so that a stranger cannot lock others out.
   */
  enter(giveUp: () => void): () => void;
  receive(incoming: Incoming): Promise<Received>;
}

const mostAtOnce = 64;
/** A replay within the tolerance finds the key; an hour is longer than that by any clock. */
const keepTimedMs = 12 * toleranceMs;
/** GitHub's signature has no time, so nothing else tells a replay. */
const keepGithubMs = 400 * 24 * 60 * 60 * 1000;
const rateOfOne = { burst: 60, perMinute: 120 };

/** What POST /hooks/{name} does with a body: who cannot sign learns nothing, not even whether there is such a hook. */
export function createReceiver({ store, secrets, submit, now, vault }: ReceiveDeps): Receiver {
  const rate = createRateLimit(rateOfOne, () => now().getTime());
  const nobodys = randomBytes(32).toString("hex");
  const reading = new Set<() => void>();
  return {
    receive,
    enter(giveUp) {
      const [longest] = reading;
      if (longest !== undefined && reading.size >= mostAtOnce) {
        reading.delete(longest);
        longest();
      }
      reading.add(giveUp);
      return () => void reading.delete(giveUp);
    },
  };

  async function receive(incoming: Incoming): Promise<Received> {
    const { name, headers, body } = incoming;
    const found = await store.read.hook(name);
    const hook = found?.hook.enabled === true ? found.hook : null;
    const secret = hook !== null && found !== null ? secrets.open(`hook ${name}`, found.secret) : nobodys;
    const verified =
      hook?.scheme === "github"
        ? verifyGithub(headers["x-hub-signature-256"], secret, body)
        : verifyTimestamped(headers["drover-signature"], secret, body, now());
    if (hook === null || (!verified.ok && verified.why === "wrong")) return refuse(401, "DROVER-HOK-001", notSigned);
    if (!verified.ok) return refuse(401, "DROVER-HOK-002", tooOld);
    const wait = rate(name);
    if (wait > 0) {
      const seconds = Math.ceil(wait / 1000);
      return { ...refuse(429, "DROVER-HOK-005", tooMany(seconds)), retry_after_seconds: seconds };
    }
    if (body.length > hook.max_body_kb * 1024)
      return refuse(413, "DROVER-API-003", `The body is larger than the ${hook.max_body_kb} KB that this hook takes.`);
    const document = incoming.parse(body);
    const skipped = whySkipped(hook, headers["x-github-event"], document);
    if (skipped !== null) return { ok: true, run_id: null, skipped };
    const { parameters, prompt } = openTemplate(hook.agent_name, hook, vault);
    const { values, missing } = resolveValues(parameters, document);
    if (missing.length > 0) return lacks(missing);
    const submitted = await submit(
      {
        agent_name: hook.agent_name,
        parameters: values,
        ...(prompt === null ? {} : { prompt: fillTemplate(prompt, document).slice(0, longestPrompt) }),
        ...(hook.attended === null ? {} : { attended: hook.attended }),
        mode: "start",
        priority: 0,
        trigger_type: "webhook",
        settles: { hook: name, ...keysOf(hook, headers["x-github-delivery"], verified.key, now()) },
      },
      { subject: hook.created_by, role: "user" },
    );
    return submitted.ok ? { ok: true, run_id: submitted.run.run_id } : submitted;
  }
}

/** As a request's. */
const longestPrompt = 1_000_000;
const notSigned = "There is no hook of that name with that signature.";
const tooOld = "The signature is right, but its time is more than five minutes away from this coordinator's.";
const tooMany = (seconds: number): string =>
  `This hook takes ${rateOfOne.perMinute} deliveries a minute; try again in ${seconds} s.`;

function keysOf(
  { scheme }: Hook,
  delivery: string | undefined,
  key: string,
  now: Date,
): { keys: string[]; until: number } {
  if (scheme === "drover") return { keys: [key], until: now.getTime() + keepTimedMs };
  return { keys: [key, ...(delivery ? [`delivery ${delivery}`] : [])], until: now.getTime() + keepGithubMs };
}

function whySkipped({ scheme, events, only }: Hook, event: string | undefined, document: unknown): string | null {
  if (scheme === "github" && (events === null ? event === "ping" : !events.includes(event ?? "")))
    return `The hook makes no run of the event ${(event ?? "(none)").slice(0, 100)}.`;
  for (const [pointer, values] of Object.entries(only ?? {})) {
    const value = valueAt(document, pointer);
    if (!values.some((one) => one === value)) return `The hook makes no run of this value at ${pointer}.`;
  }
  return null;
}

function lacks(missing: readonly { name: string; from: string }[]): Received {
  const faults = missing.map(({ name, from }) => ({
    path: `body${from}`,
    message: `missing; it is the value of ${name}`,
  }));
  return refuse(400, "DROVER-HOK-004", `The body has nothing at ${missing[0]!.from}.`, faults);
}

function refuse(
  status: number,
  code: ErrorCode,
  message: string,
  faults: SubmitFault["faults"] = [],
): Extract<Received, { ok: false }> {
  return { ok: false, fault: { status, code, message, faults } };
}
