import { bashScript, fishScript, zshScript } from "./completion/scripts.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, usageError } from "./options.ts";

const scripts: Readonly<Record<string, string>> = { bash: bashScript, zsh: zshScript, fish: fishScript };

export const completionsCommand: CommandSpec = {
  name: "completions",
  summary: "print a script that completes commands, options, agents, parameters, runs and more",
  placeholders: "SHELL",
  arity: [1, 1],
  examples: [
    ['eval "$(drover completions bash)"', "in ~/.bashrc"],
    ['eval "$(drover completions zsh)"', "in ~/.zshrc, after compinit"],
    ["drover completions fish > ~/.config/fish/completions/drover.fish", "for fish"],
  ],
  options: {},
  run: printScript,
};

async function printScript({ positionals: [shell = ""] }: CommandInput): Promise<number> {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined)
    throw usageError(`${shell} is not one of ${Object.keys(scripts).join(", ")}.`, "completions", "SHELL");
  write(1, script);
  return 0;
}
