import { Link } from "@tanstack/react-router";
import type { Delivery } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Code } from "../../parts/code.tsx";
import { CopyButton } from "../../parts/command.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Facts } from "../../parts/facts.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { tableLink } from "../../parts/table.tsx";
import { formatDateTime, TimeUntil } from "../../parts/time.tsx";
import { revealDirectionMarks } from "../../parts/reveal-direction-marks.ts";
import { DeliveryState } from "./delivery-state.tsx";
import formStyles from "../../parts/form.module.css";

/** Details of one delivery, updated while the dialog is open. */
export function DeliveryDialog({
  delivery,
  readOnlyReason,
  redeliver,
  onClose,
}: {
  delivery: Delivery;
  readOnlyReason: string | null;
  redeliver: () => void;
  onClose: () => void;
}) {
  const { delivery_id, webhook, url, run_id, event, at, attempts } = delivery;
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title={`${event} → ${webhook}`} wide>
      <div className="stack">
        <Facts
          facts={[
            ["Status", <DeliveryState delivery={delivery} />],
            ["Address", revealDirectionMarks(url)],
            [
              "Run",
              <Link className={tableLink} to="/runs/$runId" params={{ runId: run_id }}>
                <span className="mono">{formatShortId(run_id)}</span>
              </Link>,
            ],
            ["Event at", formatDateTime(at)],
            ["Attempts", attempts],
            ...(delivery.next_attempt_at === null
              ? []
              : [["Next attempt", <TimeUntil at={delivery.next_attempt_at} />] as const]),
            ...(delivery.settled_at === null ? [] : [["Settled", formatDateTime(delivery.settled_at)] as const]),
            ...(delivery.response_status === null ? [] : [["Response status", delivery.response_status] as const]),
            ...(delivery.error === null ? [] : [["Error", revealDirectionMarks(delivery.error)] as const]),
            [
              "Id",
              <span className="row" style={{ gap: 2 }}>
                <span className="mono">{delivery_id}</span>
                <CopyButton text={delivery_id} label="Copy the id" />
              </span>,
            ],
          ]}
        />
        {delivery.response ? <Code text={delivery.response} label="The receiver's response" /> : null}
      </div>
      <div className={formStyles["foot"]}>
        <Button onClick={onClose}>Close</Button>
        <Button variant="primary" icon="retry" disabledReason={readOnlyReason} onClick={redeliver}>
          Redeliver
        </Button>
      </div>
    </Dialog>
  );
}
