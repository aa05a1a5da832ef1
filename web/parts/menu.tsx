import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./menu.module.css";

export function Menu({ trigger, children }: { trigger: ReactNode; children: ReactNode }) {
  return (
    // not modal, and within the content: the rest of the page stays readable, and its landmarks hold the menu too
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={document.querySelector("main")}>
        <DropdownMenu.Content className={styles["menu"]} align="end" sideOffset={4}>
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

export function MenuItem({ icon, children, onSelect }: { icon?: IconName; children: ReactNode; onSelect: () => void }) {
  return (
    <DropdownMenu.Item className={styles["item"]} onSelect={onSelect}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </DropdownMenu.Item>
  );
}

/** One of several that can be on at once. */
export function MenuCheck({
  checked,
  onChange,
  children,
}: {
  checked: boolean;
  onChange: (on: boolean) => void;
  children: ReactNode;
}) {
  return (
    <DropdownMenu.CheckboxItem
      className={styles["item"]}
      checked={checked}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
    >
      <span className={styles["mark"]}>{checked ? <Icon name="ok" small /> : null}</span>
      {children}
    </DropdownMenu.CheckboxItem>
  );
}
