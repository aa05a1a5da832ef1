import { inputLine } from "../data/activity.ts";
import { Code, Diff, diffOf } from "./code.tsx";
import { JsonTree } from "./json-tree.tsx";

/** A tool's input, shown as a diff or command if it is one. */
export function ToolInput({ input }: { input: unknown }) {
  const diff = diffOf(input);
  if (diff !== null)
    return (
      <>
        <p className="mono">{inputLine(input)}</p>
        <Diff text={diff} />
      </>
    );
  const command = typeof input === "object" && input !== null ? (Reflect.get(input, "command") as unknown) : null;
  if (typeof command === "string") return <Code text={command} />;
  const lines = plainLines(input);
  return lines === null ? <JsonTree value={input} /> : <Code text={lines} />;
}

/** A tool's output. */
export function Output({ value }: { value: unknown }) {
  return typeof value === "string" ? <Code text={value} /> : <JsonTree value={value} />;
}

/** A few short values are easier to read without JSON syntax. */
function plainLines(input: unknown): string | null {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return null;
  const entries = Object.entries(input);
  const plain = entries.every(([, value]) => typeof value !== "object" || value === null);
  if (!plain || entries.length === 0 || entries.length > 6) return null;
  return entries.map(([key, value]) => `${key}: ${String(value)}`).join("\n");
}
