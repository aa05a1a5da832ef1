import { Link, useSearch } from "@tanstack/react-router";
import { Deliveries } from "./deliveries.tsx";
import { HookList } from "./hook-list.tsx";
import { WebhookList } from "./webhook-list.tsx";
import { type Tab, tabs, type WebhooksSearch } from "./search.ts";
import styles from "../../parts/tabs.module.css";

const tabLabels: Record<Tab, string> = { deliveries: "Deliveries", out: "Webhooks out", in: "Hooks in" };

export function Page() {
  // The route validates the search parameters.
  const search = useSearch({ strict: false }) as WebhooksSearch;
  const { tab = "deliveries" } = search;
  return (
    <>
      <h1>Webhooks</h1>
      <nav className={styles["tabs"]} aria-label="Webhook sections">
        {tabs.map((section) => (
          <Link
            key={section}
            to="/webhooks"
            search={section === "deliveries" ? {} : { tab: section }}
            replace
            resetScroll={false}
            // Without this, the link of the first tab, which has no search parameters, would always be current.
            activeOptions={{ exact: true, includeSearch: true }}
            aria-current={section === tab ? "page" : undefined}
          >
            {tabLabels[section]}
          </Link>
        ))}
      </nav>
      {tab === "deliveries" ? <Deliveries search={search} /> : null}
      {tab === "out" ? <WebhookList /> : null}
      {tab === "in" ? <HookList /> : null}
    </>
  );
}
