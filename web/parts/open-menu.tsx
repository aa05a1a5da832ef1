import { DropdownMenu } from "radix-ui";
import { type ReactElement, useRef } from "react";
import { Icon } from "./icon.tsx";
import type { MenuEntry } from "./menu.tsx";
import styles from "./menu.module.css";

/** Opens as soon as it is there. */
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
  // the key that opened it the first time was pressed before there was a menu to notice it
  const focusFirst = (menu: HTMLDivElement | null): void => {
    if (menu === null || !isFirst.current) return;
    isFirst.current = false;
    if (byKeyboard) setTimeout(() => menu.querySelector<HTMLElement>("[role^=menuitem]")?.focus());
  };
  return (
    // not modal, and within the content: the rest of the page stays readable, and its landmarks hold the menu too
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
      <span className={styles["mark"]}>{checked ? <Icon name="ok" small /> : null}</span>
      {text}
    </DropdownMenu.CheckboxItem>
  );
}
