import { readFile } from "node:fs/promises";
import * as z from "zod";
import { checkShape } from "../define/check-shape.ts";
import { readYaml } from "../define/structured-text.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import type { Conversation, Generate, Generated, Part } from "./conversation.ts";
import type { ProviderDefinition } from "./definition.ts";
import { cancelled } from "./faults.ts";

const call = z.strictObject({ name: z.string(), input: z.unknown().optional() });
const usage = z.strictObject({ input_tokens: z.number(), output_tokens: z.number() });
const failure = z.strictObject({
  kind: z.enum(["authentication", "rate_limit", "network", "invalid_response"]),
  message: z.string(),
  retry_after_ms: z.number().optional(),
});
// one object instead of a union of answers and errors, so that an error names the key and not the whole turn
const turnSchema = z
  .strictObject({
    text: z.string().optional(),
    tools: z.array(call).optional(),
    usage: usage.optional(),
    error: failure.optional(),
  })
  .refine((turn) => Object.keys(turn).some((key) => key !== "usage"), { message: "a turn needs text, tools or error" })
  .refine((turn) => turn.error === undefined || (turn.text ?? turn.tools ?? turn.usage) === undefined, {
    message: "a turn with error can have nothing else",
  });
const scriptSchema = z.strictObject({ turns: z.array(turnSchema).min(1) });
type Script = z.output<typeof scriptSchema>;

/** Answers with the turns of a script, for experiments and tests. The last turn is repeated. */
export const scripted: ProviderDefinition = {
  variable: null,
  default_model: "script",
  async open({ script }) {
    return { generate: generateFrom(script === undefined ? builtIn : await readScript(script)) };
  },
};

/** Used if no file is named. */
const builtIn: Script = {
  turns: [
    { text: "This is the built-in script of the scripted provider. Name a file with turns to make it say more." },
  ],
};

export function generateFrom({ turns }: Script): Generate {
  return async (conversation, { signal, onText }) => {
    if (conversation.purpose === "summary") return answer({ text: "(a summary)" }, 0, conversation);
    const { messages, compacted } = conversation;
    const answered = (compacted?.answers ?? 0) + messages.filter(({ role }) => role === "assistant").length;
    const turn = turns[Math.min(answered, turns.length - 1)]!;
    if (turn.error) return { ok: false, error: withoutUndefined(turn.error) };
    if (!signal.aborted && turn.text !== undefined) onText?.(turn.text);
    if (signal.aborted) return { ok: false, error: cancelled };
    return answer(turn, answered, conversation);
  };
}

function answer(
  { text, tools = [], usage: used }: Script["turns"][number],
  answered: number,
  { messages }: Conversation,
): Generated {
  const parts: Part[] = text === undefined ? [] : [{ type: "text", text }];
  for (const [at, { name, input }] of tools.entries())
    parts.push({ type: "tool_use", tool_use_id: `scripted_${answered + 1}_${at + 1}`, name, input: input ?? {} });
  const counted = used ?? {
    input_tokens: JSON.stringify(messages).length >> 2,
    output_tokens: (text ?? "").length >> 2,
  };
  return { ok: true, parts, usage: { ...counted, cost_usd: 0 }, stop: "end" };
}

async function readScript(file: string): Promise<Script> {
  const read = await checkScript(file);
  if (read.ok) return read.value;
  const [first] = read.faults;
  throw new RequestError({
    code: "DROVER-LLM-004",
    field: "script",
    message: `The script cannot be used: ${read.faults
      .map(describeFault)
      .join("; ")
      .replace(/[^.?]$/, "$&.")}`,
    next: first!.next,
  });
}

/** Returns the script, or everything that is wrong with its file. */
export async function checkScript(
  file: string,
): Promise<{ ok: true; value: Script } | { ok: false; faults: DefinitionFault[] }> {
  const refused = (line: number | null, message: string, next: string) => ({
    ok: false as const,
    faults: [{ code: shape.wrongValue, file, line, path: "", message, next }],
  });
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    return refused(null, `the script cannot be read (${why})`, "Create the file, or correct `script`.");
  }
  const read = readYaml(text);
  if (read.ok) {
    const checked = checkShape(read.value, shape, { ...read, file });
    // a turn with a misspelt key may also look empty: report only the key
    const isInner = (path: string): boolean =>
      !checked.ok && checked.faults.some((fault) => fault.path.startsWith(`${path}.`));
    return checked.ok ? checked : { ok: false, faults: checked.faults.filter(({ path }) => !isInner(path)) };
  }
  const { line, problem } = read.faults[0]!;
  return refused(line, `the script is not valid YAML or JSON: ${problem}`, `Fix line ${line}.`);
}

const shape = {
  schema: scriptSchema,
  unknownKey: "DROVER-LLM-004",
  wrongValue: "DROVER-LLM-004",
  manual: "docs/models.md",
} as const;

function withoutUndefined<T extends { retry_after_ms?: number | undefined }>({ retry_after_ms, ...rest }: T) {
  return retry_after_ms === undefined ? rest : { ...rest, retry_after_ms };
}
