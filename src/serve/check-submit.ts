import { submitInput } from "../wire/submit-input.ts";
import type { InputCheck } from "./api.ts";
import { check } from "./check.ts";
import { trustTypes } from "./trust-types.ts";

/** For commands of this process: what a person typed reaches the API with `POST /runs` alone, so only that is checked. */
export const checkSubmit: InputCheck = {
  ...trustTypes,
  headers: (name, value = {}) => (name === "POST /runs" ? check(submitInput.headers, value, "header") : value),
  body: (name, value) => (name === "POST /runs" ? check(submitInput.body, value, "body") : value),
};
