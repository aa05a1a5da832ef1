import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useState } from "react";
import { queries } from "../data/queries.ts";
import { Icon, type IconName } from "../parts/icon.tsx";
import { setTheme, themes } from "../parts/theme.ts";
import { useDebounced } from "../parts/use-debounced.ts";
import { pages } from "./pages.ts";
import styles from "./palette.module.css";

export function Palette({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Command.Dialog
      open={open}
      onOpenChange={onOpenChange}
      label="Search or jump to"
      overlayClassName={styles["overlay"] ?? ""}
      contentClassName={styles["content"] ?? ""}
      aria-describedby={undefined}
      loop
    >
      {open ? <Entries close={() => onOpenChange(false)} /> : null}
    </Command.Dialog>
  );
}

function Entries({ close }: { close: () => void }) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const agents = useQuery(queries.agents());
  const schedules = (useInfiniteQuery(queries.schedules()).data?.pages ?? []).flatMap(({ items }) => items);
  const runs = useQuery(queries.recentRuns({}, 20));
  const searchText = useDebounced(text.trim());
  const matches = useQuery(queries.search(/[\p{L}\p{N}]{2}/u.test(searchText) ? searchText : "", 8));
  const goTo = (to: string): void => {
    close();
    void navigate({ to });
  };
  const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(text.trim());
  return (
    <>
      <Command.Input autoFocus value={text} onValueChange={setText} placeholder="Search or jump to" />
      <Command.List>
        <Command.Empty>{matches.isFetching ? "Searching" : "No results."}</Command.Empty>
        {isId ? (
          <Entry icon="runs" text={`Open run ${text.trim()}`} onSelect={() => goTo(`/runs/${text.trim()}`)} />
        ) : null}
        <Command.Group heading="Pages">
          {pages.map(({ to, icon, label }) => (
            <Entry key={to} icon={icon} text={label} onSelect={() => goTo(to)} />
          ))}
        </Command.Group>
        <Command.Group heading="Run an agent">
          {(agents.data ?? []).map(({ name, runner_id }) => (
            <Entry
              key={`${name}@${runner_id}`}
              icon="agents"
              text={`Run ${name}`}
              value={`run ${name} ${runner_id ?? ""}`}
              onSelect={() => goTo(`/agents/${encodeURIComponent(name)}`)}
            />
          ))}
        </Command.Group>
        <Command.Group heading="Schedules">
          {schedules.map(({ schedule_id, name, agent_name }) => (
            <Entry
              key={schedule_id}
              icon="schedules"
              text={name}
              note={`schedule for ${agent_name}`}
              value={`schedule ${name} ${agent_name} ${schedule_id}`}
              onSelect={() => goTo(`/schedules/${schedule_id}`)}
            />
          ))}
        </Command.Group>
        <Command.Group heading="Recent runs">
          {(runs.data ?? []).map((run) => (
            <Entry
              key={run.run_id}
              icon="runs"
              text={run.agent_name}
              note={run.summary ?? run.error ?? run.status}
              value={`${run.agent_name} ${run.summary ?? ""} ${run.run_id}`}
              onSelect={() => goTo(`/runs/${run.run_id}`)}
            />
          ))}
        </Command.Group>
        {searchText === "" ? null : (
          <Command.Group heading="In prompts, results and tool input">
            {(matches.data ?? []).map((run) => (
              <Entry
                key={run.run_id}
                icon="search"
                text={run.agent_name}
                note={run.match?.excerpt ?? run.summary ?? ""}
                // Contains the search text, or cmdk would filter out runs whose excerpt lacks it.
                value={`${text} in ${run.run_id}`}
                onSelect={() => goTo(`/runs/${run.run_id}`)}
              />
            ))}
            <Entry
              icon="search"
              text={`Search all runs for ${text.trim()}`}
              value={`${text} everywhere`}
              onSelect={() => (close(), void navigate({ to: "/runs", search: { search: text.trim() } }))}
            />
          </Command.Group>
        )}
        <Command.Group heading="Appearance">
          {themes.map(({ name, label, icon }) => (
            <Entry key={name} icon={icon} text={label} onSelect={() => (setTheme(name), close())} />
          ))}
        </Command.Group>
      </Command.List>
    </>
  );
}

function Entry({
  icon,
  text,
  note,
  value,
  onSelect,
}: {
  icon: IconName;
  text: string;
  note?: string;
  value?: string;
  onSelect: () => void;
}) {
  return (
    <Command.Item value={value ?? text} onSelect={onSelect}>
      <Icon name={icon} />
      <span className="ellipsis">{text}</span>
      {note ? <span className="faint ellipsis">{note}</span> : null}
    </Command.Item>
  );
}
