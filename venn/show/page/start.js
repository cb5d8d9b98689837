// The figures: what is to be drawn stands in the page as data, since no script may stand there.
addEventListener("DOMContentLoaded", () => {
  const items = document.getElementById("items");
  if (items) Bokeh.safely(() => Bokeh.embed.embed_items({}, JSON.parse(items.textContent)));
});
