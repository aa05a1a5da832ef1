import type { Executor } from "../../../model/executor.ts";
import { defineExecutor, type Done, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { findClient } from "./binary.ts";
import { openConversation } from "./conversation.ts";
import type { ClientDefinition, ClientHost, Turn } from "./definition.ts";
import { judge } from "./judge.ts";
import { createLinger } from "./linger.ts";
import { allowFullAuto } from "./permission-modes.ts";
import { createLineReader } from "./read-lines.ts";
import { startInTurn } from "./start-in-turn.ts";

export interface Client {
  readonly definition: ClientDefinition;
  executor(host: ClientHost): Executor;
  /** One call of it inside a run, for executors that use a client as their engine. */
  takeTurn(job: Job, host: ClientHost, change?: Partial<Pick<Turn, "prompt" | "config">>): Promise<Done>;
}

export function defineClient(definition: ClientDefinition): Client {
  /** `onSession` gets the client's own id of the session, however the call ends. */
  async function call(job: Job, host: ClientHost, turn: Turn, onSession?: (id: string) => void): Promise<Done> {
    const program = findClient(definition, turn.config, host.env);
    await allowFullAuto(job, turn, host);
    const { args, env, stdin, reader, startsAloneIn, lookBack } = await definition.prepare(turn);
    const lines = createLineReader(reader, job.context);
    const linger = createLinger(lines);
    const begun = startsAloneIn === undefined ? () => undefined : await startInTurn(startsAloneIn);
    const result = await job
      .runCli({
        command: [program, ...args],
        stdin: stdin ?? turn.prompt,
        ...(env === undefined ? {} : { env }),
        onLine(line) {
          begun();
          return linger.read(line);
        },
        check: false,
        enough: linger.enough,
      })
      .finally(() => {
        begun();
        linger.stop();
        const session = lines.session();
        if (session !== null && shapeOf(definition).test(session)) onSession?.(session);
      });
    const sentAway = linger.enough.aborted && !job.signal.aborted;
    if (sentAway)
      await job.context.emit({ type: "system", subtype: "ended_after_result", data: { name: definition.name } });
    for (const line of (await lookBack?.()) ?? []) await lines.read(line);
    return judge(definition, result, lines, sentAway ? null : result.ended.stopped);
  }

  return {
    definition,
    takeTurn: (job, host, change = {}) => call(job, host, turnOf(definition, job, host, change)),
    executor: (host) =>
      defineExecutor({
        name: definition.name,
        can: { ...definition.can, state: true },
        variables: definition.variables,
        async execute(job) {
          const conversation = await openConversation(definition, job, turnOf(definition, job, host, {}));
          if (conversation.done !== null) return conversation.done;
          const wrote: { session: string | null; done: Done | null } = { session: null, done: null };
          try {
            return (wrote.done = await call(job, host, conversation.turn, (id) => (wrote.session = id)));
          } finally {
            await conversation.save(wrote.session, wrote.done);
          }
        },
      }),
  };
}

function turnOf(definition: ClientDefinition, job: Job, host: ClientHost, change: Partial<Turn>): Turn {
  const { invocation } = job;
  const prompt = change.prompt ?? job.prompt;
  const useless = (["provider", "output_schema"] as const).filter((key) => invocation.agent[key] !== undefined);
  if (useless.length > 0)
    throw new RunFailure(
      "refused",
      `${definition.name} has no use for ${useless.join(" and ")} of the agent: its provider is its own, and what it answers is not checked. Remove that.`,
    );
  if (prompt.trim() === "") throw new RunFailure("refused", "There is nothing to do: give the run a prompt.");
  return {
    invocation,
    prompt,
    systemPrompt: job.systemPrompt,
    mode: invocation.agent.permissions?.mode ?? "acceptEdits",
    session: sessionOf(definition, job),
    fork: invocation.mode === "fork" && !invocation.continues,
    config: invocation.executor_config,
    workDir: job.workDir,
    homeDir: job.homeDir,
    tmpDir: job.tmpDir,
    linesOf: (command) => linesOf(job, command),
    env: host.env,
    isRoot: host.isRoot,
    ...change,
  };
}

/** More characters are no list. */
const maxListing = 1_000_000;

/** What could not be read to its end is never taken for all: the run is refused. */
async function linesOf(job: Job, command: readonly [string, ...string[]]): Promise<string[] | null> {
  const lines: string[] = [];
  let length = 0;
  const refuse = (why: string, cause?: unknown): RunFailure =>
    new RunFailure("refused", `What \`${command.join(" ")}\` says has to be known first: ${why}`, { cause });
  const onLine = (line: string): void => {
    length += line.length + 1;
    if (length > maxListing) throw refuse(`it is longer than ${maxListing} characters.`);
    lines.push(line);
  };
  try {
    const { stdout } = await job.runCli({ command, onLine, timeoutMs: 60_000 });
    // a line that was too long to be handed on is in there, or its beginning is
    if (stdout !== lines.map((line) => `${line}\n`).join("")) throw refuse("it is too long.");
    return lines;
  } catch (error) {
    if (!(error instanceof RunFailure) || error.reason === "refused" || job.signal.aborted) throw error;
    if (error.reason === "command_not_found") return null;
    throw refuse(error.message, error);
  }
}

/** An id of another shape is none of its own: a client may take it for an option, or for no id and begin anew in silence. */
function sessionOf(definition: ClientDefinition, { invocation }: Job): string | null {
  if (invocation.mode === "start" && !invocation.continues) return null;
  const id = invocation.executor_session_id;
  if (id !== null && shapeOf(definition).test(id)) return id;
  const { name } = definition;
  throw new RunFailure(
    "session_not_found",
    id === null
      ? `The session has no conversation to go on from: ${name} never got as far as naming it. Start a new run.`
      : `${JSON.stringify(id.slice(0, 100))} is not an id that ${name} gives its sessions. Start a new run.`,
  );
}

function shapeOf({ sessionShape = uuid }: ClientDefinition): RegExp {
  return sessionShape;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
