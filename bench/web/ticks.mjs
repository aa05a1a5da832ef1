// Prints the time it is, again and again: whoever shows a line knows how old it is.
let count = 0;
const ticking = setInterval(() => {
  count += 1;
  process.stdout.write(`tick ${count} ${Date.now()}\n`);
  if (count === 200) clearInterval(ticking);
}, 50);
