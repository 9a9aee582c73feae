"""What a page shows cut off, or one text over another."""

WRONG = r"""() => {
  const wrong = [], width = document.documentElement.clientWidth, parts = new Map();
  const whole = document.documentElement.scrollWidth;
  if (whole > width) wrong.push(`the page is ${whole} pixels wide`);
  const shown = element => element.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const hides = overflow => overflow === "hidden" || overflow === "clip";
  const named = node => {
    const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    return `${element.tagName.toLowerCase()} ${element.getAttribute("class") || ""} "${node.textContent.trim().slice(0, 50)}"`;
  };
  // The part of the page in which an element can be read: what each box around it that scrolls or hides shows of it.
  const part = element => {
    if (!element || element === document.body) return [0, -Infinity, width, Infinity];
    if (!parts.has(element)) {
      let [left, top, right, bottom] = part(element.parentElement);
      const {overflowX, overflowY} = getComputedStyle(element);
      if (overflowX !== "visible" || overflowY !== "visible") {
        const box = element.getBoundingClientRect();
        [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
        [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
      }
      parts.set(element, [left, top, right, bottom]);
    }
    return parts.get(element);
  };
  // What stays in its place lies over what is scrolled below it.
  const fixed = element => {
    for (; element; element = element.parentElement)
      if (["sticky", "fixed"].includes(getComputedStyle(element).position)) return element;
  };
  for (const element of document.querySelectorAll("body *")) {
    const {overflowX, overflowY} = getComputedStyle(element);
    if (!hides(overflowX) && !hides(overflowY) || element.closest("svg") || !shown(element)) continue;
    // One pixel is for who hears a page, and what is left of it is a drawer that is closed.
    if (element.clientWidth < 4 || element.clientHeight < 4 || element.getBoundingClientRect().right <= 0) continue;
    if (hides(overflowX) && element.scrollWidth > element.clientWidth + 1 ||
        hides(overflowY) && element.scrollHeight > element.clientHeight + 1) wrong.push(`cut: ${named(element)}`);
  }
  const boxes = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (texts.nextNode()) {
    const node = texts.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || element.closest("script, style, noscript, option, title, desc") || !shown(element)) continue;
    range.selectNodeContents(node);
    const [left, top, right, bottom] = part(element);
    for (const line of range.getClientRects()) {
      const box = {left: Math.max(left, line.left), top: Math.max(top, line.top), right: Math.min(right, line.right),
        bottom: Math.min(bottom, line.bottom), node, fixed: fixed(element)};
      if (box.right - box.left > 3 && box.bottom - box.top > 3) boxes.push(box);
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  boxes.forEach((one, at) => {
    for (let next = at + 1; next < boxes.length && boxes[next].top < one.bottom; next++) {
      const other = boxes[next];
      if (one.node === other.node || one.fixed !== other.fixed) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - other.top;
      // Lines that follow each other closely share a few pixels in which no letter is.
      const line = Math.min(one.bottom - one.top, other.bottom - other.top);
      if (wide > 3 && high > line * .35) wrong.push(`over each other: ${named(one.node)} and ${named(other.node)}`);
    }
  });
  return wrong;
}"""


def cut_or_overlapping(page) -> list[str]:
    """Return what is cut off or lies over something else on a page as it is now, or makes it scroll sideways."""
    return page.evaluate(WRONG)
