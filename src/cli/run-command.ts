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
    const createInput = (positionals: string[]): CommandInput => ({
      ...parsed,
      positionals,
      env: { ...process.env },
      cwd: getWorkingDirectory(),
    });
    if (parsed.options["help"]) {
      if (spec.showHelpFor && parsed.positionals.length > 0)
        return await spec.showHelpFor(createInput(parsed.positionals));
      const { showHelp } = await import("./help.ts");
      return showHelp(spec);
    }
    return await spec.run(createInput(readPositionals(parsed, spec)));
  } catch (error) {
    return reportError(error, wantsJson(argv));
  }
}

function getWorkingDirectory(): string {
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
