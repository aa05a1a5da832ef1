import { basename, dirname, sep } from "node:path";

/**
 * Finds how the user can start Drover again, for printed commands: with `npx drover` if npx started it, or if it was started
 * from bin/ and the current directory is in Drover's own checkout. Otherwise with `drover`.
 */
export function findDroverCommand(script = process.argv[1] ?? "", cwd = getCurrentDirectory()): string {
  if (script.includes(`${sep}node_modules${sep}.bin${sep}`)) return "npx drover";
  const checkout = dirname(dirname(script));
  const isInCheckout = basename(script) === "drover.js" && `${cwd}${sep}`.startsWith(`${checkout}${sep}`);
  return isInCheckout ? "npx drover" : "drover";
}

/** Replaces `drover` in the commands that the text contains with the command that the user can run. */
export function withDroverCommand(text: string, command = findDroverCommand()): string {
  return command === "drover" ? text : text.replaceAll(/(?<!\bnpx)(^|[\s`(])drover (?=[a-z-])/g, `$1${command} `);
}

function getCurrentDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    // The directory has been deleted.
    if (error instanceof Error) return "";
    throw error;
  }
}
