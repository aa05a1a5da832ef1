import * as z from "zod";
import type { Effect, Tool, ToolContext } from "../model/tool.ts";
import { toToolFault, ToolFailure } from "./tool-failure.ts";
import type { Workspace } from "./workspace.ts";

/** A file tool before it is bound to a workspace. */
export interface FileTool extends Omit<Tool, "run"> {
  bind(workspace: Workspace): Tool;
}

interface Definition<Input extends z.ZodObject> {
  name: string;
  description: string;
  effect: Effect;
  input: Input;
  run(input: z.output<Input>, context: ToolContext & { workspace: Workspace }): Promise<Record<string, unknown>>;
}

/** Defines a file tool that validates its input and returns expected failures instead of throwing them. */
export function defineFileTool<Input extends z.ZodObject>({
  name,
  description,
  effect,
  input,
  run,
}: Definition<Input>): FileTool {
  const { $schema: _, ...input_schema } = z.toJSONSchema(input, { io: "input" });
  const properties = { name, description, effect, input_schema };
  return {
    ...properties,
    bind: (workspace) => ({
      ...properties,
      async run(rawInput, context) {
        const parsed = input.safeParse(rawInput);
        if (!parsed.success) return { ok: false, error: { code: "invalid_input", message: describe(parsed.error) } };
        const { path } = parsed.data as { path?: string };
        try {
          return { ok: true, ...(await run(parsed.data, { ...context, workspace })) };
        } catch (error) {
          if (context.signal.aborted)
            return { ok: false, error: { code: "cancelled", message: "The call was cancelled." } };
          return { ok: false, error: toToolFault(error, path ?? ".") };
        }
      },
    }),
  };
}

function describe(error: z.ZodError): string {
  return error.issues.map((issue) => `${["input", ...issue.path].join(".")}: ${issue.message}`).join("; ");
}

/** Rejects paths inside `.git`, because git executes the hooks and commands in its files. */
export function rejectProtected(parts: readonly Buffer[], path: string): void {
  if (parts.some((part) => part.toString("latin1").toLowerCase() === ".git"))
    throw new ToolFailure("protected", `${path}: git's own files cannot be edited. Use git commands instead.`);
}
