import { auditStateSchema, auditVerifiedSchema } from "../../model/audit.ts";
import { statsSchema } from "../../model/stats.ts";
import { type Contract, ok } from "../contract.ts";
import { statsQuerySchema } from "../schemas.ts";

export const overviewContracts = {
  "GET /stats": {
    id: "getStats",
    summary: "Throughput, what waits and why, failures by reason, cost by agent and day",
    query: statsQuerySchema,
    responses: ok("Of the caller's own runs; for an admin of all", statsSchema),
  },
  "GET /audit": {
    id: "getAudit",
    summary: "What is known of the audit chain without walking it",
    responses: ok("Its length, its head and when it was last sealed", auditStateSchema),
  },
  "POST /audit/verify": {
    id: "verifyAudit",
    summary: "Walk the whole audit chain and check every seal; joins a walk that is under way",
    responses: ok("Whether it is whole, and else the first fault", auditVerifiedSchema),
  },
} as const satisfies Record<string, Contract>;
