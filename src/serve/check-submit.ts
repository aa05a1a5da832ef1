import { submitInput } from "../wire/submit-input.ts";
import type { InputCheck } from "./api.ts";
import { check } from "./check.ts";
import { trustTypes } from "./trust-types.ts";

/** For commands in this process: only `POST /runs` carries user input, so only that is validated. */
export const checkSubmit: InputCheck = {
  ...trustTypes,
  headers: (name, value = {}) => (name === "POST /runs" ? check(submitInput.headers, value, "header") : value),
  body: (name, value) => (name === "POST /runs" ? check(submitInput.body, value, "body") : value),
};
