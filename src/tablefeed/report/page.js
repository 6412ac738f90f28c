(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  for (const mark of document.querySelectorAll("svg .m")) {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.textContent = "";
  }
  const show = (event) => {
    const mark = event.target.closest ? event.target.closest("svg .m") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - 14;
    tip.style.left = `${Math.max(x, 8)}px`;
    tip.style.top = `${above < 8 ? event.clientY + 18 : above}px`;
  };
  addEventListener("pointermove", show, { passive: true });
  addEventListener("pointerdown", show, { passive: true });
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
