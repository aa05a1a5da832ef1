import type { InputCheck } from "./api.ts";

/** For calls in this process, which TypeScript has checked against the contracts. Loads no schema. */
export const trustTypes: InputCheck = {
  query: (_name, value) => ({ limit: 50, ...value }),
  headers: (_name, value = {}) => value,
  body: (_name, value) => value,
};
