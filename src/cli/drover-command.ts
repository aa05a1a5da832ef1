import { basename, dirname, sep } from "node:path";

/**
 * How the user can start Drover again, for printed commands. `npx drover` if it was started by npx, or from bin/ by a user
 * whose current directory is in Drover's own checkout. Otherwise `drover`.
 */
export function findDroverCommand(script = process.argv[1] ?? "", cwd = getCurrentDirectory()): string {
  if (script.includes(`${sep}node_modules${sep}.bin${sep}`)) return "npx drover";
  const checkout = dirname(dirname(script));
  const isInCheckout = basename(script) === "drover.js" && `${cwd}${sep}`.startsWith(`${checkout}${sep}`);
  return isInCheckout ? "npx drover" : "drover";
}

/** Replaces `drover` in the commands of a text that was written without knowing how Drover was started. */
export function withDroverCommand(text: string): string {
  const command = findDroverCommand();
  return command === "drover" ? text : text.replaceAll(/(^|[\s`(])drover (?=[a-z-])/g, `$1${command} `);
}

function getCurrentDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    // The directory was deleted.
    if (error instanceof Error) return "";
    throw error;
  }
}
