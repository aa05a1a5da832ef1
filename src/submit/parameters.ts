import type { Agent } from "../model/agent.ts";
import type { Requester } from "../model/requester.ts";
import { pointerSteps } from "../model/json-pointer.ts";
import { checkArguments } from "../model/to-arguments.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { SchemaChecker } from "../define/json-schema/checker.ts";
import type { CheckResult } from "../define/json-schema/protocol.ts";
import { measureValue, type SchemaFault, type ValueLimits } from "../define/json-schema/limits.ts";

/** A fault in the parameters, at a JSON pointer into them. */
export interface ParameterFault extends SchemaFault {
  code: ErrorCode;
  /** Set if the checker was too busy: when to retry. */
  retry_after_seconds?: number;
}

const parameterLimits: ValueLimits = { maxBytes: 1024 * 1024, maxDepth: 64, rejectForbiddenKeys: true };
/** As large as the output from which `result_data` is parsed. */
const outputLimits: ValueLimits = { maxBytes: 16 * 1024 * 1024, maxDepth: 500, rejectForbiddenKeys: false };

/** Returns all faults of a run's parameters. An empty list means that they are valid. */
export async function checkParameters(
  agent: Agent,
  parameters: Readonly<Record<string, unknown>>,
  schemas: SchemaChecker,
  requester?: Requester,
  turn?: () => Promise<void>,
): Promise<ParameterFault[]> {
  await turn?.();
  const measured = measureValue(parameters, parameterLimits);
  if ("fault" in measured) return [{ code: "DROVER-PAR-003", ...measured.fault }];
  const faults: ParameterFault[] = [];
  await turn?.();
  if (agent.parameters_schema && agent.parameters_validation === "strict") {
    faults.push(...toFaults(await schemas.check(agent.parameters_schema, parameters, parameterLimits, requester)));
  }
  await turn?.();
  if (agent.type === "procedural") {
    for (const fault of checkArguments(parameters, agent.list_style)) faults.push({ code: "DROVER-PAR-002", ...fault });
  }
  return faults;
}

/** Checks a run's output against the agent's output_schema. */
export async function checkOutput(schema: object, value: unknown, schemas: SchemaChecker): Promise<ParameterFault[]> {
  return toFaults(await schemas.check(schema, value, outputLimits));
}

/** Checks an edited tool input, which replaces the input the run asked to use. Paths are in dotted form. */
export async function checkToolInput(
  schema: object,
  value: unknown,
  schemas: SchemaChecker,
  requester?: Requester,
): Promise<ParameterFault[]> {
  const measured = measureValue(value, parameterLimits);
  if ("fault" in measured) return [{ code: "DROVER-PAR-003", ...measured.fault, path: dotted(measured.fault.path) }];
  const faults = toFaults(await schemas.check(schema, value, parameterLimits, requester));
  return faults.map((fault) => ({ ...fault, path: dotted(fault.path) }));
}

/** Converts a JSON pointer to the dotted form used for fault paths. */
export function dotted(pointer: string): string {
  return pointerSteps(pointer)
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join("");
}

function toFaults({ faults, reason, retryAfterSeconds }: CheckResult): ParameterFault[] {
  const retry = retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds };
  return faults.map((fault) => ({ code: reason === undefined ? "DROVER-PAR-001" : codes[reason], ...fault, ...retry }));
}

const codes = { late: "DROVER-PAR-004", refused: "DROVER-PAR-003", busy: "DROVER-LIM-002" } as const;
