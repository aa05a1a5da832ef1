// Sets the theme before the first paint, so that pages do not flash. A separate file because the content security policy
// forbids inline scripts.
{
  const wanted = localStorage.getItem("drover.theme") ?? "system";
  const dark = wanted === "dark" || (wanted === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
