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

// A server that has gone: Bokeh gives up after half a minute, and its token after five; here the page asks on until
// somebody answers, then it is opened anew.
(() => {
  const root = document.documentElement;
  let asking = null;
  const found = () => { clearInterval(asking); asking = null; delete root.dataset.lost; };
  const ask = async () => {
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (answer.ok && asking !== null) location.reload();
    } catch { /* not yet */ }
  };
  const lost = () => { root.dataset.lost = ""; asking ??= setInterval(ask, 2000); };
  const listen = () => {
    const shown = Bokeh.documents[0];
    if (!shown) return void setTimeout(listen, 200);
    shown.on_event("connection_lost", lost);
    shown.on_event("client_reconnected", found);
  };
  addEventListener("DOMContentLoaded", () => { if (window.Bokeh) listen(); });
})();
