import { useNavigate } from "@tanstack/react-router";
import { runStatuses } from "../../../src/model/states.ts";
import type { Agent } from "../../data/queries.ts";
import { IconButton } from "../../parts/button.tsx";
import { Menu, MenuCheck, MenuItem } from "../../parts/menu.tsx";
import { statusWord } from "../../parts/status.tsx";
import { type RunsSearch, spans } from "./search.ts";
import styles from "./filters.module.css";

/** They live in the address, so that a link shows the same. */
export function Filters({ search, agents }: { search: RunsSearch; agents: readonly Agent[] }) {
  const navigate = useNavigate();
  const set = (change: { [Key in keyof RunsSearch]: RunsSearch[Key] | undefined }): void => {
    const next = Object.fromEntries(
      Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined),
    );
    void navigate({ to: "/runs", search: next, replace: true });
  };
  const chosen = new Set(search.status ?? []);
  const names = [...new Set(agents.map(({ name }) => name))].sort();
  return (
    <>
      <Menu trigger={<Chip what="Status" value={search.status?.map(statusWord).join(", ") ?? "any"} />}>
        {runStatuses.map((status) => (
          <MenuCheck
            key={status}
            checked={chosen.has(status)}
            onChange={(on) => {
              const next = runStatuses.filter((one) => (one === status ? on : chosen.has(one)));
              set({ status: next.length > 0 ? next : undefined });
            }}
          >
            {statusWord(status)}
          </MenuCheck>
        ))}
      </Menu>
      <Menu trigger={<Chip what="Agent" value={search.agent ?? "any"} />}>
        <MenuItem onSelect={() => set({ agent: undefined })}>Any</MenuItem>
        {names.map((name) => (
          <MenuItem key={name} onSelect={() => set({ agent: name })}>
            {name}
          </MenuItem>
        ))}
      </Menu>
      <Menu trigger={<Chip what="Last" value={spans.find(({ hours }) => hours === search.last)?.word ?? "any time"} />}>
        <MenuItem onSelect={() => set({ last: undefined })}>Any time</MenuItem>
        {spans.map(({ hours, word }) => (
          <MenuItem key={hours} onSelect={() => set({ last: hours })}>
            Last {word}
          </MenuItem>
        ))}
      </Menu>
      {(["session", "parent"] as const).map((name) =>
        search[name] === undefined ? null : (
          <span key={name} className={styles["chip"]}>
            {name === "session" ? "Session" : "Started by"} <b className="mono">…{search[name].slice(-6)}</b>
            <IconButton icon="bad" label={`Any ${name}`} onClick={() => set({ [name]: undefined })} />
          </span>
        ),
      )}
    </>
  );
}

function Chip({ what, value, ...rest }: { what: string; value: string }) {
  return (
    <button type="button" className={styles["chip"]} {...rest}>
      {what} <b>{value}</b>
    </button>
  );
}
