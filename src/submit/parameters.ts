import type { Agent } from "../model/agent.ts";
import type { Requester } from "../model/requester.ts";
import { checkArguments, pointerSteps } from "../model/to-arguments.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { SchemaChecker } from "../define/json-schema/checker.ts";
import type { CheckResult } from "../define/json-schema/protocol.ts";
import { measureValue, type SchemaFault, type ValueLimits } from "../define/json-schema/limits.ts";

/** One thing wrong with what was asked, at a JSON pointer into it. */
export interface ParameterFault extends SchemaFault {
  code: ErrorCode;
  /** Where it could not be checked now: when to ask again. */
  retry_after_seconds?: number;
}

const parameterLimits: ValueLimits = { maxBytes: 1024 * 1024, maxDepth: 64, refuseKeys: true };
/** As much as `result_data` is ever parsed from. */
const outputLimits: ValueLimits = { maxBytes: 16 * 1024 * 1024, maxDepth: 500, refuseKeys: false };

/** Everything wrong with the parameters of a run; an empty list lets it pass. */
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

/** What a run printed against the agent's output_schema. */
export async function checkOutput(schema: object, value: unknown, schemas: SchemaChecker): Promise<ParameterFault[]> {
  return toFaults(await schemas.check(schema, value, outputLimits));
}

/** What a tool would be called with in place of what its run asked for; `path` as those of a request's faults. */
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

/** A JSON pointer, written as the paths of faults are. */
export function dotted(pointer: string): string {
  return pointerSteps(pointer)
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join("");
}

function toFaults({ faults, why, retryAfterSeconds }: CheckResult): ParameterFault[] {
  const later = retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds };
  return faults.map((fault) => ({ code: why === undefined ? "DROVER-PAR-001" : codes[why], ...fault, ...later }));
}

const codes = { late: "DROVER-PAR-004", refused: "DROVER-PAR-003", busy: "DROVER-LIM-002" } as const;
