import type { DeliveriesFilter, Delivery } from "../../data/queries.ts";

export const tabs = ["deliveries", "out", "in"] as const;
export type Tab = (typeof tabs)[number];

/** The page's state in the URL: the section, the delivery filters and the open delivery. */
export interface WebhooksSearch {
  tab?: Tab;
  webhook?: string;
  status?: Delivery["status"];
  run?: string;
  delivery?: string;
}

export const deliveryStatuses: readonly Delivery["status"][] = ["pending", "delivered", "failed"];

export function readWebhooksSearch(params: Record<string, unknown>): WebhooksSearch {
  const tab = tabs.find((candidate) => candidate === params["tab"]);
  const status = deliveryStatuses.find((candidate) => candidate === params["status"]);
  const search: WebhooksSearch = { ...(tab ? { tab } : {}), ...(status ? { status } : {}) };
  for (const name of ["webhook", "run", "delivery"] as const) {
    const value = params[name];
    // The router parses numeric values as numbers.
    if ((typeof value === "string" && value !== "") || typeof value === "number") search[name] = String(value);
  }
  return search;
}

export function toFilter({ webhook, status, run }: WebhooksSearch): DeliveriesFilter {
  return {
    ...(webhook === undefined ? {} : { webhook }),
    ...(status === undefined ? {} : { status }),
    ...(run === undefined ? {} : { run_id: run }),
  };
}
