import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { inProcessUrl } from "../wire/transport.ts";
import { droverCommand } from "./drover-command.ts";
import { visible } from "./question-view.ts";
import { hintId } from "./short-ids.ts";

/** Says that a run waits for an answer about a tool, and where to answer. Only a coordinator has an inbox. */
export function describeWaiting({ url }: Pick<ApiClient, "url">, run: Run, tool: string): string {
  const [command, id] = [`${droverCommand()} runs`, hintId(run.run_id)];
  const inbox = url === inProcessUrl ? "" : ", or in the dashboard's inbox";
  return `drover: Waiting for an answer: ${visible(run.agent_name)} asks to use ${visible(tool)}.\n  Answer: ${command} approve ${id} (or ${command} deny ${id})${inbox}.\n`;
}
