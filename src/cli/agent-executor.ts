import { resolve } from "node:path";
import { findProject } from "../local.ts";
import { followRun } from "./follow-run.ts";
import { isTerminal, tryWrite } from "./io.ts";
import { loadAgentFileWithProfile } from "./load-agent-file.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { checkWorkspace } from "./check-workspace.ts";
import { quoteForShell } from "./shell-quote.ts";
import { resolveTrust } from "./resolve-trust.ts";
import { readSessionFile, sessionFile, writeSessionFile } from "./session-file.ts";
import { findResumableSession } from "./find-resumable-session.ts";
import { readStdinParameters } from "./stdin-parameters.ts";
import { submitOptions, submitRun } from "./submit-run.ts";
import { reportOnStderr } from "./with-coordinator.ts";
import { findDroverCommand } from "./drover-command.ts";

export const agentExecutor: CommandSpec = {
  name: "agent-executor",
  summary: "run one agent file in one directory with Drover's own agent loop; needs no coordinator",
  placeholders: "SPEC WORKSPACE [SESSION]",
  arity: [2, 3],
  examples: [
    [`echo '{"TASK_FILE": "t.md"}' | drover agent-executor agents/developer.md ws`, "parameters as JSON on stdin"],
    ["drover agent-executor agents/developer.md ws --provider scripted < p.json", "try it without a key"],
    [
      'drover agent-executor agents/developer.md ws --prompt "Now add tests"',
      "resume the session named in ws/.session",
    ],
    ["drover agent-executor agents/developer.md ws 5c20e9d4 < p.json", "resume this session"],
  ],
  options: {
    provider: {
      placeholder: "P",
      description: "model provider (default: the one in the agent, its profile or drover.yaml)",
    },
    new: { description: "start a new session even if WORKSPACE/.session names one" },
    prompt: submitOptions["prompt"]!,
    timeout: submitOptions["timeout"]!,
  },
  run: runAgentFile,
};

/** Checks as much as possible before it opens the record, so that a rejected request leaves no run behind. */
async function runAgentFile(input: CommandInput): Promise<number> {
  const { options, cwd, env } = input;
  const [file = "", directory = "", sessionArgument] = input.positionals;
  if (sessionArgument !== undefined && options["new"])
    throw usageError("SESSION and --new cannot be used together.", "agent-executor", "--new");
  // An empty path would be the current directory, for example in `drover agent-executor dev.md "$UNSET"`.
  if (directory === "") throw usageError("WORKSPACE is empty.", "agent-executor", "WORKSPACE");
  const workspace = checkWorkspace(resolve(cwd, directory));
  const project = await resolveTrust(input, await findProject(env, cwd), { profiles: true });
  const { agent, ...profile } = await loadAgentFileWithProfile(
    resolve(cwd, file),
    readText(options, "provider"),
    input,
    project,
  );
  const parameters = isTerminal(0) ? {} : await readStdinParameters(process.stdin);
  const savedId = sessionArgument === undefined && !options["new"] ? readSessionFile(workspace) : null;
  const reference =
    sessionArgument === undefined
      ? savedId !== null && { id: savedId, file: sessionFile(workspace) }
      : { id: sessionArgument };
  const hasNoInput = !readText(options, "prompt") && Object.keys(parameters).length === 0;
  const notify = (message: string): void => void (options["quiet"] || tryWrite(2, `drover: ${message}\n`));
  const { withLocalRunner } = await import("./with-local-runner.ts");
  return withLocalRunner(
    input,
    project,
    { preparedAgent: { profile, workspace } },
    async (client) => {
      const required = { agent: agent.name, profile: profile.loaded.name, workspace };
      const session = reference ? await findResumableSession(client, reference, required) : null;
      if (hasNoInput && (session || !agent.first_message))
        throw usageError(
          "The agent has no task. Pass parameters as JSON on stdin, or a --prompt.",
          "agent-executor",
          "stdin",
        );
      if (session && savedId) notify(`resuming session ${savedId} from .session; use --new to start another one`);
      const submitted = await submitRun(
        client,
        { ...input, options: { ...options, params: JSON.stringify(parameters), "project-dir": workspace } },
        { agent_name: agent.name, ...(session ? { mode: "resume", session_id: session.session_id } : {}) },
      );
      const session_id = submitted.run.session_id!;
      const saveSession = (): void => {
        try {
          writeSessionFile(workspace, session_id);
        } catch (error) {
          if (!(error instanceof Error)) throw error;
          notify(`warning: cannot write ${sessionFile(workspace)}: ${error.message}. The session is ${session_id}.`);
        }
      };
      // Save now, in case the run is killed, and again at the end, because the agent may have changed or removed the file.
      saveSession();
      const resume = `${findDroverCommand()} agent-executor ${[file, directory].map(quoteForShell).join(" ")}`;
      return followRun(client, { ...submitted, resume }, input).finally(saveSession);
    },
    reportOnStderr,
  );
}
