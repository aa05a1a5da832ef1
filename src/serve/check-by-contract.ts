import type { Contract } from "../wire/contract.ts";
import { contracts } from "../wire/contracts.ts";
import type { InputCheck } from "./api.ts";
import { check } from "./check.ts";
import { Refusal } from "./refusal.ts";

const table: Readonly<Record<string, Contract>> = contracts;

/** Validates with the contracts' schemas. */
export const checkByContract: InputCheck = {
  query(name, value = {}) {
    const { query } = table[name]!;
    if (query) return check(query, value, "query");
    const first = Object.keys(value)[0];
    if (first === undefined) return undefined;
    throw new Refusal(400, "DROVER-API-006", `query.${first}: unknown field`, {
      faults: [{ path: `query.${first}`, message: "unknown field" }],
    });
  },
  headers(name, value = {}) {
    const { headers } = table[name]!;
    if (!headers) return undefined;
    const declared: Record<string, unknown> = {};
    for (const key of Object.keys(headers.shape)) if (value[key] !== undefined) declared[key] = value[key];
    return check(headers, declared, "header");
  },
  body(name, value) {
    const { body, checkedBody = body } = table[name]!;
    if (checkedBody) return check(checkedBody, value, "body");
    if (value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0))
      return undefined;
    throw new Refusal(400, "DROVER-API-006", "This route takes no body.", {
      faults: [{ path: "body", message: "not expected" }],
    });
  },
};
