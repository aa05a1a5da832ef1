import { useState } from "react";
import { IconButton } from "./button.tsx";
import styles from "./command.module.css";

/** A command to copy and run in a terminal. */
export function Command({ text, label = "Copy the command" }: { text: string; label?: string }) {
  return (
    <div className={styles["command"]}>
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = (): void =>
    void copyText(text).then(() => {
      setIsCopied(true);
      setTimeout(() => setIsCopied(false), 1500);
    });
  return <IconButton icon={isCopied ? "ok" : "copy"} label={isCopied ? "Copied" : label} onClick={copy} />;
}

/** Browsers offer no clipboard API on plain HTTP outside loopback, so fall back to `execCommand`. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
