import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { queries } from "../data/queries.ts";
import styles from "./inbox-count.module.css";

/** Shows the number of open questions in the navigation and in the tab's title and icon. */
export function InboxCount() {
  const openCount = useQuery(queries.questions(true)).data?.count ?? 0;
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    if (icon) icon.href = openCount > 0 ? "/ui/favicon-waiting.svg" : "/ui/favicon.svg";
    document.title = addCount(openCount, document.title);
    // Pages replace the title, so add the count again whenever it changes.
    const observer = new MutationObserver(() => {
      const expectedTitle = addCount(openCount, document.title);
      if (document.title !== expectedTitle) document.title = expectedTitle;
    });
    observer.observe(document.querySelector("title")!, { childList: true });
    return () => observer.disconnect();
  }, [openCount]);
  return openCount === 0 ? null : (
    <span className={styles["count"]}>
      {openCount}
      <span className="visually-hidden"> open questions</span>
    </span>
  );
}

function addCount(openCount: number, title: string): string {
  const plain = title.replace(/^\(\d+\) /, "");
  return openCount > 0 ? `(${openCount}) ${plain}` : plain;
}
