import { useEffect, useEffectEvent, useState } from "react";
import { useNavigate } from "@tanstack/react-router";
import { runStatuses } from "../../../src/model/states.ts";
import type { Agent } from "../../data/queries.ts";
import { IconButton } from "../../parts/button.tsx";
import { Chip, chipClass } from "../../parts/chip.tsx";
import { Menu } from "../../parts/menu.tsx";
import { statusWord } from "../../parts/status.tsx";
import { type RunsSearch, spans } from "./search.ts";
import styles from "./filters.module.css";

/** The filters are kept in the URL, so that a link shows the same list. */
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
      <SearchBox text={search.search ?? ""} onChange={(text) => set({ search: text === "" ? undefined : text })} />
      <Menu
        trigger={<Chip what="Status" value={search.status?.map(statusWord).join(", ") ?? "any"} />}
        entries={runStatuses.map((status) => ({
          text: statusWord(status),
          checked: chosen.has(status),
          onSelect: () => {
            const next = runStatuses.filter((one) => (one === status) !== chosen.has(one));
            set({ status: next.length > 0 ? next : undefined });
          },
        }))}
      />
      <Menu
        trigger={<Chip what="Agent" value={search.agent ?? "any"} />}
        entries={[
          { text: "Any", onSelect: () => set({ agent: undefined }) },
          ...names.map((name) => ({ text: name, onSelect: () => set({ agent: name }) })),
        ]}
      />
      <Menu
        trigger={<Chip what="Last" value={spans.find(({ hours }) => hours === search.last)?.word ?? "any time"} />}
        entries={[
          { text: "Any time", onSelect: () => set({ last: undefined }) },
          ...spans.map(({ hours, word }) => ({ text: `Last ${word}`, onSelect: () => set({ last: hours }) })),
        ]}
      />
      {(["session", "parent"] as const).map((name) =>
        search[name] === undefined ? null : (
          <span key={name} className={chipClass}>
            {name === "session" ? "Session" : "Started by"} <b className="mono">…{search[name].slice(-6)}</b>
            <IconButton icon="bad" label={`Any ${name}`} onClick={() => set({ [name]: undefined })} />
          </span>
        ),
      )}
    </>
  );
}

/** Searches when typing pauses, not after each letter. */
function SearchBox({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const search = useEffectEvent(onChange);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed.trim() === text) return;
    const timer = setTimeout(() => search(typed.trim()), 250);
    return () => clearTimeout(timer);
  }, [typed, text]);
  return (
    <input
      type="search"
      className={styles["search"]}
      aria-label="Search runs"
      placeholder="Search prompts, results, tool input"
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onKeyDown={(event) => event.key === "Enter" && onChange(typed.trim())}
    />
  );
}
