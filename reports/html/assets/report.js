// Comfort on top of pages that are complete without it: filters, whose state is in the address, and keys.
"use strict";
(() => {
  const single = document.body.classList.contains("single");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // The address: #place, #?state, or in one file #page, #page:place, #page?state.
  const parts = () => {
    const hash = location.hash.slice(1);
    const at = hash.indexOf("?");
    return { place: decodeURIComponent(at < 0 ? hash : hash.slice(0, at)), state: new URLSearchParams(at < 0 ? "" : hash.slice(at + 1)) };
  };
  const keep = (page, state) => {
    const text = state.toString();
    const hash = "#" + (single ? page : "") + (text ? "?" + text : "");
    history.replaceState(null, "", hash === "#" ? location.pathname + location.search : hash);
  };
  const pageOf = (element) => element.closest("[data-page]");
  const shows = (element) => !single || pageOf(element).classList.contains("shown");

  // One file: show the page that the address names.
  const turn = () => {
    const place = parts().place;
    const pages = all(".page");
    const wanted = pages.find((page) => page.id === place || (place.startsWith(page.id + ":"))) || pages[0];
    for (const page of pages) {
      page.classList.toggle("shown", page === wanted);
      page.classList.toggle("away", page !== wanted);
    }
    for (const tab of all("[data-tab]")) {
      if (tab.dataset.tab === wanted.dataset.tabOf) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    document.title = wanted.dataset.title + " · Watermark conformance";
    const target = place && document.getElementById(place);
    if (target && target !== wanted) target.scrollIntoView(); else scrollTo(0, 0);
  };

  const read = (form, state) => {
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") field.checked = state.getAll(field.name).includes(field.value);
      else field.value = state.get(field.name) || "";
    }
  };
  const written = (form) => {
    const state = new URLSearchParams();
    for (const field of form.elements) {
      if (!field.name || (field.type === "checkbox" && !field.checked)) continue;
      if (field.value) state.append(field.name, field.value);
    }
    return state;
  };

  // The matrix: every row knows the kinds of its signs and the numbers of its behaviours, a word for each version.
  const matrix = (form) => {
    const root = pageOf(form), table = root.querySelector("[data-matrix]");
    const versions = all("thead th[data-version]", table).map((head) => head.dataset.version);
    const bodies = all("tbody", table);
    const rows = bodies.flatMap((body) => all("[data-row]", body).map((row) => ({
      row, family: body.dataset.family, cells: [...row.children],
      text: row.firstElementChild.textContent.toLowerCase(),
      tags: row.dataset.tags.split(" "), kinds: row.dataset.kinds.split(" "), behaviours: row.dataset.behaviours.split(" "),
    })));
    const heads = all("thead tr, tr.family", table).map((row) => [...row.children]);
    let hidden = "";
    const columns = (chosen) => {
      const off = versions.map((version) => chosen.length > 0 && !chosen.includes(version));
      if (off.join() === hidden) return;
      hidden = off.join();
      for (const cells of [...heads, ...rows.map((one) => one.cells)]) {
        off.forEach((is, at) => cells[at + 1].classList.toggle("off", is));
      }
    };
    const apply = () => {
      const text = form.elements.text.value.trim().toLowerCase().split(/\s+/);
      const family = form.elements.family.value, tag = form.elements.tag.value, differ = form.elements.differ.checked;
      const picked = (name) => all(`[name=${name}]:checked`, form).map((box) => box.value);
      const kinds = picked("status"), chosen = picked("version");
      const at = versions.map((_, place) => place).filter((place) => !chosen.length || chosen.includes(versions[place]));
      columns(chosen);
      let shown = 0;
      for (const one of rows) {
        const seen = new Set(at.map((place) => one.behaviours[place]).filter((number) => number !== "-"));
        const fits = text.every((word) => one.text.includes(word)) && (!family || one.family === family)
          && (!tag || one.tags.includes(tag)) && (!differ || seen.size > 1)
          && (!kinds.length || at.some((place) => kinds.includes(one.kinds[place])));
        if (one.row.hidden === fits) one.row.hidden = !fits;
        shown += fits;
      }
      for (const body of bodies) body.hidden = !body.querySelector("[data-row]:not([hidden])");
      form.querySelector("[data-shown]").textContent = shown === rows.length ? `${rows.length} cases` : `${shown} of ${rows.length} cases`;
      root.querySelector("[data-nothing]").hidden = shown > 0;
    };
    const changed = () => { apply(); keep(root.dataset.page, written(form)); };
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    const clear = () => { read(form, new URLSearchParams()); changed(); };
    form.addEventListener("reset", (event) => { event.preventDefault(); clear(); });
    root.querySelector("[data-clear]").addEventListener("click", () => { clear(); form.elements.text.focus(); });
    const restore = () => { if (shows(form)) { read(form, parts().state); apply(); } };
    // Arrow keys go from cell to cell; the names of cases are what Tab stops at.
    table.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const cell = event.target.closest("[data-row] > th, [data-row] > td");
      if (!move || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
      const visible = rows.filter((one) => !one.row.hidden);
      const to = visible[visible.findIndex((one) => one.row === cell.parentElement) + move[0]];
      let place = cell.cellIndex + move[1];
      while (to && to.cells[place] && to.cells[place].classList.contains("off")) place += move[1];
      const link = to && to.cells[place] && to.cells[place].querySelector("a");
      if (link) { event.preventDefault(); link.focus(); }
    });
    return restore;
  };

  // Two versions: the pickers lead to the page of the pair, the older first.
  const pick = (form) => form.addEventListener("change", () => {
    const order = [...form.elements.from.options].map((option) => option.value);
    const [from, to] = [form.elements.from.value, form.elements.to.value].sort((a, b) => order.indexOf(a) - order.indexOf(b));
    if (from !== to) location.href = form.dataset.pick.replace("{from}", encodeURIComponent(from)).replace("{to}", encodeURIComponent(to));
  });

  // Features of one's own query: what uses all that is ticked.
  const features = (form) => {
    const root = pageOf(form);
    const items = all("[data-item]", root).map((item) => ({ item, uses: item.dataset.features.split("|") }));
    const apply = () => {
      const wanted = written(form).getAll("uses");
      let shown = 0;
      for (const one of items) {
        one.item.hidden = !wanted.every((feature) => one.uses.includes(feature));
        shown += !one.item.hidden;
      }
      for (const entry of all("[data-entry]", root)) entry.hidden = !entry.querySelector("[data-item]:not([hidden])");
      for (const group of all("[data-group]", root)) {
        const count = all("[data-item]:not([hidden])", group).length;
        group.hidden = !count;
        group.querySelector("[data-count]").textContent = count;
      }
      form.querySelector("[data-shown]").textContent = wanted.length ? `${shown} of ${items.length} changes` : "";
      root.querySelector("[data-nothing]").hidden = shown > 0;
    };
    form.addEventListener("input", () => { apply(); keep(root.dataset.page, written(form)); });
    return () => { if (shows(form)) { read(form, parts().state); apply(); } };
  };

  const copy = (button) => button.addEventListener("click", () => {
    const text = button.parentElement.nextElementSibling.textContent;
    const done = () => { button.textContent = "Copied"; };
    const select = () => { getSelection().selectAllChildren(button.parentElement.nextElementSibling); document.execCommand("copy"); done(); };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select); else select();
  });

  for (const element of all(".scripted")) element.hidden = false;
  const restore = [...all("[data-filters]").map(matrix), ...all("form[data-features]").map(features)];
  all("[data-pick]").forEach(pick);
  all("[data-copy]").forEach(copy);
  const arrive = () => { if (single) turn(); restore.forEach((one) => one()); };
  addEventListener("hashchange", arrive);
  // What is folded away on a screen is on paper.
  let folded = [];
  addEventListener("beforeprint", () => { folded = all("details:not([open])"); for (const one of folded) one.open = true; });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
  arrive();
})();
