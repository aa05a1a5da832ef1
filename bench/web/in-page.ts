// Code that runs in the measured page. As text, because the bench itself has no DOM.

/** Scrolls by `by` pixels in each of `count` frames and returns the times between frames. */
export const frames = (element: string, by: number, count: number): string => `new Promise((resolve) => {
  const taken = [];
  let last = null;
  const step = (now) => {
    if (last !== null) taken.push(now - last);
    last = now;
    if (taken.length === ${count}) return resolve(taken);
    (${element}).scrollBy({ top: ${by}, behavior: "instant" });
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})`;

/** The age of each line of ticks.mjs when the frame that shows it has been painted. */
export const tickAges = (count: number): string => `new Promise((resolve) => {
  const taken = [];
  const seen = new Set();
  const shown = () => [...document.querySelectorAll("[role=log] [data-index] > span")].map((one) => /^tick (\\d+) (\\d+)/.exec(one.textContent)).filter(Boolean);
  for (const [, tick] of shown()) seen.add(tick);
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
    const now = Date.now();
    for (const [, tick, at] of shown())
      if (!seen.has(tick)) {
        seen.add(tick);
        taken.push(now - Number(at));
      }
    if (taken.length >= ${count}) resolve(taken);
  }))).observe(document.querySelector("[role=log]"), { childList: true, subtree: true, characterData: true });
})`;

/** The delay from each keypress until its handler runs. */
export const inputDelays = `window.inputDelays = [];
addEventListener("keydown", ({ timeStamp }) => window.inputDelays.push(performance.now() - timeStamp), { capture: true })`;

/** Transferred bytes by file type. */
export const scripts = `(() => {
  const sum = (all) => all.reduce((total, { encodedBodySize }) => total + encodedBodySize, 0);
  const files = performance.getEntriesByType("resource").filter(({ name }) => name.startsWith(location.origin + "/ui/"));
  const ending = (end) => files.filter(({ name }) => name.endsWith(end));
  return { script: sum(ending(".js")), style: sum(ending(".css")), font: sum(ending(".woff2")), files: files.length };
})()`;
