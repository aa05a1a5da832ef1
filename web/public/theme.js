// Before the first paint, so that no page flashes in the other theme. Apart from the app: the policy allows no inline script.
{
  const wanted = localStorage.getItem("drover.theme") ?? "system";
  const dark = wanted === "dark" || (wanted === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
