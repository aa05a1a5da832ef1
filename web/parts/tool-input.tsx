import { summarizeInput } from "../data/activity.ts";
import { Code, Diff, toDiff } from "./code.tsx";
import { JsonTree } from "./json-tree.tsx";

/** A tool's input, shown as a diff, as a command, as lines or as JSON. */
export function ToolInput({ input }: { input: unknown }) {
  const diff = toDiff(input);
  if (diff !== null)
    return (
      <>
        <p className="mono">{summarizeInput(input)}</p>
        <Diff text={diff} />
      </>
    );
  const command = typeof input === "object" && input !== null ? (Reflect.get(input, "command") as unknown) : null;
  if (typeof command === "string") return <Code text={command} />;
  const lines = toLines(input);
  return lines === null ? <JsonTree value={input} /> : <Code text={lines} />;
}

/** A tool's output. */
export function ToolOutput({ value }: { value: unknown }) {
  return typeof value === "string" ? <Code text={value} /> : <JsonTree value={value} />;
}

/** Formats a small flat object as `key: value` lines, which are easier to read than JSON. Returns null for other input. */
function toLines(input: unknown): string | null {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return null;
  const entries = Object.entries(input);
  const isFlat = entries.every(([, value]) => typeof value !== "object" || value === null);
  if (!isFlat || entries.length === 0 || entries.length > 6) return null;
  return entries.map(([key, value]) => `${key}: ${String(value)}`).join("\n");
}
