import type { Executor } from "../../../model/executor.ts";
import { defineExecutor, type Done, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { requireClient } from "./locate-client.ts";
import { openConversation } from "./conversation.ts";
import type { ClientDefinition, ClientHost, Turn } from "./definition.ts";
import { decideOutcome } from "./decide-outcome.ts";
import { createExitGrace } from "./exit-grace.ts";
import { authorizeFullAuto } from "./permission-modes.ts";
import { createLineReader } from "./line-reader.ts";
import { acquireStartLock } from "./start-lock.ts";

export interface AgentClient {
  readonly definition: ClientDefinition;
  executor(host: ClientHost): Executor;
  /** Calls the client once inside another executor's run. */
  runTurn(job: Job, host: ClientHost, overrides?: Partial<Pick<Turn, "prompt" | "config">>): Promise<Done>;
}

export function defineClient(definition: ClientDefinition): AgentClient {
  /** Calls `onSession` with the client's session id, however the call ends. */
  async function call(job: Job, host: ClientHost, turn: Turn, onSession?: (id: string) => void): Promise<Done> {
    const program = requireClient(definition, turn.config, host.env);
    await authorizeFullAuto(job, turn, host);
    const { args, env, stdin, reader, exclusiveStartIn, readAfterExit } = await definition.prepare(turn);
    const lines = createLineReader(reader, job.context);
    const exitGrace = createExitGrace(lines);
    const releaseStartLock =
      exclusiveStartIn === undefined ? () => undefined : await acquireStartLock(exclusiveStartIn);
    const result = await job
      .runCli({
        command: [program, ...args],
        stdin: stdin ?? turn.prompt,
        ...(env === undefined ? {} : { env }),
        onLine(line) {
          releaseStartLock();
          return exitGrace.read(line);
        },
        check: false,
        enough: exitGrace.expired,
      })
      .finally(() => {
        releaseStartLock();
        exitGrace.stop();
        const session = lines.getSession();
        if (session !== null && getSessionPattern(definition).test(session)) onSession?.(session);
      });
    const killedAfterResult = exitGrace.expired.aborted && !job.signal.aborted;
    if (killedAfterResult)
      await job.context.emit({ type: "system", subtype: "ended_after_result", data: { name: definition.name } });
    for (const line of (await readAfterExit?.()) ?? []) await lines.read(line);
    return decideOutcome(definition, result, lines, killedAfterResult ? null : result.ended.stopped);
  }

  return {
    definition,
    runTurn: (job, host, overrides = {}) => call(job, host, createTurn(definition, job, host, overrides)),
    executor: (host) =>
      defineExecutor({
        name: definition.name,
        can: { ...definition.can, state: true },
        variables: definition.variables,
        async execute(job) {
          const conversation = await openConversation(definition, job, createTurn(definition, job, host, {}));
          if (conversation.done !== null) return conversation.done;
          const saved: { session: string | null; done: Done | null } = { session: null, done: null };
          try {
            return (saved.done = await call(job, host, conversation.turn, (id) => (saved.session = id)));
          } finally {
            await conversation.save(saved.session, saved.done);
          }
        },
      }),
  };
}

function createTurn(definition: ClientDefinition, job: Job, host: ClientHost, overrides: Partial<Turn>): Turn {
  const { invocation } = job;
  const prompt = overrides.prompt ?? job.prompt;
  const unsupported = (["provider", "output_schema"] as const).filter((key) => invocation.agent[key] !== undefined);
  if (unsupported.length > 0)
    throw new RunFailure(
      "refused",
      `${definition.name} does not support ${unsupported.join(" or ")}: it uses its own provider and does not check its answer against a schema. Remove ${unsupported.length > 1 ? "them" : "it"} from the agent.`,
    );
  if (prompt.trim() === "") throw new RunFailure("refused", "The prompt is empty. Pass a prompt for the run.");
  return {
    invocation,
    prompt,
    systemPrompt: job.systemPrompt,
    mode: invocation.agent.permissions?.mode ?? "acceptEdits",
    session: findSessionToContinue(definition, job),
    fork: invocation.mode === "fork" && !invocation.continues,
    config: invocation.executor_config,
    workDir: job.workDir,
    homeDir: job.homeDir,
    tmpDir: job.tmpDir,
    outputLines: (command) => readOutputLines(job, command),
    env: host.env,
    isRoot: host.isRoot,
    ...overrides,
  };
}

/** The most characters that readOutputLines accepts. */
const maxOutputCharacters = 1_000_000;

/** Fails the run if the output is incomplete, so that a partial list is never mistaken for the whole one. */
async function readOutputLines(job: Job, command: readonly [string, ...string[]]): Promise<string[] | null> {
  const lines: string[] = [];
  let length = 0;
  const toFailure = (reason: string, cause?: unknown): RunFailure =>
    new RunFailure(
      "refused",
      `The output of \`${command.join(" ")}\` is needed before the client can start: ${reason}`,
      {
        cause,
      },
    );
  const onLine = (line: string): void => {
    length += line.length + 1;
    if (length > maxOutputCharacters) throw toFailure(`it is longer than ${maxOutputCharacters} characters.`);
    lines.push(line);
  };
  try {
    const { stdout } = await job.runCli({ command, onLine, timeoutMs: 60_000 });
    // An overlong line is missing from `lines` but present, perhaps truncated, in stdout.
    if (stdout !== lines.map((line) => `${line}\n`).join("")) throw toFailure("one of its lines is too long.");
    return lines;
  } catch (error) {
    if (!(error instanceof RunFailure) || error.reason === "refused" || job.signal.aborted) throw error;
    if (error.reason === "command_not_found") return null;
    throw toFailure(error.message, error);
  }
}

/**
 * Rejects an id that does not match the client's pattern: the client could parse it as an option, or silently start a
 * new session.
 */
function findSessionToContinue(definition: ClientDefinition, { invocation }: Job): string | null {
  if (invocation.mode === "start" && !invocation.continues) return null;
  const id = invocation.executor_session_id;
  if (id !== null && getSessionPattern(definition).test(id)) return id;
  const { name } = definition;
  throw new RunFailure(
    "session_not_found",
    id === null
      ? `The session has no conversation to continue: ${name} stopped before it reported a session id. Start a new run.`
      : `${JSON.stringify(id.slice(0, 100))} is not a session id of ${name}. Start a new run.`,
  );
}

function getSessionPattern({ sessionShape = uuid }: ClientDefinition): RegExp {
  return sessionShape;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
