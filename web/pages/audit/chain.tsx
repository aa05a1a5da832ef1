import { useMutation, useQuery } from "@tanstack/react-query";
import type { Output } from "../../../src/wire/contracts.ts";
import { api } from "../../data/client.ts";
import { queries, queryClient } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command, CopyButton } from "../../parts/command.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatCount } from "../../parts/numbers.ts";
import { Age } from "../../parts/time.tsx";
import styles from "./page.module.css";

/** The state of the audit chain, and a button that verifies that no record was changed or removed. */
export function Chain() {
  const state = useQuery(queries.audit());
  const verification = useMutation({
    mutationFn: () => api.audit.verify(),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["audit"] }),
  });
  return (
    <Card
      title="Audit chain"
      note="each record is sealed together with the previous one"
      actions={
        <Button
          variant="primary"
          icon="audit"
          disabled={verification.isPending}
          disabledReason={state.data?.key_present === false ? "The audit key is missing on this coordinator" : null}
          onClick={() => verification.mutate()}
        >
          {verification.isPending ? "Verifying" : "Verify"}
        </Button>
      }
    >
      <div className="stack tight">
        {state.isError ? <ErrorNote error={state.error} /> : null}
        {state.isPending ? <Skeleton rows={2} /> : null}
        {state.data ? <Facts state={state.data} /> : null}
        <div role="status" aria-live="polite">
          {verification.isError ? <ErrorNote error={verification.error} /> : null}
          {verification.data ? <VerificationResult verification={verification.data} /> : null}
        </div>
        <details className={styles["commands"]}>
          <summary>On the command line</summary>
          <div className="stack tight">
            <Command text="drover audit verify" />
            <Command text="drover audit export > audit.jsonl" />
          </div>
        </details>
      </div>
    </Card>
  );
}

function Facts({ state }: { state: Output<"GET /audit"> }) {
  const { rows, head, head_expected, sealed_at, key_present } = state;
  return (
    <dl className={styles["facts"]}>
      <div>
        <dt>Records</dt>
        <dd>{formatCount(rows)}</dd>
      </div>
      <div>
        <dt>Last sealed</dt>
        <dd>{sealed_at === null ? "never" : <Age at={sealed_at} suffix=" ago" />}</dd>
      </div>
      <div>
        <dt>Head</dt>
        <dd className="row">
          <code className="ellipsis" title={head}>
            {head}
          </code>
          <CopyButton text={head} label="Copy the head to keep it elsewhere" />
        </dd>
      </div>
      <div>
        <dt>Copy of the head</dt>
        <dd>
          {head_expected === null
            ? "none stored outside the database"
            : head_expected === head
              ? "matches"
              : "taken at another time; verify the chain to check it"}
        </dd>
      </div>
      {key_present ? null : (
        <div>
          <dt>Key</dt>
          <dd>missing: the chain cannot be verified or continued</dd>
        </div>
      )}
    </dl>
  );
}

function VerificationResult({ verification: { whole, rows, faults } }: { verification: Output<"POST /audit/verify"> }) {
  return (
    <div className={styles["verification"]} data-whole={whole}>
      <Icon name={whole ? "ok" : "warn"} />
      <div>
        <b>{whole ? "The chain is intact" : "The chain is broken"}</b>
        <p className="dim">
          {whole
            ? `All ${formatCount(rows)} records are unchanged.`
            : `The first ${formatCount(rows)} records are unchanged. Later records cannot be trusted:`}
        </p>
        {faults.map(({ what, row_no, batch_no }) => (
          <p key={`${what} ${row_no} ${batch_no}`}>
            {what}
            <span className="faint">
              {row_no === null ? "" : ` · record ${row_no}`}
              {batch_no === null ? "" : ` · batch ${batch_no}`}
            </span>
          </p>
        ))}
      </div>
    </div>
  );
}
