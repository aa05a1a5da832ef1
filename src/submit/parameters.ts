import type { Agent } from "../model/agent.ts";
import type { Requester } from "../model/requester.ts";
import { splitPointer } from "../model/json-pointer.ts";
import { checkArguments } from "../model/to-arguments.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { SchemaChecker } from "../define/json-schema/checker.ts";
import type { CheckResult } from "../define/json-schema/protocol.ts";
import { measureValue, type SchemaFault, type ValueLimits } from "../define/json-schema/limits.ts";

/** An invalid parameter. `path` is a JSON pointer into the parameters. */
export interface ParameterFault extends SchemaFault {
  code: ErrorCode;
  /** Set if the checker was too busy: when to retry. */
  retry_after_seconds?: number;
}

const parameterLimits: ValueLimits = { maxBytes: 1024 * 1024, maxDepth: 64, rejectForbiddenKeys: true };
/** As large as the output from which `result_data` is parsed. */
const outputLimits: ValueLimits = { maxBytes: 16 * 1024 * 1024, maxDepth: 500, rejectForbiddenKeys: false };

/** Returns one fault per invalid parameter. An empty list means that all are valid. */
export async function checkParameters(
  agent: Agent,
  parameters: Readonly<Record<string, unknown>>,
  schemas: SchemaChecker,
  requester?: Requester,
  waitForTurn?: () => Promise<void>,
): Promise<ParameterFault[]> {
  await waitForTurn?.();
  const measured = measureValue(parameters, parameterLimits);
  if ("fault" in measured) return [{ code: "DROVER-PAR-003", ...measured.fault }];
  const faults: ParameterFault[] = [];
  await waitForTurn?.();
  if (agent.parameters_schema && agent.parameters_validation === "strict") {
    faults.push(...toFaults(await schemas.check(agent.parameters_schema, parameters, parameterLimits, requester)));
  }
  await waitForTurn?.();
  if (agent.type === "procedural") {
    for (const fault of checkArguments(parameters, agent.list_style)) faults.push({ code: "DROVER-PAR-002", ...fault });
  }
  return faults;
}

/** Checks a run's output against the agent's output_schema. */
export async function checkOutput(schema: object, value: unknown, schemas: SchemaChecker): Promise<ParameterFault[]> {
  return toFaults(await schemas.check(schema, value, outputLimits));
}

/** Checks a tool input that a user has edited. The paths in the result are in dotted form. */
export async function checkToolInput(
  schema: object,
  value: unknown,
  schemas: SchemaChecker,
  requester?: Requester,
): Promise<ParameterFault[]> {
  const measured = measureValue(value, parameterLimits);
  if ("fault" in measured)
    return [{ code: "DROVER-PAR-003", ...measured.fault, path: toDottedPath(measured.fault.path) }];
  const faults = toFaults(await schemas.check(schema, value, parameterLimits, requester));
  return faults.map((fault) => ({ ...fault, path: toDottedPath(fault.path) }));
}

/** Converts a JSON pointer to the dotted form of paths in error responses. */
export function toDottedPath(pointer: string): string {
  return splitPointer(pointer)
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join("");
}

function toFaults({ faults, reason, retryAfterSeconds }: CheckResult): ParameterFault[] {
  const retry = retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds };
  return faults.map((fault) => ({
    code: reason === undefined ? "DROVER-PAR-001" : codeByReason[reason],
    ...fault,
    ...retry,
  }));
}

const codeByReason = { incomplete: "DROVER-PAR-004", refused: "DROVER-PAR-003", busy: "DROVER-LIM-002" } as const;
