import { Dialog } from "../parts/dialog.tsx";
import { pages } from "./pages.ts";
import styles from "./shortcut-help.module.css";

const others: readonly [keys: string, what: string][] = [
  ["Ctrl K", "search or jump to a page"],
  ["?", "this list"],
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["a e d", "approve, edit or deny a question"],
];

export function ShortcutHelp({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keyboard">
      <dl className={styles["keys"]}>
        {others.map(([keys, what]) => (
          <Row key={keys} keys={keys.split(" ")} what={what} />
        ))}
        {pages.map(({ key, word }) => (
          <Row key={key} keys={["g", key]} what={`go to ${word}`} />
        ))}
      </dl>
    </Dialog>
  );
}

function Row({ keys, what }: { keys: string[]; what: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{what}</dd>
    </div>
  );
}
