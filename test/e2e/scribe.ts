import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * An executor that does what its prompt says, as JSON: `{pieces, say, tool, output, files, big, wait, remember, text}`.
 * It remembers the prompts of each session and answers with them unless the prompt has a `text`.
 */
const moduleText = `
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

export const createExecutor = (config) => ({
  name: "scribe",
  can: { resume: true, fork: config.fork !== false, ask: false, input: false },
  async run(invocation, context) {
    if (invocation.mode === "fork" && config.fork === false)
      return { status: "failed", reason: "refused", message: "scribe cannot fork a session.", exit_code: null };
    const order = JSON.parse(invocation.prompt ?? "{}");
    const before = invocation.executor_session_id;
    const own = invocation.mode === "resume" ? before : "scribe-" + invocation.run_id;
    await context.emit({ type: "system", subtype: "init", executor_session_id: own });
    for (const text of order.pieces ?? []) {
      context.partial({ kind: "assistant", text });
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    if (order.say) await context.emit({ type: "assistant", text: order.say });
    if (order.tool) {
      await context.emit({ type: "tool_use", tool_use_id: "t1", name: order.tool, input: { command: "ls" } });
      await context.emit({ type: "tool_result", tool_use_id: "t1", is_error: false, output: "a.txt" });
    }
    if (order.output) await context.emit({ type: "output", stream: "stdout", text: order.output });
    const found = [];
    const contents = Object.entries(order.files ?? {}).map(([path, text]) => [path, Buffer.from(text, "base64")]);
    if (order.big) contents.push(["big.txt", Buffer.alloc(order.big, "0123456789abcdef\\n")]);
    for (const [path, bytes] of contents) {
      const file = join(context.dirs.tmp, path);
      mkdirSync(dirname(file), { recursive: true });
      await writeFile(file, bytes);
      found.push({ path, size: bytes.length, open: () => open(file) });
    }
    if (found.length > 0) {
      const kept = await context.keepFiles(found);
      if (!kept.ok) return { status: "failed", reason: "upload_failed", message: kept.message, exit_code: null };
    }
    if (order.wait && !context.signal.aborted)
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
    if (context.signal.aborted) return { status: "cancelled", by: "user" };
    const memory = (id) => join(config.memory, id);
    const past = before && existsSync(memory(before)) ? JSON.parse(readFileSync(memory(before), "utf8")) : [];
    writeFileSync(memory(own), JSON.stringify([...past, order.remember ?? "?"]));
    const text = order.text ?? [...past, order.remember ?? "?"].join(" > ");
    return { status: "completed", exit_code: null, text };
  },
});
`;

/**
 * Writes the profiles `scribe` and `stiff` (which cannot fork), each with an agent of the same name in its own directory.
 */
export function writeScribe(cwd: string): void {
  for (const folder of ["profiles", "agents-scribe", "agents-stiff", "memory"]) mkdirSync(join(cwd, folder));
  writeFileSync(join(cwd, "scribe.mjs"), moduleText);
  for (const [name, config] of Object.entries({ scribe: {}, stiff: { fork: false } })) {
    const profile = {
      type: name,
      module: "./scribe.mjs",
      agents_dir: `./agents-${name}`,
      config: { memory: join(cwd, "memory"), ...config },
    };
    writeFileSync(join(cwd, "profiles", `${name}.json`), JSON.stringify(profile));
    writeFileSync(join(cwd, `agents-${name}`, `${name}.yaml`), `name: ${name}\ntype: autonomous\nexecutor: ${name}\n`);
  }
}

/** Encodes contents for the prompt's `files`. */
export function encodeFiles(files: Record<string, string | Uint8Array>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map(([path, content]) => [path, Buffer.from(content).toString("base64")]),
  );
}
