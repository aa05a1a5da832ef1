import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { IconButton } from "./button.tsx";
import styles from "./dialog.module.css";

export function Dialog({
  open,
  onOpenChange,
  title,
  note,
  children,
  wide = false,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  note?: ReactNode;
  children: ReactNode;
  wide?: boolean;
}) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={styles["overlay"]} />
        <Radix.Content className={`${styles["content"]} ${wide ? styles["wide"] : ""}`} aria-describedby={undefined}>
          <div className={styles["head"]}>
            <Radix.Title className={styles["title"]}>{title}</Radix.Title>
            {note === undefined ? null : <span className="dim">{note}</span>}
            <Radix.Close asChild>
              <IconButton icon="close" label="Close" />
            </Radix.Close>
          </div>
          <div className={styles["body"]}>{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
