import { useQuery } from "@tanstack/react-query";
import { queries } from "./queries.ts";

/** Returns why the user may not submit or change anything, or null if the user may. */
export function useReadOnlyReason(): string | null {
  const role = useQuery(queries.me()).data?.role;
  return role === "admin" || role === "user" ? null : "Your token is read-only";
}
