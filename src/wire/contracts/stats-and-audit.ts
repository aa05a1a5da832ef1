import { auditStateSchema, auditVerificationSchema } from "../../model/audit.ts";
import { statsSchema } from "../../model/stats.ts";
import { type Contract, ok } from "../contract.ts";
import { statsQuerySchema } from "../schemas.ts";

export const statsAndAuditContracts = {
  "GET /stats": {
    id: "getStats",
    summary: "Get throughput, waiting runs and why they wait, failures by reason, and cost by agent and day",
    query: statsQuerySchema,
    responses: ok("Statistics of the caller's own runs; for an admin, of all runs", statsSchema),
  },
  "GET /audit": {
    id: "getAudit",
    summary: "Get the state of the audit chain without verifying it",
    responses: ok("The chain's length, its head and when it was last sealed", auditStateSchema),
  },
  "POST /audit/verify": {
    id: "verifyAudit",
    summary: "Verify the whole audit chain and every seal; joins a verification in progress",
    responses: ok("Whether the chain is intact, and if not, where it was first altered", auditVerificationSchema),
  },
} as const satisfies Record<string, Contract>;
