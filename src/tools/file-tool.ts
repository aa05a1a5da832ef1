import * as z from "zod";
import type { Effect, Tool, ToolContext } from "../model/tool.ts";
import { faultOf, ToolFailure } from "./tool-failure.ts";
import type { Workspace } from "./workspace.ts";

/** A file tool before it is bound to a workspace. */
export interface FileTool extends Omit<Tool, "run"> {
  in(workspace: Workspace): Tool;
}

interface Definition<Input extends z.ZodObject> {
  name: string;
  description: string;
  effect: Effect;
  input: Input;
  run(input: z.output<Input>, context: ToolContext & { workspace: Workspace }): Promise<Record<string, unknown>>;
}

/** Validates the input and turns every expected failure into an answer, for all file tools. */
export function fileTool<Input extends z.ZodObject>({
  name,
  description,
  effect,
  input,
  run,
}: Definition<Input>): FileTool {
  const { $schema: _, ...input_schema } = z.toJSONSchema(input, { io: "input" });
  const described = { name, description, effect, input_schema };
  return {
    ...described,
    in: (workspace) => ({
      ...described,
      async run(given, context) {
        const checked = input.safeParse(given);
        if (!checked.success) return { ok: false, error: { code: "invalid_input", message: describe(checked.error) } };
        const { path } = checked.data as { path?: string };
        try {
          return { ok: true, ...(await run(checked.data, { ...context, workspace })) };
        } catch (error) {
          if (context.signal.aborted)
            return { ok: false, error: { code: "cancelled", message: "The call was cancelled." } };
          return { ok: false, error: faultOf(error, path ?? ".") };
        }
      },
    }),
  };
}

function describe(error: z.ZodError): string {
  return error.issues.map((issue) => `${["input", ...issue.path].join(".")}: ${issue.message}`).join("; ");
}

/** Refuses paths that only programs may change, because programs execute what is written there. */
export function refuseProtected(parts: readonly Buffer[], path: string): void {
  if (parts.some((part) => part.toString("latin1").toLowerCase() === ".git"))
    throw new ToolFailure("protected", `${path}: git's own files cannot be edited. Use git commands instead.`);
}
