import { hasRedactionMark, isRedactionMark } from "../model/redaction-mark.ts";
import type { RunRequest } from "../model/run-request.ts";
import { submitFault, type SubmitFault } from "./submit-fault.ts";

/**
 * A request made of what the record shows of another run has marks where the secrets were. A prompt may well quote such a
 * mark, so there it counts only where a run is repeated.
 */
export function redactedInputFault({ parameters, prompt, retry_of, agent_name }: RunRequest): SubmitFault | null {
  const paths = [...marksIn(parameters, "body.parameters")];
  if (retry_of !== undefined && prompt !== undefined && hasRedactionMark(prompt)) paths.push("body.prompt");
  if (paths.length === 0) return null;
  return submitFault(
    400,
    "DROVER-PAR-007",
    retry_of === undefined
      ? "A value is the mark of a secret that was redacted, and not the secret."
      : `The run ${retry_of} had secrets, which were removed when it ended.`,
    paths.map((path) => ({ path, message: "a secret that is not kept: give it again" })),
    `Start a new run with the secret itself: drover run ${agent_name} ...`,
  );
}

function* marksIn(value: unknown, path: string): Generator<string> {
  if (typeof value === "string" && isRedactionMark(value)) yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value))
    yield* marksIn(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
}
