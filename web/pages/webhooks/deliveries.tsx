import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { type Delivery, queries, queryClient } from "../../data/queries.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Chip, chipClass, Chips } from "../../parts/chip.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Menu } from "../../parts/menu.tsx";
import { formatCount, formatShortId } from "../../parts/numbers.ts";
import { type Column, Table, tableLink } from "../../parts/table.tsx";
import { Age, TimeUntil } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { revealDirectionMarks } from "../../parts/reveal-direction-marks.ts";
import { DeliveryDialog } from "./delivery.tsx";
import { describeResponse, DeliveryState } from "./delivery-state.tsx";
import { deliveryStatuses, toFilter, type WebhooksSearch } from "./search.ts";

export function Deliveries({ search }: { search: WebhooksSearch }) {
  const query = useInfiniteQuery(queries.deliveries(toFilter(search)));
  const readOnlyReason = useReadOnlyReason();
  const navigate = useNavigate();
  const { delivery: selectedId, ...filters } = search;
  const deliveries = (query.data?.pages ?? []).flatMap(({ items }) => items);
  const selected = deliveries.find(({ delivery_id }) => delivery_id === selectedId);
  return (
    <>
      <div style={{ marginBottom: 12 }}>
        <Filters search={filters} />
      </div>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      {selectedId !== undefined && selected === undefined && query.isSuccess ? (
        <p className="dim" role="status" style={{ marginBottom: 8 }}>
          Delivery <code>{revealDirectionMarks(selectedId)}</code> is not among the deliveries shown. Clear the filters
          or show older deliveries.
        </p>
      ) : null}
      <Card flush>
        {query.isPending ? (
          <Skeleton />
        ) : deliveries.length > 0 ? (
          <Table
            label="Deliveries"
            columns={buildColumns(filters, readOnlyReason)}
            rows={deliveries}
            getKey={({ delivery_id }) => delivery_id}
          />
        ) : query.isError ? null : Object.keys(toFilter(search)).length > 0 ? (
          <EmptyState icon="search" title="No delivery matches these filters">
            <Link to="/webhooks">Show all deliveries</Link>
          </EmptyState>
        ) : (
          <NoDeliveries />
        )}
      </Card>
      {deliveries.length > 0 ? (
        <p className="faint" style={{ marginTop: 8 }}>
          {formatCount(deliveries.length)} {deliveries.length === 1 ? "delivery" : "deliveries"}
          {query.hasNextPage ? " loaded " : null}
          {query.hasNextPage ? <Button onClick={() => void query.fetchNextPage()}>Show older</Button> : null}
        </p>
      ) : null}
      {selected === undefined ? null : (
        <DeliveryDialog
          delivery={selected}
          readOnlyReason={readOnlyReason}
          redeliver={() => redeliver(selected)}
          onClose={() => void navigate({ to: "/webhooks", search: filters, replace: true, resetScroll: false })}
        />
      )}
    </>
  );
}

const buildColumns = (search: WebhooksSearch, readOnlyReason: string | null): Column<Delivery>[] => [
  { head: "Status", cell: (delivery) => <DeliveryState delivery={delivery} /> },
  {
    head: "Delivery",
    cell: ({ delivery_id, webhook, event }) => (
      <Link className={tableLink} to="/webhooks" search={{ ...search, delivery: delivery_id }} resetScroll={false}>
        {event} → {webhook}
      </Link>
    ),
  },
  {
    head: "Run",
    cell: ({ run_id }) => (
      <Link to="/runs/$runId" params={{ runId: run_id }}>
        <span className="mono">{formatShortId(run_id)}</span>
      </Link>
    ),
  },
  {
    head: "Response",
    title: (delivery) => revealDirectionMarks(describeResponse(delivery)),
    cell: (delivery) => revealDirectionMarks(describeResponse(delivery)),
  },
  { head: "Attempts", cell: ({ attempts }) => attempts },
  {
    head: "Next attempt",
    tone: "dim",
    cell: ({ next_attempt_at }) => (next_attempt_at === null ? "—" : <TimeUntil at={next_attempt_at} />),
  },
  { head: "Age", right: true, tone: "faint", cell: ({ at }) => <Age at={at} /> },
  {
    head: "Actions",
    hideHeader: true,
    right: true,
    cell: (delivery) => (
      <Button
        variant="quiet"
        icon="retry"
        disabledReason={readOnlyReason}
        aria-label={`Redeliver the event ${delivery.event} to ${delivery.webhook}`}
        onClick={() => redeliver(delivery)}
      >
        Redeliver
      </Button>
    ),
  },
];

function redeliver({ delivery_id, webhook }: Delivery): void {
  void api.webhooks.redeliver(delivery_id).then(() => {
    toast(`Redelivering to ${webhook}`, "The delivery keeps its id, so that receivers can detect a duplicate.");
    return queryClient.invalidateQueries({ queryKey: ["deliveries"] });
  }, toastError);
}

function Filters({ search }: { search: WebhooksSearch }) {
  const webhooks = useQuery(queries.webhooks());
  const navigate = useNavigate();
  const set = (change: { [Key in keyof WebhooksSearch]: WebhooksSearch[Key] | undefined }): void => {
    const next = Object.fromEntries(
      Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined),
    );
    void navigate({ to: "/webhooks", search: next, replace: true });
  };
  return (
    <Chips>
      <Menu
        trigger={<Chip label="Status" value={search.status ?? "any"} />}
        entries={[
          { text: "Any", onSelect: () => set({ status: undefined }) },
          ...deliveryStatuses.map((status) => ({ text: status, onSelect: () => set({ status }) })),
        ]}
      />
      <Menu
        trigger={<Chip label="Webhook" value={search.webhook ?? "any"} />}
        entries={[
          { text: "Any", onSelect: () => set({ webhook: undefined }) },
          ...(webhooks.data ?? []).map(({ name }) => ({ text: name, onSelect: () => set({ webhook: name }) })),
        ]}
      />
      {search.run === undefined ? null : (
        <span className={chipClass}>
          Run <b className="mono">{formatShortId(search.run)}</b>
          <IconButton icon="close" label="Clear the run filter" onClick={() => set({ run: undefined })} />
        </span>
      )}
    </Chips>
  );
}

function NoDeliveries() {
  return (
    <EmptyState icon="webhooks" title="No deliveries yet">
      <p>Notify an address of every run that completes or fails:</p>
      <Command text="drover webhooks add ci https://ci.example/drover" />
      <p>
        Or{" "}
        <Link className={tableLink} to="/webhooks" search={{ tab: "out" }}>
          add a webhook
        </Link>{" "}
        under Webhooks out. Its deliveries then appear in this list, each with its attempts and the response.
      </p>
    </EmptyState>
  );
}
