import { useEffect, useState } from "react";

/** Returns the text once it has not changed for 200 ms, so that requests wait until the user stops typing. */
export function useDebounced(text: string): string {
  const [debounced, setDebounced] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return debounced;
}
