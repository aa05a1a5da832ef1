import type { Run } from "../../data/queries.ts";
import { hasEnded } from "../../../src/model/states.ts";
import { Card } from "../../parts/card.tsx";
import { Code } from "../../parts/code.tsx";
import { CopyButton } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { JsonTree } from "../../parts/json-tree.tsx";
import { Status } from "../../parts/status.tsx";

/** The run's outcome: exit code, data and text. */
export function Result({ run }: { run: Run }) {
  return (
    <div className="stack">
      {hasEnded(run.status) ? (
        <Card title="Outcome">
          <div className="row wrap" style={{ gap: 16 }}>
            <Status status={run.status} />
            <span>
              Exit code <b data-testid="exit-code">{run.exit_code ?? "none"}</b>
            </span>
            {run.reason ? <code>{run.reason}</code> : null}
          </div>
          {run.error ? <p style={{ marginTop: 8 }}>{run.error}</p> : null}
        </Card>
      ) : (
        <Card flush>
          <EmptyState icon="runs" title="No result yet">
            <p>The result appears here when the run finishes.</p>
          </EmptyState>
        </Card>
      )}
      {hasData(run) ? (
        <Card
          title="Data"
          note="result_data"
          actions={<CopyButton text={JSON.stringify(run.result_data, null, 2)} label="Copy the data" />}
        >
          <JsonTree value={run.result_data} />
        </Card>
      ) : null}
      {run.result_text ? (
        <Card title="Text" note="result_text" actions={<CopyButton text={run.result_text} label="Copy the text" />}>
          <Code text={run.result_text} tall label="Result text" />
        </Card>
      ) : null}
      <Card title="Request">
        {run.prompt === null ? null : <Code text={run.prompt} label="Prompt" />}
        <JsonTree value={run.parameters} name="parameters" />
      </Card>
    </div>
  );
}

/** The result of a procedural run in one card, which is shown above the timeline. */
export function ShortResult({ run }: { run: Run }) {
  const text = hasData(run) ? JSON.stringify(run.result_data, null, 2) : run.result_text;
  if (!text) return null;
  return (
    <div style={{ marginBottom: 16 }}>
      <Card title="Result" actions={<CopyButton text={text} label="Copy the result" />}>
        {hasData(run) ? <JsonTree value={run.result_data} /> : <Code text={text} label="Result" />}
      </Card>
    </div>
  );
}

function hasData(run: Run): boolean {
  return run.result_data !== null && run.result_data !== undefined;
}
