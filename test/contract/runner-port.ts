import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { expect } from "vitest";
import type { Decision } from "../../src/model/executor.ts";
import type { RegistrationResult, RunnerPort, SaveSessionRequest } from "../../src/model/runner-port.ts";
import { maxStateBytes } from "../../src/model/session-state.ts";
import type { Run } from "../../src/model/run.ts";
import type { Case } from "./contract.ts";

/** A port, with functions to submit runs behind it and to inspect what happened to them. */
export interface RunnerPortSubject {
  port: RunnerPort;
  register(runner_key: string): Promise<RegistrationResult>;
  /** With `attended`, of an agent whose questions go to people. */
  submit(attended?: boolean): Promise<string>;
  answer(run_id: string, request_id: string, answer: Decision): Promise<void>;
  input(run_id: string, text: string): Promise<void>;
  stop(run_id: string): Promise<void>;
  run(run_id: string): Promise<Run>;
  /** The numbers of the log, oldest first. */
  seqs(run_id: string): Promise<number[]>;
}

const never = new AbortController().signal;
const at = "2026-01-01T00:00:00.000Z";
const line = (n: number) => ({ n, at, event: { type: "output", stream: "stdout", text: `${n}\n` } as const });
const completedOutcome = { status: "completed", exit_code: 0, text: "ok" } as const;

/** Registers a runner and claims one run for it. */
async function claimOne(subject: RunnerPortSubject, attended = false) {
  const { runner_id, epoch } = await subject.register("key-a");
  const run_id = await subject.submit(attended);
  const { claims } = await subject.port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, never);
  expect(claims.map((claim) => claim.run_id)).toEqual([run_id]);
  const heldRuns: [string, number][] = [[run_id, claims[0]!.attempt]];
  const base = { runner_id, epoch, held: heldRuns, as_of_claim: "c1", events: [], partials: [], finishes: [] };
  return { run_id, attempt: claims[0]!.attempt, runner_id, epoch, base };
}

/** Claims one run that then asks a question. */
async function askOne(subject: RunnerPortSubject) {
  const claimed = await claimOne(subject, true);
  const { run_id, attempt, base } = claimed;
  const events = [
    { n: 1, at, event: { type: "permission_request", request_id: "q", tool: "shell", input: { a: 1 } } as const },
    { n: 2, at, event: { type: "status", status: "waiting", reason: "shell" } as const },
  ];
  await subject.port.report({ ...base, events: [{ run_id, attempt, events }] });
  expect((await subject.run(run_id)).status).toBe("waiting");
  const { runner_id, epoch } = claimed;
  const poll = (claim_id: string, ack_order = 0) =>
    subject.port.poll({ runner_id, epoch, claim_id, want: 0, ack_order }, AbortSignal.timeout(60_000));
  return { ...claimed, poll };
}

function createFile(text: string) {
  const bytes = Buffer.from(text);
  return { bytes: [bytes], sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length };
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Creates a save with these events, whose state says how far it goes. */
function createState(
  of: Pick<SaveSessionRequest, "runner_id" | "epoch" | "run_id" | "attempt">,
  ns: readonly number[],
  changes: Partial<SaveSessionRequest> = {},
): SaveSessionRequest {
  const n = ns.at(-1)!;
  const bytes = base64(`state ${n}`);
  return { ...of, n, events: ns.map(line), format: "test-1", bytes, portable: true, files: [], ...changes };
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
    title: "refuses an older epoch",
    async check(make) {
      const { port, register } = await make();
      const { runner_id, epoch } = await register("key-a");
      await register("key-a");
      await expect(port.poll({ runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 }, never)).rejects.toThrow();
    },
  },
  {
    title: "answers the same claim_id with the same claims",
    async check(make) {
      const subject = await make();
      const { run_id, runner_id, epoch } = await claimOne(subject);
      const repeatedPoll = await subject.port.poll({ runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 }, never);
      expect(repeatedPoll.claims.map((claim) => claim.run_id)).toEqual([run_id]);
    },
  },
  {
    title: "hands out a claim again that never arrived, without using up a retry",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch, base } = await claimOne(subject);
      // Until it is answered: a poll abandoned before it arrived does not count.
      await subject.port.poll({ runner_id, epoch, claim_id: "c2", want: 0, ack_order: 0 }, never);
      await subject.port.report({ ...base, held: [], as_of_claim: "c2" });
      const { claims } = await subject.port.poll({ runner_id, epoch, claim_id: "c3", want: 1, ack_order: 0 }, never);
      expect(claims[0]).toMatchObject({ run_id });
      expect(claims[0]!.attempt).toBeGreaterThan(attempt);
      expect((await subject.run(run_id)).failures).toBe(0);
    },
  },
  {
    title: "a claim_id that returned nothing returns what comes later",
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
    title: "a report as of one claim takes nothing back that a later claim returned, however late it arrives",
    async check(make) {
      const subject = await make();
      const { run_id, runner_id, epoch, base } = await claimOne(subject);
      const poll = (claim_id: string, signal: AbortSignal) =>
        subject.port.poll({ runner_id, epoch, claim_id, want: 1, ack_order: 0 }, signal).catch(() => null);
      await poll("c2", AbortSignal.timeout(50));
      // Made now, while c2 is still polling.
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
    title: "stores events sent twice once, and refuses a gap",
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
    title: "fences a stale attempt, which leaves no trace in the log",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, base } = await claimOne(subject);
      const seqsBefore = await subject.seqs(run_id);
      const { fenced } = await subject.port.report({
        ...base,
        events: [{ run_id, attempt: attempt + 1, events: [line(1)] }],
      });
      expect(fenced).toContainEqual({ run_id, attempt: attempt + 1 });
      expect(await subject.seqs(run_id)).toEqual(seqsBefore);
    },
  },
  {
    title: "treats a repeated finish as one",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, base } = await claimOne(subject);
      const finish = { ...base, finishes: [{ run_id, attempt, last_n: 0, outcome: completedOutcome }] };
      await subject.port.report(finish);
      const seqs = await subject.seqs(run_id);
      await subject.port.report(finish);
      expect(await subject.run(run_id)).toMatchObject({ status: "completed", exit_code: 0 });
      expect(await subject.seqs(run_id)).toEqual(seqs);
    },
  },
  {
    title: "stores a complete file, even if sent twice, and refuses one that differs from what was announced",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const { bytes, sha256, size } = createFile("hello");
      const send = (changes: { sha256?: string; size?: number } = {}) =>
        subject.port.upload(
          { runner_id, epoch, run_id, attempt, sha256, size, ...changes },
          Readable.from(bytes),
          AbortSignal.timeout(60_000),
        );
      expect(await send()).toEqual({ upload: "stored" });
      expect(await send()).toEqual({ upload: "stored" });
      expect(await send({ sha256: "0".repeat(64) })).toEqual({ upload: "mismatch" });
      expect(await send({ size: size + 1 })).toEqual({ upload: "mismatch" });
      expect(await send({ size: size - 1 })).toEqual({ upload: "mismatch" });
    },
  },
  {
    title: "fences a file of a stale attempt or another epoch",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const { bytes, sha256, size } = createFile("hello");
      const request = { runner_id, epoch, run_id, attempt, sha256, size };
      const send = (changes: object) =>
        subject.port.upload({ ...request, ...changes }, Readable.from(bytes), AbortSignal.timeout(60_000));
      expect(await send({ attempt: attempt + 1 })).toEqual({ upload: "fenced" });
      expect(await send({ epoch: epoch - 1 })).toEqual({ upload: "fenced" });
      expect(await send({ run_id: "nobody" })).toEqual({ upload: "fenced" });
    },
  },
  {
    title: "tells a runner which of its sessions no longer exist",
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
    title: "stores a session's state with the events it covers, and loads it with its files",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const of = { runner_id, epoch, run_id, attempt };
      const nothing = { load: "loaded", state: null, files: [], more: false };
      expect(await subject.port.loadSession(of)).toEqual(nothing);
      expect(await subject.port.saveSession(createState(of, [1, 2]))).toEqual({ save: "saved" });
      expect(await subject.seqs(run_id)).toHaveLength((await subject.seqs(run_id)).at(-1)!);
      const stored = await subject.seqs(run_id);
      const files = [
        { path: "a/b.txt", type: "file", bytes: base64("b") },
        { path: "run.sh", type: "executable", bytes: base64("#!/bin/sh") },
      ] as const;
      expect(await subject.port.saveSession(createState(of, [2, 3], { files: [...files] }))).toEqual({ save: "saved" });
      expect(await subject.seqs(run_id)).toHaveLength(stored.length + 1);
      expect(await subject.port.loadSession(of)).toEqual({
        ...nothing,
        state: { format: "test-1", bytes: base64("state 3"), portable: true, here: true },
      });
      const loadAfter = async (files_after: string) => subject.port.loadSession({ ...of, files_after });
      expect(await loadAfter("")).toEqual({ ...nothing, files });
      expect(await loadAfter("a/b.txt")).toEqual({ ...nothing, files: [files[1]] });
      const removedFiles = [{ path: "a/b.txt", type: null }];
      expect(await subject.port.saveSession(createState(of, [4], { files: removedFiles }))).toEqual({ save: "saved" });
      expect(await loadAfter("")).toEqual({ ...nothing, files: [files[1]] });
    },
  },
  {
    title: "stores parts of a state before it, and keeps them when the files of the work directory are replaced",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const of = { runner_id, epoch, run_id, attempt };
      const part = (text: string) => ({ path: `/${text.repeat(64)}`, type: "file" as const, bytes: base64(text) });
      const save = (n: number, changes: Partial<SaveSessionRequest>) =>
        subject.port.saveSession({ ...createState(of, n === 0 ? [] : [n], changes), n });
      const paths = async () => {
        const loaded = await subject.port.loadSession({ ...of, files_after: "" });
        return loaded.load === "fenced" ? null : loaded.files.map(({ path }) => path);
      };
      expect(await save(0, { bytes: null, files: [part("a"), part("b")] })).toEqual({ save: "saved" });
      expect(await subject.port.loadSession(of)).toMatchObject({ state: null });
      const file = { path: "x", type: "file" as const, bytes: base64("x") };
      expect(await save(1, { files: [file] })).toEqual({ save: "saved" });
      expect(await save(0, { bytes: null, files: [part("c")] })).toEqual({ save: "saved" });
      expect(await subject.port.loadSession(of)).toMatchObject({ state: { bytes: base64("state 1") } });
      const replaced = [
        { ...file, path: "y" },
        { path: part("a").path, type: null },
      ];
      expect(await save(2, { files: replaced, all_files: true })).toEqual({ save: "saved" });
      expect(await paths()).toEqual([part("b").path, part("c").path, "y"]);
    },
  },
  {
    title: "stores neither a state nor its events if there is a gap or it is too large",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const of = { runner_id, epoch, run_id, attempt };
      const seqsBefore = await subject.seqs(run_id);
      expect(await subject.port.saveSession(createState(of, [2]))).toEqual({ save: "gap", n: 0 });
      expect(await subject.port.saveSession({ ...createState(of, [1]), n: 2 })).toEqual({ save: "gap", n: 0 });
      const bytes = Buffer.alloc(maxStateBytes + 1).toString("base64");
      expect(await subject.port.saveSession(createState(of, [1], { bytes }))).toEqual({ save: "too_large" });
      expect(await subject.port.loadSession(of)).toMatchObject({ state: null });
      expect(await subject.seqs(run_id)).toEqual(seqsBefore);
    },
  },
  {
    title: "does not let a repeated or late state replace a newer one",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      const of = { runner_id, epoch, run_id, attempt };
      for (const ns of [[1], [2], [1]])
        expect(await subject.port.saveSession(createState(of, ns))).toEqual({ save: "saved" });
      expect(await subject.port.loadSession(of)).toMatchObject({ state: { bytes: base64("state 2") } });
    },
  },
  {
    title: "lets a stale attempt, another epoch and a finished run neither load nor save a state",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch, base } = await claimOne(subject);
      const of = { runner_id, epoch, run_id, attempt };
      await subject.port.saveSession(createState(of, [1]));
      for (const changes of [{ attempt: attempt + 1 }, { epoch: epoch - 1 }, { run_id: "nobody" }]) {
        expect(await subject.port.loadSession({ ...of, ...changes })).toEqual({ load: "fenced" });
        expect(await subject.port.saveSession(createState({ ...of, ...changes }, [2]))).toEqual({ save: "fenced" });
      }
      expect(await subject.port.loadSession(of)).toMatchObject({ state: { bytes: base64("state 1") } });
      await subject.port.report({ ...base, finishes: [{ run_id, attempt, last_n: 1, outcome: completedOutcome }] });
      expect(await subject.port.loadSession(of)).toEqual({ load: "fenced" });
      expect(await subject.port.saveSession(createState(of, [2]))).toEqual({ save: "fenced" });
    },
  },
  {
    title: "orders an answer to the runner of a waiting run, again until it is acknowledged",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, poll } = await askOne(subject);
      const answer = { decision: "allow", input: { a: 2 } } as const;
      await subject.answer(run_id, "q", answer);
      const first = await poll("c2");
      expect(first.orders).toMatchObject([{ run_id, attempt, answer: { request_id: "q", answer } }]);
      expect((await poll("c3")).orders).toEqual(first.orders);
    },
  },
  {
    title: "orders input to the runner of an active run",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, poll } = await askOne(subject);
      await subject.input(run_id, "go on");
      expect((await poll("c2")).orders).toMatchObject([{ run_id, attempt, input: { text: "go on" } }]);
    },
  },
  {
    title: "hands out a parked run again with its answer, without a free slot or a used attempt",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, base, runner_id, epoch, poll } = await askOne(subject);
      const of = { runner_id, epoch, run_id, attempt };
      expect(await subject.port.saveSession(createState(of, [3]))).toEqual({ save: "saved" });
      const outcome = { status: "parked", why: "approval" } as const;
      const park = { ...base, finishes: [{ run_id, attempt, last_n: 3, outcome }] };
      for (let i = 0; i < 2; i += 1) {
        await subject.port.report(park);
        expect((await subject.run(run_id)).status).toBe("parked");
      }
      await subject.answer(run_id, "q", { decision: "deny", message: "no" });
      const { claims } = await poll("c2");
      expect(claims).toMatchObject([{ run_id, attempt: attempt + 1, invocation: { continues: true } }]);
      expect(claims[0]!.invocation.answers).toEqual([
        { request_id: "q", tool: "shell", input: { a: 1 }, answer: { decision: "deny", message: "no" } },
      ]);
      expect((await subject.run(run_id)).failures).toBe(0);
    },
  },
  {
    title: "orders a stop again until it is acknowledged",
    async check(make) {
      const subject = await make();
      const { run_id, attempt, runner_id, epoch } = await claimOne(subject);
      await subject.stop(run_id);
      const poll = (claim_id: string, ack_order: number) =>
        subject.port.poll({ runner_id, epoch, claim_id, want: 0, ack_order }, AbortSignal.timeout(60_000));
      const first = await poll("c2", 0);
      expect(first.orders).toMatchObject([{ run_id, attempt, stop: "user" }]);
      expect((await poll("c3", 0)).orders).toEqual(first.orders);
    },
  },
];
