import type { CallToolResult } from "@modelcontextprotocol/server";
import { HostError, RequestError } from "../../model/errors.ts";
import { hasEnded } from "../../model/states.ts";
import { boundProblem, refusalLimits } from "../bound-problem.ts";
import { truncateResult, toModelView } from "./run-view.ts";
import type { RunSnapshot } from "./wait-for-run.ts";

/** Returns data as a tool result, both as text for the model and as structured content for programs. */
export function toDataResult(data: Record<string, unknown>): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(data) }], structuredContent: data };
}

/** The result of `run_<agent>`: the run's own result, or an error with reason and message. */
export function toRunResult(snapshot: RunSnapshot): CallToolResult {
  const { run } = snapshot;
  const _meta = { "drover/run_id": run.run_id, "drover/status": run.status };
  if (!hasEnded(run.status)) return { ...toDataResult(toModelView(snapshot)), _meta };
  if (run.status !== "completed") return { ...toDataResult(toModelView(snapshot)), isError: true, _meta };
  const { result_text, result_data, result_data_omitted } = truncateResult(run);
  const texts = [result_text, result_data_omitted].filter((text) => text !== null);
  return {
    content: (texts.length > 0 ? texts : [JSON.stringify(result_data)]).map((text) => ({ type: "text", text })),
    ...(result_data === null ? {} : { structuredContent: asObject(result_data) }),
    _meta,
  };
}

/** Returns an error as a tool result, which the model reads. */
export function toErrorResult(
  error: unknown,
  details: Record<string, unknown>,
  onDefect: (error: unknown, where: string) => void,
): CallToolResult {
  if (!(error instanceof RequestError || error instanceof HostError)) {
    onDefect(error, "MCP");
    const message = "Internal error. The coordinator's log has the details.";
    return { ...toDataResult({ ...details, code: "DROVER-BUG-001", message }), isError: true };
  }
  const { code, message, next, cause } = error;
  const faults: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "faults") : undefined;
  const hasFaults = Array.isArray(faults);
  const bounded = boundProblem(
    { detail: message, faults: hasFaults ? faults : [], ...(next ? { next } : {}) },
    refusalLimits,
  );
  const fault = {
    ...details,
    code,
    message: bounded.detail,
    ...(hasFaults ? { faults: bounded.faults } : {}),
    ...(next ? { next: bounded.next } : {}),
  };
  return { ...toDataResult(fault), isError: true };
}

/** Puts other values into an object, because protocol versions before 2026 allow only objects. */
function asObject(value: unknown): Record<string, unknown> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : { result: value };
}
