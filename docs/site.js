// Tables that scroll can be scrolled with the keyboard.
new MutationObserver(() => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) one.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });
