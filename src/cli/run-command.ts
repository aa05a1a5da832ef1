import { RequestError } from "../model/errors.ts";
import { type CommandInput, type CommandSpec, parseOptions, readWords } from "./options.ts";
import { reportError } from "./report-error.ts";

/** Parses, runs and ends the process with the command's exit code. Nothing of ours is left to wait for. */
export async function runCommand(spec: CommandSpec, argv: readonly string[]): Promise<never> {
  process.exit(await exitCodeOf(spec, argv));
}

async function exitCodeOf(spec: CommandSpec, argv: readonly string[]): Promise<number> {
  try {
    const parsed = parseOptions(argv, spec);
    if (parsed.options["help"]) {
      const { showHelp } = await import("./help.ts");
      return showHelp(spec);
    }
    const positionals = readWords(parsed, spec);
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
      message: `The directory this was called in is gone: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Go to one that exists, and call it again.",
      cause,
    });
  }
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes("--json");
}
