import { useQuery } from "@tanstack/react-query";
import { queries } from "./queries.ts";

/** Why the reader may not submit or change anything; null where they may. */
export function useMayChange(): string | null {
  const role = useQuery(queries.me()).data?.role;
  return role === "admin" || role === "user" ? null : "Your token may only look";
}
