import { type CommandSpec, commonOptions, type OptionSpec } from "../../src/cli/options.ts";

const intro = `# Every command and option

<!-- Generated from the commands themselves. Update it with: npm test -- test/docs/generated.test.ts -u -->

[Commands](commands.md) explains the commands with examples. This page lists all of them with all their options.
\`drover help COMMAND\` prints the same in a terminal.

## Options of every command
`;

/** The reference page of all commands: the most used first, then in the given order, grouped by their first word. */
export function renderCommands(specs: readonly CommandSpec[]): string {
  const words = new Set(["exec", "run", "runs", ...specs.map(firstWord)]);
  const sections = [...words].flatMap((word) => {
    const group = specs.filter((spec) => firstWord(spec) === word);
    return group.length === 1 && group[0]!.name === word
      ? [renderCommand(group[0]!, "##")]
      : [`## ${word}\n`, ...group.map((spec) => renderCommand(spec, "###"))];
  });
  return [intro, renderOptions(commonOptions), ...sections].join("\n");
}

const firstWord = ({ name }: CommandSpec): string => name.split(" ")[0]!;

function renderCommand({ name, summary, placeholders, options }: CommandSpec, level: string): string {
  const usage = `drover ${name} ${placeholders}`.trim();
  const heading = `${level} ${name}\n\n${toSentence(summary)}\n\nUsage: \`${usage}\`\n`;
  return Object.keys(options).length === 0 ? heading : `${heading}\n${renderOptions(options)}`;
}

function renderOptions(options: Record<string, OptionSpec>): string {
  const rows = Object.entries(options).map(([name, { short, placeholder, description }]) => {
    const spelling = [...(short === undefined ? [] : [`-${short}`]), `--${name}`].join(", ");
    return `| \`${escape(placeholder === undefined ? spelling : `${spelling} ${placeholder}`)}\` | ${escape(description)} |`;
  });
  return `| option | meaning |\n|---|---|\n${rows.join("\n")}\n`;
}

function toSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** A pipe would end the cell, and an angle bracket or asterisk in plain text would be markup. */
function escape(text: string): string {
  return text
    .replaceAll("|", String.raw`\|`)
    .replaceAll("<", "&lt;")
    .replaceAll("*", String.raw`\*`);
}
