import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { queries } from "./queries.ts";

/** Returns a function that maps a runner's id to its name, or to its profile if it has no name. */
export function useRunnerNames(): (runner_id: string | null) => string {
  const { data } = useQuery(queries.runners());
  const names = useMemo(
    () => new Map((data ?? []).map(({ runner_id, name, executor_profile }) => [runner_id, name ?? executor_profile])),
    [data],
  );
  return (runner_id) => (runner_id === null ? "—" : (names.get(runner_id) ?? `…${runner_id.slice(-8)}`));
}
