import { type CommandSpec, commonOptions } from "./options.ts";
import { withDroverCommand } from "./drover-command.ts";
import { isTerminal, write } from "./io.ts";
import { wrapLine } from "./terminal/text-width.ts";

export function showHelp(spec: CommandSpec): number {
  const options = Object.entries({ ...spec.options, ...commonOptions });
  const rows = options.map(([name, option]): [string, string] => [
    `${option.short ? `-${option.short}, ` : ""}--${name}${option.placeholder === undefined ? "" : ` ${option.placeholder}`}`,
    option.description,
  ]);
  const help = [
    ...wrapLine(`drover ${spec.name}: ${spec.summary}`, getHelpWidth()),
    "",
    "Examples",
    ...formatCommentedCommands(spec.examples),
    "",
    "Usage",
    `  drover ${spec.name} ${spec.placeholders} [options]`,
    "",
    "Options",
    ...formatWrappedColumns(rows),
    "",
  ].join("\n");
  write(1, withDroverCommand(help));
  return 0;
}

/** Formats commands, each below a comment. */
export function formatCommentedCommands(rows: readonly (readonly [command: string, comment: string])[]): string[] {
  return rows.flatMap(([command, comment]) => [...wrapLine(`  # ${comment}`, getHelpWidth()), `  ${command}`]);
}

/** Formats two aligned columns. On a terminal, wraps the right one at words. */
export function formatWrappedColumns(
  rows: readonly (readonly [string, string])[],
  maxWidth = getHelpWidth(),
): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  const rightWidth = Math.max(maxWidth - width - 4, minRightWidth);
  return rows.flatMap(([left, right]) =>
    wrapLine(right, rightWidth).map((row, index) => `  ${(index === 0 ? left : "").padEnd(width)}  ${row}`.trimEnd()),
  );
}

const minRightWidth = 24;

/** Limits the width, because very long lines are hard to read. Without a terminal, another program wraps the text. */
function getHelpWidth(): number {
  return isTerminal(1) ? Math.min(Math.max(process.stdout.columns || 80, 60), 100) : Number.POSITIVE_INFINITY;
}

/** Formats two aligned columns, indented by two spaces. */
export function formatColumns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd());
}
