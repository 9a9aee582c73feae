// Tables that scroll can be scrolled with the keyboard.
new MutationObserver(() => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) one.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });

// A pasted error message is a search for its words: a colon, a bracket or a plus means nothing else.
document.addEventListener("input", (event) => {
  const field = event.target;
  if (field.matches(".md-search__input") && /[:[\]()+~^*]/.test(field.value)) field.value = field.value.replace(/[:[\]()+~^*]/g, " ");
}, true);
