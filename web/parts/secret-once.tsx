import type { ReactNode } from "react";
import { Command } from "./command.tsx";
import styles from "./secret-once.module.css";

/** Shows a secret that cannot be read again, since Drover does not return it a second time. */
export function SecretOnce({
  what,
  text,
  copy = "Copy the secret",
  children,
}: {
  what: string;
  text: string;
  copy?: string;
  children?: ReactNode;
}) {
  return (
    <div className={styles["once"]} role="status">
      <p>
        {what} <b>This is the only time it is shown.</b>
      </p>
      <Command text={text} label={copy} />
      {children}
    </div>
  );
}
