// The theme: that of the system until the button is pressed; canvases are painted anew.
(() => {
  const root = document.documentElement;
  const dark = () => getComputedStyle(root).colorScheme === "dark";
  const keep = (theme) => { try { localStorage.setItem("venn-theme", theme); } catch { /* no storage: for this page only */ } };
  const kept = () => { try { return localStorage.getItem("venn-theme"); } catch { return null; } };
  const paint = () => {
    if (window.Bokeh) for (const view of Bokeh.index.query((view) => view.request_repaint)) view.request_repaint();
  };
  if (kept()) root.dataset.theme = kept();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      keep(root.dataset.theme);
      paint();
    });
  });
})();
