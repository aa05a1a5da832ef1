import { toText } from "./json.ts";
import type { OfferedTool, ToolCall } from "./script.ts";

type Translate = (input: ToolCall["input"]) => Readonly<Record<string, unknown>>;

/** For each neutral tool, the names that clients use, most specific first. */
const clientTools: Readonly<Record<string, readonly (readonly [name: string, translate: Translate])[]>> = {
  write_file: [
    ["Write", ({ path, content }) => ({ file_path: path, content })],
    ["write_file", ({ path, content }) => ({ file_path: path, content })],
    ["write", ({ path, content }) => ({ filePath: path, content })],
    ["apply_patch", ({ path, content }) => ({ text: addFile(toText(path), toText(content)) })],
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
  write_file: ({ path, content }) => `printf %s ${quoted(toText(content))} > ${quoted(toText(path))}`,
  read_file: ({ path }) => `cat ${quoted(toText(path))}`,
};

/** Translates the call to this client's tools. Returns null if it offers none that fits. */
export function translate(call: ToolCall, offered: readonly OfferedTool[]): (ToolCall & { takesText: boolean }) | null {
  const { name, input } = call;
  if (call.exact || !(name in clientTools))
    return { ...call, takesText: offered.find((tool) => tool.name === name)?.takesText ?? false };
  for (const [clientName, toInput] of clientTools[name] ?? []) {
    const tool = offered.find((each) => each.name === clientName);
    if (tool) return { name: clientName, input: toInput(input), takesText: tool.takesText };
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
