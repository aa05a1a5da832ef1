import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { queries } from "../data/queries.ts";
import styles from "./inbox-count.module.css";

/** Shows the number of open questions here and in the tab's title and icon, so that it is visible from other tabs. */
export function InboxCount() {
  const waiting = useQuery(queries.questions(true)).data?.count ?? 0;
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    if (icon) icon.href = waiting > 0 ? "/ui/favicon-waiting.svg" : "/ui/favicon.svg";
    document.title = titleWith(waiting, document.title);
    // Pages set their own titles, so the count is put back whenever the title changes.
    const observer = new MutationObserver(() => {
      const wanted = titleWith(waiting, document.title);
      if (document.title !== wanted) document.title = wanted;
    });
    observer.observe(document.querySelector("title")!, { childList: true });
    return () => observer.disconnect();
  }, [waiting]);
  return waiting === 0 ? null : (
    <span className={styles["count"]}>
      {waiting}
      <span className="hidden-visually"> open questions</span>
    </span>
  );
}

function titleWith(waiting: number, title: string): string {
  const plain = title.replace(/^\(\d+\) /, "");
  return waiting > 0 ? `(${waiting}) ${plain}` : plain;
}
