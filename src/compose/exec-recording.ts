import { resolve } from "node:path";
import { tryWrite } from "../cli/io.ts";
import type { CommandInput } from "../cli/options.ts";
import { retainIfDue } from "../cli/retain-if-due.ts";
import { listProtectedPaths } from "../define/protected-paths.ts";
import { type ExecRecord, type ExecRequest, execOnRecord, type NestedAccess } from "../execute/exec.ts";
import type { NestedSink } from "../execute/nested/nested-sink.ts";
import { createExecToken, createLocalIds, type Project, findLocalUser, openLocalStore } from "../local.ts";
import type { Redactor } from "../model/process.ts";
import { looksSecret } from "../model/secret-names.ts";
import { runsDirectory } from "../model/state-layout.ts";
import { findInterruptedExecutions } from "../record/audit/interrupted-executions.ts";
import { getCurrentOwner, type Owner } from "../record/audit/owner.ts";
import type { SqliteStore } from "../record/open.ts";
import { createRedactor } from "../redact/redactor.ts";
import { createNestedSocketPath, openNestedSocket } from "./nested-socket.ts";

/** The record of one command. */
interface ExecRecording {
  /** "execution" if the command is inside a run, whose record contains it. null if the operator has turned the audit off. */
  recordedAs: "run" | "execution" | null;
  /** Redacts the secrets of the caller and of the command. */
  redactor: Redactor;
  /** Runs the command. `wasInterrupted` reports whether a person pressed Ctrl-C. */
  run(signal: AbortSignal, wasInterrupted?: () => boolean): Promise<ExecRecord>;
  close(): Promise<void>;
}

/**
 * Opens the record for a command: the one in the local state directory or, inside a run, the record of that run. Adds the
 * paths to protect from the command to the request.
 */
export async function openExecRecording(
  request: ExecRequest,
  input: CommandInput,
  project: Project,
): Promise<ExecRecording> {
  const nested = await openSinkIfNested(input);
  if (nested) attachToRun(request, nested, input.env);
  const store = !nested && project.config.execution.audit.enabled ? await openLocalStore(project) : null;
  Object.assign(request.options, listProtectedPaths(project.locations.stateDirectory, input.env));
  const key = createExecToken();
  const redactor = createRedactor({
    variables: input.env,
    values: [...listSecrets(request), { name: "DROVER_API_KEY", value: key }],
  });
  const owner = getCurrentOwner();
  return {
    recordedAs: nested ? "execution" : store ? "run" : null,
    redactor,
    run: (signal, wasInterrupted) =>
      execOnRecord(
        request,
        {
          store,
          ...(nested ? { nested } : {}),
          ...createNestedAccess(request, input, project, store !== null, key),
          redactor,
          now: () => new Date(),
          newId: createLocalIds(),
          owner,
          createdBy: findLocalUser(),
          ...(wasInterrupted ? { wasInterrupted } : {}),
          ...(store
            ? {
                whileRunning: () => runMaintenance("checking for interrupted runs", () => sweep(store, project, owner)),
              }
            : {}),
        },
        signal,
      ),
    async close() {
      if (store) await runMaintenance("removing old records", () => retainIfDue(store, project, new Date()));
      await store?.close();
    },
  };
}

/** Opens the log of the run that this command is in. The Drover process that started the run records the command. */
async function openSinkIfNested({ env }: CommandInput): Promise<NestedSink | null> {
  const path = env["DROVER_NESTED_LOG"];
  if (!path) return null;
  const { openNestedSink } = await import("../execute/nested/nested-sink.ts");
  return openNestedSink(path);
}

/** Makes the command part of the run. It gets the run's token from `createNestedAccess`, not from this process's environment. */
function attachToRun(
  request: ExecRequest,
  { runId }: NestedSink,
  { DROVER_API_KEY: _key, ...env }: CommandInput["env"],
): void {
  request.parentRunId = runId;
  request.options.parentEnvironment = env;
  if (request.spillDirectory !== null) request.spillDirectory = resolve(env["TMPDIR"] || "/tmp", "drover-spill");
}

/** Creates the environment for Drover commands inside the command. A nested exec passes on the environment of its run. */
function createNestedAccess(
  request: ExecRequest,
  input: CommandInput,
  project: Project,
  isRecorded: boolean,
  key: string,
): { nestedAccess?: NestedAccess } {
  const { env } = input;
  const inherited = ["DROVER_NESTED_LOG", "DROVER_API_URL", "DROVER_API_KEY", "DROVER_ATTEMPT"];
  const runs = runsDirectory(project.locations.stateDirectory);
  if (env["DROVER_NESTED_LOG"]) {
    const variables = Object.fromEntries(inherited.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
    return { nestedAccess: { runs, variables, open: () => async () => undefined } };
  }
  if (!isRecorded) return {};
  // An address that the caller set for the command takes precedence.
  const hasAddress = request.command.environment?.["DROVER_API_URL"] !== undefined;
  const path = createNestedSocketPath(runs, key);
  const variables = { DROVER_API_URL: `unix:${path}`, DROVER_API_KEY: key };
  const serve = async (run_id: string, origin: string) => {
    const { serveInExec } = await import("./serve-in-exec.ts");
    const report = (message: string): void => tryWrite(2, `drover: ${message}\n`);
    return serveInExec({ input, project, run_id, key, origin, report });
  };
  const onError = (error: unknown): void =>
    tryWrite(2, `drover: nested drover commands cannot reach the API: ${toMessage(error)}\n`);
  const open = (run_id: string) => openNestedSocket(path, (origin) => serve(run_id, origin), onError).close;
  return {
    nestedAccess: hasAddress ? { runs, variables: {}, open: () => async () => undefined } : { runs, variables, open },
  };
}

/** Lists the secrets among the command's variables. They are redacted in addition to those of Drover's own environment. */
function listSecrets({ command }: ExecRequest): { name: string; value: string }[] {
  return Object.entries(command.environment ?? {}).flatMap(([name, value]) =>
    looksSecret(name) && value.length >= 6 ? [{ name, value }] : [],
  );
}

/** Runs background maintenance. A failure is reported, but does not fail the command. */
async function runMaintenance(task: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    tryWrite(2, `drover: ${task} failed and will be retried by the next command: ${toMessage(error)}\n`);
  }
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Finishes the records of interrupted commands. This happens while the command runs, so it costs no extra time. */
async function sweep(store: SqliteStore, { locations }: Project, self: Owner): Promise<void> {
  if ((await findInterruptedExecutions(store, self)).length === 0) return;
  const { sweepInterrupted } = await import("../cli/sweep-interrupted.ts");
  await sweepInterrupted(store, locations.stateDirectory);
}
