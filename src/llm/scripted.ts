import { readFile } from "node:fs/promises";
import * as z from "zod";
import { checkShape } from "../define/check-shape.ts";
import { parseYaml } from "../define/structured-text.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import type { Conversation, Generate, GenerateResult, Part } from "./conversation.ts";
import type { ProviderDefinition } from "./definition.ts";
import { cancelled } from "./faults.ts";

const call = z.strictObject({ name: z.string(), input: z.unknown().optional() });
const usage = z.strictObject({ input_tokens: z.number(), output_tokens: z.number() });
const failure = z.strictObject({
  kind: z.enum(["authentication", "rate_limit", "network", "invalid_response"]),
  message: z.string(),
  retry_after_ms: z.number().optional(),
});
// Not a union of answers and errors, so that an error message names the key instead of the whole turn.
const turnSchema = z
  .strictObject({
    text: z.string().optional(),
    tools: z.array(call).optional(),
    usage: usage.optional(),
    error: failure.optional(),
  })
  .refine((turn) => Object.keys(turn).some((key) => key !== "usage"), { message: "a turn needs text, tools or error" })
  .refine((turn) => turn.error === undefined || (turn.text ?? turn.tools ?? turn.usage) === undefined, {
    message: "a turn with `error` cannot have other keys",
  });
const scriptSchema = z.strictObject({ turns: z.array(turnSchema).min(1) });
type Script = z.output<typeof scriptSchema>;

/** Answers with the turns of a script, for experiments and tests. The last turn is repeated. */
export const scripted: ProviderDefinition = {
  keyVariable: null,
  defaultModel: "script",
  async open({ script }) {
    return { generate: createScriptedGenerate(script === undefined ? builtInScript : await readScript(script)) };
  },
};

/** Used if no script file is configured. */
const builtInScript: Script = {
  turns: [
    {
      text: "This is the built-in script of the scripted provider. Set `script` to a file with turns to change its answers.",
    },
  ],
};

export function createScriptedGenerate({ turns }: Script): Generate {
  return async (conversation, { signal, onText }) => {
    if (conversation.purpose === "summary") return buildAnswer({ text: "(a summary)" }, 0, conversation);
    const { messages, compacted } = conversation;
    const answerCount = (compacted?.answers ?? 0) + messages.filter(({ role }) => role === "assistant").length;
    const turn = turns[Math.min(answerCount, turns.length - 1)]!;
    if (turn.error) return { ok: false, error: dropUndefined(turn.error) };
    if (!signal.aborted && turn.text !== undefined) onText?.(turn.text);
    if (signal.aborted) return { ok: false, error: cancelled };
    return buildAnswer(turn, answerCount, conversation);
  };
}

function buildAnswer(
  { text, tools = [], usage: scriptedUsage }: Script["turns"][number],
  answerCount: number,
  { messages }: Conversation,
): GenerateResult {
  const parts: Part[] = text === undefined ? [] : [{ type: "text", text }];
  for (const [index, { name, input }] of tools.entries())
    parts.push({ type: "tool_use", tool_use_id: `scripted_${answerCount + 1}_${index + 1}`, name, input: input ?? {} });
  const tokens = scriptedUsage ?? {
    input_tokens: JSON.stringify(messages).length >> 2,
    output_tokens: (text ?? "").length >> 2,
  };
  return { ok: true, parts, usage: { ...tokens, cost_usd: 0 }, stop: "end" };
}

async function readScript(file: string): Promise<Script> {
  const script = await checkScript(file);
  if (script.ok) return script.value;
  const [first] = script.faults;
  throw new RequestError({
    code: "DROVER-LLM-004",
    field: "script",
    message: `The script cannot be used: ${script.faults
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
  const toFault = (line: number | null, message: string, next: string) => ({
    ok: false as const,
    faults: [{ code: shape.wrongValue, file, line, path: "", message, next }],
  });
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return toFault(null, `the script cannot be read (${reason})`, "Create the file, or correct `script`.");
  }
  const yaml = parseYaml(text);
  if (yaml.ok) {
    const checkResult = checkShape(yaml.value, shape, { ...yaml, file });
    // A turn with a misspelt key may look empty too, so report only the key.
    const hasInnerFault = (path: string): boolean =>
      !checkResult.ok && checkResult.faults.some((fault) => fault.path.startsWith(`${path}.`));
    return checkResult.ok
      ? checkResult
      : { ok: false, faults: checkResult.faults.filter(({ path }) => !hasInnerFault(path)) };
  }
  const { line, problem } = yaml.faults[0]!;
  return toFault(line, `the script is not valid YAML or JSON: ${problem}`, `Fix line ${line}.`);
}

const shape = {
  schema: scriptSchema,
  unknownKey: "DROVER-LLM-004",
  wrongValue: "DROVER-LLM-004",
  manual: "docs/models.md",
} as const;

function dropUndefined<T extends { retry_after_ms?: number | undefined }>({ retry_after_ms, ...rest }: T) {
  return retry_after_ms === undefined ? rest : { ...rest, retry_after_ms };
}
