import { Dialog } from "../parts/dialog.tsx";
import { pages } from "./pages.ts";
import styles from "./shortcut-help.module.css";

const generalShortcuts: readonly [keys: string, description: string][] = [
  ["Ctrl K", "search or jump to a page"],
  ["?", "this list"],
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["a e d", "approve, edit or deny the tool call"],
];

export function ShortcutHelp({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keyboard shortcuts">
      <dl className={styles["keys"]}>
        {generalShortcuts.map(([keys, description]) => (
          <Row key={keys} keys={keys.split(" ")} description={description} />
        ))}
        {pages.map(({ key, label }) => (
          <Row key={key} keys={["g", key]} description={`go to ${label}`} />
        ))}
      </dl>
    </Dialog>
  );
}

function Row({ keys, description }: { keys: string[]; description: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{description}</dd>
    </div>
  );
}
