// Asks before each step of a list and follows the person's answer. It saves its progress before it asks, so that it can
// park instead of waiting. Messages that people send to the run become further steps.
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { defineExecutor, RunFailure } from "drover";

const input_schema = { type: "object", properties: { step: { type: "string" } }, required: ["step"] };

export const executor = defineExecutor({
  name: "checklist",
  can: { ask: true, input: true, state: true, park: true },

  async execute({ invocation, parameters, context, workDir }) {
    const saved = invocation.continues ? await context.session.load() : null;
    const list: { steps: string[]; done: number; lastSeq: number } = saved
      ? JSON.parse(Buffer.from(saved.bytes).toString())
      : { steps: parameters["steps"], done: 0, lastSeq: 0 };
    const save = () => context.session.save("checklist-1", Buffer.from(JSON.stringify(list)), { files: true });
    void (async () => {
      for await (const { text, seq } of context.input) {
        if (seq > list.lastSeq) list.steps.push(text);
        list.lastSeq = Math.max(list.lastSeq, seq);
      }
    })();

    for (; list.done < list.steps.length; list.done++) {
      const input = { step: list.steps[list.done] };
      await save();
      const request_id = `step-${list.done + 1}`;
      const answer = await context.ask({ request_id, tool: "step", input, effect: "edit", input_schema });
      if (answer.decision === "park") return { outcome: { status: "parked", why: "approval" } };
      if (answer.decision === "stop")
        throw new RunFailure("permission_denied", answer.message ?? "The run was stopped.");
      if (answer.decision === "deny") continue;
      const { step } = (answer.input ?? input) as { step: string };
      await appendFile(join(workDir, "done.txt"), `${step}\n`);
    }
    return list.steps.length === 1 ? "1 step" : `${list.steps.length} steps`;
  },
});
