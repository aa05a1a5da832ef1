import { useState } from "react";
import { IconButton } from "./button.tsx";
import styles from "./command.module.css";

/** Something to run elsewhere, as it is typed there. */
export function Command({ text, label = "Copy the command" }: { text: string; label?: string }) {
  return (
    <div className={styles["command"]}>
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = (): void =>
    void copyText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    });
  return <IconButton icon={done ? "ok" : "copy"} label={done ? "Copied" : label} onClick={copy} />;
}

/** On plain HTTP beyond loopback a browser has no clipboard for us. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
