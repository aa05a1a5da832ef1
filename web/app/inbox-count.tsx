import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { queries } from "../data/queries.ts";
import styles from "./inbox-count.module.css";

/** Also in the title and the icon of the tab, for those who look at another one. */
export function InboxCount() {
  const waiting = useQuery(queries.questions(true)).data?.count ?? 0;
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    if (icon) icon.href = waiting > 0 ? "/ui/favicon-waiting.svg" : "/ui/favicon.svg";
    document.title = titleWith(waiting, document.title);
    // pages set titles of their own
    const watch = new MutationObserver(() => {
      const wanted = titleWith(waiting, document.title);
      if (document.title !== wanted) document.title = wanted;
    });
    watch.observe(document.querySelector("title")!, { childList: true });
    return () => watch.disconnect();
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
