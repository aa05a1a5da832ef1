import { DropdownMenu } from "radix-ui";
import { type ReactElement, useRef } from "react";
import { Icon } from "./icon.tsx";
import type { MenuEntry } from "./menu.tsx";
import styles from "./menu.module.css";

/** A menu that opens as soon as it mounts. */
export function OpenMenu({
  trigger,
  entries,
  byKeyboard,
}: {
  trigger: ReactElement;
  entries: readonly MenuEntry[];
  byKeyboard: boolean;
}) {
  const isFirst = useRef(true);
  // The first keypress came before the menu existed, so focus the first entry by hand.
  const focusFirst = (menu: HTMLDivElement | null): void => {
    if (menu === null || !isFirst.current) return;
    isFirst.current = false;
    if (byKeyboard) setTimeout(() => menu.querySelector<HTMLElement>("[role^=menuitem]")?.focus());
  };
  return (
    // Not modal and inside <main>, so that the page stays readable and the menu stays within a landmark.
    <DropdownMenu.Root defaultOpen modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={document.querySelector("main")}>
        <DropdownMenu.Content ref={focusFirst} className={styles["menu"]} align="end" sideOffset={4}>
          {entries.map((entry) => (
            <Entry key={entry.text} {...entry} />
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function Entry({ text, icon, checked, onSelect }: MenuEntry) {
  if (checked === undefined)
    return (
      <DropdownMenu.Item className={styles["item"]} onSelect={onSelect}>
        {icon ? <Icon name={icon} /> : null}
        {text}
      </DropdownMenu.Item>
    );
  return (
    <DropdownMenu.CheckboxItem
      className={styles["item"]}
      checked={checked}
      onCheckedChange={onSelect}
      onSelect={(event) => event.preventDefault()}
    >
      <span className={styles["check"]}>{checked ? <Icon name="ok" small /> : null}</span>
      {text}
    </DropdownMenu.CheckboxItem>
  );
}
