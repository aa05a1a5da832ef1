import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { inProcessUrl } from "../wire/transport.ts";
import { findDroverCommand } from "./drover-command.ts";
import { escapeInvisible } from "./question-view.ts";
import { toHintId } from "./short-ids.ts";

/** Says that a run waits for an answer about a tool, and where to answer. Only a coordinator has an inbox. */
export function describeWaiting({ url }: Pick<ApiClient, "url">, run: Run, tool: string): string {
  const [command, id] = [`${findDroverCommand()} runs`, toHintId(run.run_id)];
  const inbox = url === inProcessUrl ? "" : ", or in the dashboard's inbox";
  return `drover: Waiting for an answer: ${escapeInvisible(run.agent_name)} asks to use ${escapeInvisible(tool)}.\n  Answer: ${command} approve ${id} (or ${command} deny ${id})${inbox}.\n`;
}
