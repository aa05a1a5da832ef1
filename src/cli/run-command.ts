import { isClosedPipe } from "./io.ts";
import { type CommandInput, type CommandSpec, parseOptions } from "./options.ts";
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
    const input: CommandInput = { ...parsed, env: { ...process.env }, cwd: process.cwd() };
    return await spec.run(input);
  } catch (error) {
    // the reader went away, as in `drover runs list | head -1`: nobody is left to tell
    if (isClosedPipe(error)) return 141;
    return reportError(error, wantsJson(argv));
  }
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? undefined : end).includes("--json");
}
