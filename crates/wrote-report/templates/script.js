"use strict";
for (const button of document.querySelectorAll("button[hidden]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const pre = button.parentNode.querySelector("pre");
    let done = "Copied";
    try {
      await navigator.clipboard.writeText(pre.textContent);
    } catch {
      getSelection().selectAllChildren(pre);
      done = "Selected";
    }
    button.textContent = done;
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
const show = (event) => {
  const group = event.target.closest ? event.target.closest("svg g") : null;
  const title = group && group.querySelector("title");
  if (title) {
    // The browser would show the title as well, and later.
    group.setAttribute("data-title", title.textContent);
    title.remove();
  }
  const text = group && group.getAttribute("data-title");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 6);
  const above = event.clientY - height - 12;
  tip.style.left = Math.max(6, left) + "px";
  tip.style.top = (above < 6 ? event.clientY + 18 : above) + "px";
};
addEventListener("pointermove", show);
addEventListener("pointerdown", show);
addEventListener("scroll", () => { tip.hidden = true; }, true);
