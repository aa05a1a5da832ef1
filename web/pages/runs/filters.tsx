import { useEffect, useEffectEvent, useState } from "react";
import { useNavigate } from "@tanstack/react-router";
import { runStatuses } from "../../../src/model/states.ts";
import type { Agent } from "../../data/queries.ts";
import { IconButton } from "../../parts/button.tsx";
import { Chip, chipClass } from "../../parts/chip.tsx";
import { Menu } from "../../parts/menu.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { getStatusLabel } from "../../parts/status.tsx";
import { type RunsSearch, timeRanges } from "./search.ts";
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
  const selectedStatuses = new Set(search.status ?? []);
  const names = [...new Set(agents.map(({ name }) => name))].sort();
  return (
    <>
      <SearchBox text={search.search ?? ""} onChange={(text) => set({ search: text === "" ? undefined : text })} />
      <Menu
        trigger={<Chip label="Status" value={search.status?.map(getStatusLabel).join(", ") ?? "any"} />}
        entries={runStatuses.map((status) => ({
          text: getStatusLabel(status),
          checked: selectedStatuses.has(status),
          onSelect: () => {
            const next = runStatuses.filter((candidate) => (candidate === status) !== selectedStatuses.has(candidate));
            set({ status: next.length > 0 ? next : undefined });
          },
        }))}
      />
      <Menu
        trigger={<Chip label="Agent" value={search.agent ?? "any"} />}
        entries={[
          { text: "Any", onSelect: () => set({ agent: undefined }) },
          ...names.map((name) => ({ text: name, onSelect: () => set({ agent: name }) })),
        ]}
      />
      <Menu
        trigger={
          <Chip label="Last" value={timeRanges.find(({ hours }) => hours === search.last)?.label ?? "any time"} />
        }
        entries={[
          { text: "Any time", onSelect: () => set({ last: undefined }) },
          ...timeRanges.map(({ hours, label }) => ({ text: `Last ${label}`, onSelect: () => set({ last: hours }) })),
        ]}
      />
      {(["session", "parent"] as const).map((name) =>
        search[name] === undefined ? null : (
          <span key={name} className={chipClass}>
            {name === "session" ? "Session" : "Started by"} <b className="mono">{formatShortId(search[name])}</b>
            <IconButton icon="close" label={`Clear the ${name} filter`} onClick={() => set({ [name]: undefined })} />
          </span>
        ),
      )}
    </>
  );
}

/** Searches when the user stops typing or presses Enter. */
function SearchBox({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [typedText, setTypedText] = useState(text);
  const onPause = useEffectEvent(onChange);
  useEffect(() => setTypedText(text), [text]);
  useEffect(() => {
    if (typedText.trim() === text) return;
    const timer = setTimeout(() => onPause(typedText.trim()), 250);
    return () => clearTimeout(timer);
  }, [typedText, text]);
  return (
    <input
      type="search"
      className={styles["search"]}
      aria-label="Search runs"
      placeholder="Search prompts, results, tool input"
      value={typedText}
      onChange={(event) => setTypedText(event.target.value)}
      onKeyDown={(event) => event.key === "Enter" && onChange(typedText.trim())}
    />
  );
}
