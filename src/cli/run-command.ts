import { RequestError } from "../model/errors.ts";
import { type CommandInput, type CommandSpec, parseOptions, readPositionals } from "./options.ts";
import { reportError } from "./report-error.ts";

/** Parses the arguments, runs the command and exits the process with its exit code. */
export async function runCommand(spec: CommandSpec, argv: readonly string[]): Promise<never> {
  process.exit(await runForExitCode(spec, argv));
}

async function runForExitCode(spec: CommandSpec, argv: readonly string[]): Promise<number> {
  try {
    const parsed = parseOptions(argv, spec);
    if (parsed.options["help"]) {
      const { showHelp } = await import("./help.ts");
      return showHelp(spec);
    }
    const positionals = readPositionals(parsed, spec);
    const input: CommandInput = { ...parsed, positionals, env: { ...process.env }, cwd: workingDirectory() };
    return await spec.run(input);
  } catch (error) {
    return reportError(error, wantsJson(argv));
  }
}

function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new RequestError({
      code: "DROVER-USE-003",
      message: `The current directory no longer exists: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Change to an existing directory and try again.",
      cause,
    });
  }
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes("--json");
}
