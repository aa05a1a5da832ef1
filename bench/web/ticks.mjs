// Prints the current time repeatedly, so that the page that shows a line knows its age.
let count = 0;
const ticking = setInterval(() => {
  count += 1;
  process.stdout.write(`tick ${count} ${Date.now()}\n`);
  if (count === 200) clearInterval(ticking);
}, 50);
