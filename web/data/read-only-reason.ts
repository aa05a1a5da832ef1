import { useQuery } from "@tanstack/react-query";
import { queries } from "./queries.ts";

/** Why the user may not submit or change anything, or null if they may. */
export function useReadOnlyReason(): string | null {
  const role = useQuery(queries.me()).data?.role;
  return role === "admin" || role === "user" ? null : "Your token is read-only";
}
