import { textOf } from "./json.ts";
import type { OfferedTool, ToolCall } from "./script.ts";

type Translate = (input: ToolCall["input"]) => Readonly<Record<string, unknown>>;

/** For each neutral tool, the names that clients use, most specific first. */
const known: Readonly<Record<string, readonly (readonly [name: string, translate: Translate])[]>> = {
  write_file: [
    ["Write", ({ path, content }) => ({ file_path: path, content })],
    ["write_file", ({ path, content }) => ({ file_path: path, content })],
    ["write", ({ path, content }) => ({ filePath: path, content })],
    ["apply_patch", ({ path, content }) => ({ text: addFile(textOf(path), textOf(content)) })],
  ],
  read_file: [
    ["Read", ({ path }) => ({ file_path: path })],
    ["read_file", ({ path }) => ({ file_path: path })],
    ["read", ({ path }) => ({ filePath: path })],
  ],
  shell: [
    ["Bash", ({ command }) => ({ command, description: "Run a command" })],
    ["run_shell_command", ({ command }) => ({ command, description: "Run a command" })],
    ["exec_command", ({ command }) => ({ cmd: command })],
    ["shell_command", ({ command }) => ({ command })],
    ["shell", ({ command }) => ({ command: ["sh", "-c", command] })],
    ["bash", ({ command }) => ({ command, description: "Run a command" })],
  ],
};

/** Shell commands for clients that lack the tool. */
const byShell: Readonly<Record<string, (input: ToolCall["input"]) => string>> = {
  write_file: ({ path, content }) => `printf %s ${quoted(textOf(content))} > ${quoted(textOf(path))}`,
  read_file: ({ path }) => `cat ${quoted(textOf(path))}`,
};

/** Translates the call to this client's tools. Returns null if it offers none that fits. */
export function translate(call: ToolCall, offered: readonly OfferedTool[]): (ToolCall & { takesText: boolean }) | null {
  const { name, input } = call;
  if (call.exact || !(name in known))
    return { ...call, takesText: offered.find((tool) => tool.name === name)?.takesText ?? false };
  for (const [theirs, toInput] of known[name] ?? []) {
    const tool = offered.find((each) => each.name === theirs);
    if (tool) return { name: theirs, input: toInput(input), takesText: tool.takesText };
  }
  const command = byShell[name]?.(input);
  return command === undefined ? null : translate({ name: "shell", input: { command } }, offered);
}

function addFile(path: string, content: string): string {
  const lines = content.replace(/\n$/, "").split("\n");
  return ["*** Begin Patch", `*** Add File: ${path}`, ...lines.map((line) => `+${line}`), "*** End Patch", ""].join(
    "\n",
  );
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
