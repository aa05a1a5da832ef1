import { hasRedactionMark, isRedactionMark } from "../model/redaction-mark.ts";
import type { RunRequest } from "../model/run-request.ts";
import { buildSubmitFault, type SubmitFault } from "./submit-fault.ts";

/**
 * Returns the fault of a request that was copied from a recorded run and has redaction marks in place of secrets. Other text
 * may contain such a mark by chance, so a mark within longer text counts only in a retry.
 */
export function checkRedactionMarks({ parameters, prompt, retry_of, agent_name }: RunRequest): SubmitFault | null {
  const isRetry = retry_of !== undefined;
  const paths = [...findMarks(parameters, "body.parameters", isRetry ? hasRedactionMark : isRedactionMark)];
  if (isRetry && prompt !== undefined && hasRedactionMark(prompt)) paths.push("body.prompt");
  if (paths.length === 0) return null;
  return buildSubmitFault(
    400,
    "DROVER-PAR-007",
    isRetry
      ? `The run ${retry_of} has ended, so its secrets are no longer stored.`
      : "A value is the mark of a redacted secret, not the secret itself.",
    paths.map((path) => ({ path, message: "a secret that is not stored: pass it again" })),
    `Start a new run with the secret itself: drover run ${agent_name} ...`,
  );
}

function* findMarks(value: unknown, path: string, isRedacted: (text: string) => boolean): Generator<string> {
  if (typeof value === "string" && isRedacted(value)) yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value))
    yield* findMarks(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, isRedacted);
}
