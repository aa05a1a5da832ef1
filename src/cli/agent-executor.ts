import { resolve } from "node:path";
import { findLocal } from "../local.ts";
import { followRun } from "./follow-run.ts";
import { isTerminal, tryWrite } from "./io.ts";
import { loadSpec } from "./load-spec.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { checkWorkspace } from "./check-workspace.ts";
import { shellQuote } from "./shell-quote.ts";
import { resolveTrust } from "./resolve-trust.ts";
import { readSessionFile, sessionFile, writeSessionFile } from "./session-file.ts";
import { findSpecSession } from "./find-spec-session.ts";
import { readStdinParameters } from "./stdin-parameters.ts";
import { submitOptions, submitRun } from "./submit-run.ts";
import { reportOnStderr } from "./with-coordinator.ts";

export const agentExecutor: CommandSpec = {
  name: "agent-executor",
  summary: "run the agent of one file in one folder, with our own loop on any model; needs no coordinator",
  takes: "SPEC WORKSPACE [SESSION]",
  arity: [2, 3],
  examples: [
    [`echo '{"TASK_FILE": "t.md"}' | drover agent-executor agents/developer.md ws`, "parameters as JSON on stdin"],
    ["drover agent-executor agents/developer.md ws --provider scripted < p.json", "try it without a key"],
    ['drover agent-executor agents/developer.md ws --prompt "Now add tests"', "resume what ws/.session names"],
    ["drover agent-executor agents/developer.md ws 019a3f < p.json", "resume this session"],
  ],
  options: {
    provider: { value: "P", about: "whose model (default: the agent's provider, the profile's, that of drover.yaml)" },
    new: { about: "begin a session, whatever WORKSPACE/.session names" },
    prompt: submitOptions["prompt"]!,
    timeout: submitOptions["timeout"]!,
  },
  run: runSpec,
};

/** Whatever can be checked is checked before the record is opened: what is refused leaves no run behind. */
async function runSpec(input: CommandInput): Promise<number> {
  const { options, cwd, env } = input;
  const [spec = "", folder = "", session] = input.positionals;
  if (session !== undefined && options["new"])
    throw usage("SESSION resumes a session, and --new begins one.", "agent-executor", "--new");
  const workspace = checkWorkspace(resolve(cwd, folder));
  const local = await resolveTrust(input, await findLocal(env, cwd), { profiles: true });
  const { agent, ...profile } = await loadSpec(resolve(cwd, spec), text(options, "provider"), input, local);
  const parameters = isTerminal(0) ? {} : await readStdinParameters(process.stdin);
  const hint = session === undefined && !options["new"] ? readSessionFile(workspace) : null;
  const named = session === undefined ? hint !== null && { id: hint, file: sessionFile(workspace) } : { id: session };
  const isWordless = !text(options, "prompt") && Object.keys(parameters).length === 0;
  const tell = (message: string): void => void (options["quiet"] || tryWrite(2, `drover: ${message}\n`));
  const { withLocalRunner } = await import("./with-local-runner.ts");
  return withLocalRunner(
    input,
    local,
    { spec: { profile, workspace } },
    async (client) => {
      const use = { agent: agent.name, profile: profile.loaded.name, workspace };
      const found = named ? await findSpecSession(client, named, use) : null;
      if (isWordless && (found || !agent.first_message))
        throw usage("Tell the agent what to do: parameters as JSON on stdin, or --prompt.", "agent-executor", "stdin");
      if (found && hint) tell(`resuming session ${hint}, which .session names; --new begins another`);
      const submitted = await submitRun(
        client,
        { ...input, options: { ...options, params: JSON.stringify(parameters), "project-dir": workspace } },
        { agent_name: agent.name, ...(found ? { mode: "resume", session_id: found.session_id } : {}) },
      );
      const session_id = submitted.run.session_id!;
      const keep = (): void => {
        try {
          writeSessionFile(workspace, session_id);
        } catch (error) {
          if (!(error instanceof Error)) throw error;
          tell(`warning: ${sessionFile(workspace)} cannot be written: ${error.message}. The session is ${session_id}.`);
        }
      };
      // at once, for a run that is killed; and at its end, as the agent may have removed or changed it
      keep();
      const resume = `drover agent-executor ${[spec, folder].map(shellQuote).join(" ")}`;
      return followRun(client, { ...submitted, resume }, input).finally(keep);
    },
    reportOnStderr,
  );
}
