import { type CommandSpec, commonOptions } from "./options.ts";
import { withDroverCommand } from "./drover-command.ts";
import { write } from "./io.ts";

export function showHelp(spec: CommandSpec): number {
  const options = Object.entries({ ...spec.options, ...commonOptions });
  const rows = options.map(([name, option]): [string, string] => [
    `${option.short ? `-${option.short}, ` : ""}--${name}${option.value === undefined ? "" : ` ${option.value}`}`,
    option.about,
  ]);
  const help = [
    `drover ${spec.name}: ${spec.summary}`,
    "",
    "Examples",
    ...columns(spec.examples.map(([command, note]): [string, string] => [command, `# ${note}`])),
    "",
    "Usage",
    `  drover ${spec.name} ${spec.takes} [options]`,
    "",
    "Options",
    ...columns(rows),
    "",
  ].join("\n");
  write(1, withDroverCommand(help));
  return 0;
}

/** Two aligned columns, indented by two spaces. */
export function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd());
}
