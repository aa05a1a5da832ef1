import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { expect } from "vitest";
import type { Registered, RunnerPort } from "../../src/model/runner-port.ts";
import type { Run } from "../../src/model/run.ts";
import type { Case } from "./contract.ts";

/** A port, a way to ask for runs behind it, and to look at what became of them. */
export interface RunnerPortSubject {
  port: RunnerPort;
  register(runner_key: string): Promise<Registered>;
  submit(): Promise<string>;
  stop(run_id: string): Promise<void>;
  run(run_id: string): Promise<Run>;
  /** The log's own numbers, oldest first. */
  seqs(run_id: string): Promise<number[]>;
}

const never = new AbortController().signal;
const at = "2026-01-01T00:00:00.000Z";
const line = (n: number) => ({ n, at, event: { type: "output", stream: "stdout", text: `${n}\n` } as const });
const done = { status: "completed", exit_code: 0, text: "ok" } as const;

/** A registered runner that holds one claimed run. */
async function claimOne(subject: RunnerPortSubject) {
  const { runner_id, epoch } = await subject.register("key-a");
  const run_id = await subject.submit();
  const { claims } = await subject.port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, never);
  expect(claims.map((claim) => claim.run_id)).toEqual([run_id]);
  const held: [string, number][] = [[run_id, claims[0]!.attempt]];
  const base = { runner_id, epoch, held, as_of_claim: "c1", events: [], partials: [], finishes: [] };
  return { run_id, attempt: claims[0]!.attempt, runner_id, epoch, base };
}

function fileOf(text: string) {
  const bytes = Buffer.from(text);
  return { bytes: [bytes], sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length };
}

export const runnerPortContract: readonly Case<RunnerPortSubject>[] = [
  {
    title: "a registration with the same key is the same runner in a newer epoch",
    async check(make) {
      const { register } = await make();
      const first = await register("key-a");
      const second = await register("key-a");
      expect(second.runner_id).toBe(first.runner_id);
      expect(second.epoch).toBeGreaterThan(first.epoch);
    },
  },
  {
    title: "an older epoch is refused",
    async check(make) {
      const { port, register } = await make();
      const { runner_id, epoch } = await register("key-a");
      await register("key-a");
      await expect(port.poll({ runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 }, never)).rejects.toThrow();
    },
  },
  {
    title: "the same claim_id is answered with the same claims",
    async check(make) {
      const subject = await make();
      const { run_id, runner_id, epoch } = await claimOne(subject);
      const again = await subject.port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, never);
      expect(again.claims.map((claim) => claim.run_id)).toEqual([run_id]);
    },
  },
  {
    title: "a claim that never arrived is handed out again and costs no retry",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch, base } = await claimOne(subject);
      await subject.port
        .poll({ runner_id, epoch, claim_id: "c2", want: 0, ack_order: 0 }, AbortSignal.timeout(50))
        .catch(() => null);
      await subject.port.report({ ...base, held: [], as_of_claim: "c2" });
      const { claims } = await subject.port.poll({ runner_id, epoch, claim_id: "c3", want: 1, ack_order: 0 }, never);
      expect(claims[0]).toMatchObject({ run_id });
      expect(claims[0]!.attempt).toBeGreaterThan(attempt);
      expect((await subject.run(run_id)).failures).toBe(0);
    },
  },
  {
    title: "a claim_id that brought nothing brings what comes later",
    async check(make) {
      const subject = await make();
      const { runner_id, epoch } = await subject.register("key-a");
      const poll = (signal: AbortSignal) =>
        subject.port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, signal);
      const nothing = { claims: [], orders: [] };
      for (let i = 0; i < 2; i += 1)
        expect(await poll(AbortSignal.timeout(50)).catch(() => nothing)).toMatchObject(nothing);
      const run_id = await subject.submit();
      expect((await poll(never)).claims).toMatchObject([{ run_id, attempt: 1 }]);
    },
  },
  {
    title: "a report as of one claim takes nothing back that a later one brought, however late it comes",
    async check(make) {
      const subject = await make();
      const { run_id, runner_id, epoch, base } = await claimOne(subject);
      const poll = (claim_id: string, signal: AbortSignal) =>
        subject.port.poll({ runner_id, epoch, claim_id, want: 1, ack_order: 0 }, signal).catch(() => null);
      await poll("c2", AbortSignal.timeout(50));
      // made now, while c2 is still being polled with
      await subject.port.report(base);
      const later = await subject.submit();
      expect(await poll("c2", never)).toMatchObject({ claims: [{ run_id: later, attempt: 1 }] });
      await poll("c3", AbortSignal.timeout(50));
      await subject.port.report(base);
      expect((await subject.run(later)).status).toBe("claimed");
      expect((await subject.run(run_id)).status).toBe("claimed");
    },
  },
  {
    title: "events sent twice are stored once, and a gap is not passed over",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, base } = await claimOne(subject);
      const send = (...ns: number[]) =>
        subject.port.report({ ...base, events: [{ run_id, attempt, events: ns.map(line) }] });
      await send(1, 2);
      await send(1, 2);
      const { acked } = await send(4);
      expect(acked).toContainEqual({ run_id, attempt, n: 2 });
      const seqs = await subject.seqs(run_id);
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    },
  },
  {
    title: "a stale attempt is fenced and leaves no trace in the log",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, base } = await claimOne(subject);
      const before = await subject.seqs(run_id);
      const { fenced } = await subject.port.report({
        ...base,
        held: [],
        events: [{ run_id, attempt: attempt + 1, events: [line(1)] }],
      });
      expect(fenced).toContainEqual({ run_id, attempt: attempt + 1 });
      expect(await subject.seqs(run_id)).toEqual(before);
    },
  },
  {
    title: "a finish sent twice is one finish",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, base } = await claimOne(subject);
      const finish = { ...base, finishes: [{ run_id, attempt, last_n: 0, outcome: done }] };
      await subject.port.report(finish);
      const seqs = await subject.seqs(run_id);
      await subject.port.report(finish);
      expect(await subject.run(run_id)).toMatchObject({ status: "completed", exit_code: 0 });
      expect(await subject.seqs(run_id)).toEqual(seqs);
    },
  },
  {
    title: "a file is stored whole, twice as well as once, and what is not as announced is not",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const { bytes, sha256, size } = fileOf("hello");
      const send = (changes: { sha256?: string; size?: number } = {}) =>
        subject.port.upload(
          { runner_id, epoch, run_id, attempt, sha256, size, ...changes },
          Readable.from(bytes),
          AbortSignal.timeout(10_000),
        );
      expect(await send()).toEqual({ upload: "stored" });
      expect(await send()).toEqual({ upload: "stored" });
      expect(await send({ sha256: "0".repeat(64) })).toEqual({ upload: "mismatch" });
      expect(await send({ size: size + 1 })).toEqual({ upload: "mismatch" });
      expect(await send({ size: size - 1 })).toEqual({ upload: "mismatch" });
    },
  },
  {
    title: "a file of a stale attempt, or of another epoch, is fenced",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const { bytes, sha256, size } = fileOf("hello");
      const request = { runner_id, epoch, run_id, attempt, sha256, size };
      const send = (changes: object) =>
        subject.port.upload({ ...request, ...changes }, Readable.from(bytes), AbortSignal.timeout(10_000));
      expect(await send({ attempt: attempt + 1 })).toEqual({ upload: "fenced" });
      expect(await send({ epoch: epoch - 1 })).toEqual({ upload: "fenced" });
      expect(await send({ run_id: "nobody" })).toEqual({ upload: "fenced" });
    },
  },
  {
    title: "a runner is told which of its sessions are no more",
    async check(make) {
      const subject = await make();
      const { run_id, runner_id, epoch } = await claimOne(subject);
      const { session_id } = await subject.run(run_id);
      const session_ids = ["never-was", session_id ?? ""];
      expect(await subject.port.sessions({ runner_id, epoch, session_ids })).toEqual({ gone: ["never-was"] });
      await expect(subject.port.sessions({ runner_id, epoch: epoch - 1, session_ids })).rejects.toThrow();
    },
  },
  {
    title: "a stop is ordered again until it is acknowledged",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      await subject.stop(run_id);
      const poll = (claim_id: string, ack_order: number) =>
        subject.port.poll({ runner_id, epoch, claim_id, want: 0, ack_order }, AbortSignal.timeout(5000));
      const first = await poll("c2", 0);
      expect(first.orders).toMatchObject([{ run_id, attempt, stop: "user" }]);
      expect((await poll("c3", 0)).orders).toEqual(first.orders);
    },
  },
];
