// What scrolls sideways can be reached by the keyboard.
addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .formula, .cell_output > .output")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else if (box.matches(".formula")) box.removeAttribute("tabindex");
  }
});
