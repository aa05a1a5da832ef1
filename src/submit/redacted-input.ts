import { hasRedactionMark, isRedactionMark } from "../model/redaction-mark.ts";
import type { RunRequest } from "../model/run-request.ts";
import { submitFault, type SubmitFault } from "./submit-fault.ts";

/**
 * Refuses a request that was copied from a recorded run and has redaction marks in place of secrets. A prompt may quote
 * such a mark, so the prompt is only checked for a retry.
 */
export function findRedactedInput({ parameters, prompt, retry_of, agent_name }: RunRequest): SubmitFault | null {
  const paths = [...findMarks(parameters, "body.parameters")];
  if (retry_of !== undefined && prompt !== undefined && hasRedactionMark(prompt)) paths.push("body.prompt");
  if (paths.length === 0) return null;
  return submitFault(
    400,
    "DROVER-PAR-007",
    retry_of === undefined
      ? "A value is the mark of a redacted secret, not the secret itself."
      : `The secrets of the run ${retry_of} were removed when it finished.`,
    paths.map((path) => ({ path, message: "a secret that is not stored: pass it again" })),
    `Start a new run with the secret itself: drover run ${agent_name} ...`,
  );
}

function* findMarks(value: unknown, path: string): Generator<string> {
  if (typeof value === "string" && isRedactionMark(value)) yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value))
    yield* findMarks(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
}
