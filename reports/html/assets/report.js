// Filters, whose state is in the address, keys, and the parts that pages in a folder share. The pages at the top are complete without it.
"use strict";
(() => {
  const single = document.body.classList.contains("single");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // What a page shares with others lies in a file of their folder; a comment marks its place.
  const put = (root) => {
    const found = document.createNodeIterator(root, NodeFilter.SHOW_COMMENT), marks = [];
    for (let mark; (mark = found.nextNode());) if (globalThis.shared && shared[mark.data]) marks.push(mark);
    for (const mark of marks) {
      const part = document.createElement("template");
      part.innerHTML = shared[mark.data];
      put(part.content);
      for (const end of all("[data-end]", part.content)) end.replaceWith(document.querySelector("h1").dataset[end.dataset.end]);
      mark.replaceWith(part.content);
    }
  };
  put(document);
  for (const link of all(".grid a")) {
    if (link.pathname !== location.pathname || link.hash) continue;
    link.setAttribute("aria-current", "page");
    link.parentElement.classList.add("current");
  }

  // The address: #place, #?state, or in one file #page, #page:place, #page?state.
  const parts = () => {
    const hash = location.hash.slice(1);
    const at = hash.indexOf("?");
    return { place: decodeURIComponent(at < 0 ? hash : hash.slice(0, at)), state: new URLSearchParams(at < 0 ? "" : hash.slice(at + 1)) };
  };
  const keep = (page, state) => {
    // What is ticked on another page and has no box on this one stays in the address.
    const root = document.querySelector(`[data-page="${CSS.escape(page)}"]`);
    for (const used of parts().state.getAll("uses")) {
      if (!root.querySelector(`[name=uses][value="${CSS.escape(used)}"]`)) state.append("uses", used);
    }
    const text = state.toString();
    const hash = "#" + (single ? page : "") + (text ? "?" + text : "");
    history.replaceState(history.state, "", hash === "#" ? location.pathname + location.search : hash);
  };
  const pageOf = (element) => element.closest("[data-page]");
  const shows = (element) => !single || pageOf(element).classList.contains("shown");

  // Where one was on a page, for Back: the browser knows neither the regions that scroll nor the pages of one file.
  const tall = () => all(".tall").filter((region) => shows(region));
  const remember = () => history.replaceState({ at: scrollY, regions: tall().map((region) => [region.scrollLeft, region.scrollTop]) }, "");
  const returned = () => {
    if (!history.state || !history.state.regions) return;
    tall().forEach((region, at) => { [region.scrollLeft, region.scrollTop] = history.state.regions[at] || [0, 0]; });
    scrollTo(0, history.state.at);
  };
  history.scrollRestoration = "manual";
  document.addEventListener("click", (event) => { if (event.target.closest("a[href]")) remember(); }, true);
  addEventListener("pagehide", remember);
  // A link to another place of a page keeps what is ticked on it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']"), state = parts().state.toString();
    const target = state && link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!target || !shows(target) || target === pageOf(target)) return;
    event.preventDefault();
    history.pushState(history.state, "", `${link.hash}?${state}`);
    opened();
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  });

  // One file: a page lies in a noscript, as text, until it is shown; a browser without scripts has them all.
  const fill = (page) => {
    const held = page.querySelector(":scope > noscript");
    if (!held) return;
    page.innerHTML = held.textContent;
    wire(page);
  };

  // Show the page that the address names.
  const turn = () => {
    const place = parts().place;
    const pages = all(".page");
    const wanted = pages.find((page) => page.id === place || (place.startsWith(page.id + ":"))) || pages[0];
    fill(wanted);
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

  // The matrix: every cell knows the kind of its sign, every row the numbers of its behaviours, a word for each version.
  const matrix = (form) => {
    const root = pageOf(form), table = root.querySelector("[data-matrix]");
    const versions = all("thead th[data-version]", table).map((head) => head.dataset.version);
    const bodies = all("tbody", table);
    const rows = bodies.flatMap((body) => all("[data-row]", body).map((row) => ({
      row, family: body.dataset.family, cells: [...row.children],
      text: [row.firstElementChild.textContent.toLowerCase(), row.dataset.words, row.dataset.errors].join(" "),
      errors: (row.dataset.errors || "").split("|").filter((one) => one),
      tags: row.dataset.tags.split(" "), kinds: all("td:not(.turns)", row).map((cell) => cell.className.match(/s-(\S+)/)[1]), behaviours: row.dataset.behaviours.split(" "),
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
      const text = form.elements.text.value.trim().toLowerCase().split(/\s+/), pasted = text.join(" ");
      const family = form.elements.family.value, tag = form.elements.tag.value, differ = form.elements.differ.checked;
      const picked = (name) => all(`[name=${name}]:checked`, form).map((box) => box.value);
      const kinds = picked("status"), chosen = picked("version");
      const at = versions.map((_, place) => place).filter((place) => !chosen.length || chosen.includes(versions[place]));
      columns(chosen);
      let shown = 0;
      for (const one of rows) {
        const seen = new Set(at.map((place) => one.behaviours[place]).filter((number) => number !== "-"));
        const fits = (text.every((word) => one.text.includes(word)) || one.errors.some((error) => pasted.includes(error))) && (!family || one.family === family)
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
    // The newest versions come first on a screen that is too narrow for all.
    const newest = all("thead th[data-version]", table).pop();
    if (newest) table.parentElement.scrollLeft = newest.offsetLeft + newest.offsetWidth - table.parentElement.clientWidth;
    // A cell leads to the page of its case; arrow keys go from cell to cell, and Tab from name to name.
    const open = (event, cell) => {
      if (cell && !event.target.closest("a")) cell.parentElement.querySelector("th a").dispatchEvent(new MouseEvent("click", event));
    };
    table.addEventListener("click", (event) => open(event, event.target.closest("[data-row] > td:not(.turns)")));
    table.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const cell = event.target.closest("[data-row] > th, [data-row] > td");
      if (event.key === "Enter") open(event, cell);
      if (!move || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
      const visible = rows.filter((one) => !one.row.hidden);
      const to = visible[visible.findIndex((one) => one.row === cell.parentElement) + move[0]];
      let place = cell.cellIndex + move[1];
      while (to && to.cells[place] && to.cells[place].classList.contains("off")) place += move[1];
      const next = to && to.cells[place], focused = next && (next.querySelector("a") || next);
      if (!focused) return;
      event.preventDefault();
      if (focused === next) next.tabIndex = -1;
      focused.focus();
    });
    return restore;
  };

  // Two versions: the pickers lead to the page of the pair, with what is ticked.
  const pick = (form) => {
    const say = form.querySelector("[data-said]"), pairs = form.dataset.pairs.split(" ");
    const address = (from, to) => {
      const page = form.dataset.pick.replace("{from}", encodeURIComponent(from)).replace("{to}", encodeURIComponent(to));
      const state = parts().state.toString();
      return state ? page + (single ? "?" : "#?") + state : page;
    };
    const other = (from, to) => `${form.dataset.others}${single ? "?" : "#?"}${new URLSearchParams({ from, to })}`;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", () => {
      const from = form.elements.from.value, to = form.elements.to.value;
      say.textContent = "";
      if (pairs.includes(`${from}..${to}`)) { remember(); location.href = address(from, to); return; }
      if (from === to) { say.textContent = `Both are ${from}. Choose two versions.`; return; }
      const place = (name) => [...form.elements.from.options].findIndex((one) => one.value === name);
      if (form.dataset.others && place(from) < place(to)) { remember(); location.href = other(from, to); return; }
      if (!form.dataset.others && !pairs.includes(`${to}..${from}`)) { say.textContent = `This report does not compare ${from} and ${to}.`; return; }
      const link = document.createElement("a");
      link.href = pairs.includes(`${to}..${from}`) ? address(to, from) : other(to, from);
      link.textContent = `What changes from ${to} to ${from}, and which checkpoints go back`;
      say.append(`${to} is older than ${from}. `, link);
    });
    // A browser keeps what was chosen before Back; the page is about its own two versions.
    return () => { form.reset(); say.textContent = ""; };
  };

  // Any two releases: the page has what changes between all that have none, and shows those of the address.
  const others = (known) => {
    const root = pageOf(known), form = root.querySelector("[data-pick]"), [texts, compared, pairs] = JSON.parse(known.dataset.known);
    const changes = root.querySelector("[data-changes]").content.children;
    return () => {
      const ends = ["from", "to"].map((name) => parts().state.get(name)), [of, said, nearest] = pairs[ends.join("..")] || [];
      const found = of !== undefined && { basis: texts[compared[of][0]], groups: compared[of].slice(1), handed: texts[said], nearest: texts[nearest] };
      if (!shows(root)) return;
      ["from", "to"].forEach((name, at) => { form.elements[name].value = ends[at]; });
      root.querySelector("[data-heading]").textContent = found ? `From ${ends[0]} to ${ends[1]}` : "Any two releases";
      const count = found ? found.groups.reduce((sum, places) => sum + places.length, 0) : 0;
      root.querySelector("[data-basis]").textContent = !found ? "Choose two releases."
        : found.basis.startsWith("nothing") ? `${found.basis}.` : `${count || "None"} of them behave${count === 1 ? "s" : ""} differently: ${found.basis}.`;
      const handed = root.querySelector("[data-handed]");
      handed.textContent = found ? `Will my checkpoints resume? ${found.handed}. ` : "";
      if (found && found.nearest) {
        const link = document.createElement("a");
        [link.href, link.textContent] = [form.dataset.pick.replace("{from}..{to}", found.nearest), "Each of these checkpoints"];
        handed.append(link);
      }
      for (const [at, section] of all("[data-meaning]", root).entries()) {
        const places = found ? found.groups[at] : [];
        section.hidden = !places.length;
        section.querySelector("[data-count]").textContent = places.length;
        section.querySelector("ul").replaceChildren(...places.map((at) => changes[at].cloneNode(true)));
      }
      for (const end of all("ul [data-end]", root)) end.textContent = ends[end.dataset.end];
    };
  };

  // Features of one's own query rank the changes: first those that need only what is ticked, then those that need some of it.
  const features = (form) => {
    const root = pageOf(form), rule = JSON.parse(form.dataset.features);
    const split = (text) => ((globalThis.shared && shared[text]) ?? text).split("|").filter((one) => one);
    const compared = JSON.parse(form.dataset.compared).map(([needs, count]) => ({ needs: split(needs), count }));
    const total = compared.reduce((sum, one) => sum + one.count, 0);
    const items = all("[data-item]", root).map((item, at) => {
      const [uses, fit] = all(".uses > *", item);
      return { item, at, needs: uses ? uses.textContent.split(" · ") : [], fit, list: item.parentElement };
    });
    const entries = all("[data-entry]", root).map((entry, at) => ({ entry, at, group: entry.parentElement }));
    // As conformance/suite/features.py says; a case of which nothing is known may need anything.
    const implied = (uses) => new Set([...uses, ...uses.flatMap((one) => rule.implied[one] || []),
      ...(uses.filter((one) => rule.stateful.includes(one)).length > 1 ? ["chained operators"] : [])]);
    const rank = (needs, uses) => {
      const modes = uses.filter((one) => rule.modes.includes(one)), used = implied(uses);
      const needed = needs.filter((one) => !rule.always.includes(one) && (modes.length || !rule.modes.includes(one)));
      const others = needed.filter((one) => !used.has(one));
      if (!needs.length) return { place: 1, others };
      if (!others.length) return { place: 0, others };
      const shared = needed.filter((one) => used.has(one));
      const relevant = shared.some((one) => !modes.includes(one)) || (shared.length > 0 && modes.length === uses.length);
      return { place: relevant ? 1 : 2, others };
    };
    // The checkpoints of each direction: what is hidden of them, and how many that use some of what is ticked were tried.
    const handed = all("[data-checkpoints]", root).map((section) => ({
      tried: JSON.parse(section.dataset.checkpoints).map(([needs, status, count]) => ({ needs: split(needs), status, count })),
      entries: all(".handover", section), said: section.querySelector("[data-ticked]"),
    }));
    const checkpoints = ({ tried, entries, said }, uses, others) => {
      const relevant = (needs) => !uses.length || rank(needs, uses).place < 2;
      for (const entry of entries) {
        const own = all("[data-features]", entry);
        for (const one of own) one.hidden = !others && !relevant(split(one.dataset.features));
        entry.hidden = own.every((one) => one.hidden);
      }
      if (!said) return;
      const count = (...statuses) => tried.filter((one) => relevant(one.needs) && (!statuses.length || statuses.includes(one.status)))
        .reduce((sum, one) => sum + one.count, 0);
      said.hidden = !uses.length;
      said.textContent = `With some of what you ticked: ${plural(count(), "tried checkpoint")}; refused: ${count("refused", "unsupported")}, `
        + `with other results: ${count("differs", "violates")}.`;
    };
    const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
    const apply = () => {
      const uses = written(form).getAll("uses"), others = form.elements.others.checked;
      if (uses.length) for (const fold of all("[data-unfold]", root)) fold.open = true;
      for (const one of items) {
        const found = uses.length ? rank(one.needs, uses) : { place: 0, others: [] };
        one.place = found.place;
        one.item.hidden = one.place > 1 && !others;
        if (one.fit) one.fit.textContent = !uses.length ? "" : one.place === 0 ? " · only what you ticked" : ` · also ${found.others.join(", ")}`;
      }
      for (const one of [...items].sort((a, b) => a.place - b.place || a.at - b.at)) one.list.append(one.item);
      for (const one of handed) checkpoints(one, uses, others);
      for (const one of entries) {
        const own = items.filter((item) => one.entry.contains(item.item));
        one.place = Math.min(...own.map((item) => item.place));
        one.entry.hidden = own.every((item) => item.item.hidden);
      }
      for (const one of [...entries].sort((a, b) => a.place - b.place || a.at - b.at)) one.group.append(one.entry);
      for (const group of all("[data-group]", root)) {
        const own = items.filter((one) => group.contains(one.item));
        const count = own.filter((one) => one.place < 2).length;
        group.hidden = own.every((one) => one.item.hidden);
        group.querySelector("[data-count]").textContent = count;
        const tile = root.querySelector(`[data-tile="${group.dataset.group}"]`);
        tile.querySelector("[data-tile-count]").textContent = count;
        tile.classList.toggle("none", !count);
      }
      const count = (place) => items.filter((one) => one.place === place).length;
      const covered = compared.filter((one) => rank(one.needs, uses).place < 2).reduce((sum, one) => sum + one.count, 0);
      const basis = `${covered} of ${plural(total, "compared case")} use some of it`;
      form.querySelector("[data-shown]").textContent = !uses.length ? ""
        : `${plural(count(0), "change")} with only what you ticked, ${count(1)} with some of it, ${count(2)} with none; ${basis}.`;
      form.querySelector("[data-others]").hidden = !uses.length || !count(2);
      const nothing = root.querySelector("[data-nothing]");
      nothing.hidden = items.some((one) => one.place < 2);
      nothing.textContent = covered ? `No change in what you ticked: ${basis}, and each behaves the same on both versions, with the known bugs that both have.`
        : "No compared case uses any of this, so these results say nothing about such a query.";
    };
    form.addEventListener("input", () => { apply(); keep(root.dataset.page, written(form)); });
    return () => { if (shows(form)) { read(form, parts().state); apply(); } };
  };

  // What only a script can do is on no page before one runs.
  const button = (place, words, label) => {
    const made = document.createElement("button");
    [made.type, made.textContent] = ["button", words];
    made.setAttribute("aria-label", label);
    return place.appendChild(made);
  };

  // A step has its address and, as a region that keys can scroll, its name.
  const step = (details) => {
    const number = details.querySelector(".number").textContent, on = details.parentElement.dataset.on, region = details.querySelector(".scroll");
    details.firstElementChild.insertAdjacentHTML("afterend", `<p class="permalink"><a href="#${encodeURIComponent(details.id)}">link to this step</a></p>`);
    details.querySelector(".permalink a").setAttribute("aria-label", `Link to this step: ${number} on ${on}`);
    if (!region) return;
    region.setAttribute("aria-label", `Step ${number} on ${on}, side by side`);
  };

  // A picture as a file: what it looks like is in the stylesheet, so it is written into each element.
  const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "paint-order", "text-anchor", "font-family", "font-size", "font-weight"];
  const save = (figure) => button(figure.querySelector(".keys"), "Save picture", `Save picture: ${figure.dataset.name}`).addEventListener("click", () => {
    const svg = figure.querySelector(".scroll svg"), copy = svg.cloneNode(true);
    const drawn = all("*", svg);
    all("*", copy).forEach((element, at) => {
      const style = getComputedStyle(drawn[at]);
      for (const name of LOOK) element.setAttribute(name, style.getPropertyValue(name));
      element.removeAttribute("class");
    });
    const paper = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(document.documentElement).backgroundColor]]) paper.setAttribute(name, value);
    copy.prepend(paper);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    link.download = figure.dataset.name.toLowerCase().replace(/[^a-z0-9.]+/g, "-") + ".svg";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  const copy = (head) => {
    const copies = button(head, "Copy", `Copy ${head.dataset.copy}`);
    copies.addEventListener("click", () => {
      const code = head.nextElementSibling.querySelector("pre"), text = code.textContent;
      const done = () => { copies.textContent = "Copied"; copies.setAttribute("aria-label", "Copied"); };
      const select = () => { getSelection().selectAllChildren(code); document.execCommand("copy"); done(); };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select); else select();
    });
  };

  // The catalogue: what contains every word.
  const search = (form) => {
    const root = pageOf(form);
    const sections = all("[data-searched]", root).map((section) => ({
      section, entries: all("article", section).map((entry) => ({ entry, text: entry.textContent.toLowerCase() })),
    }));
    const apply = () => {
      const words = form.elements.text.value.trim().toLowerCase().split(/\s+/);
      let shown = 0, of = 0;
      for (const { section, entries } of sections) {
        const found = entries.filter((one) => { one.entry.hidden = !words.every((word) => one.text.includes(word)); return !one.entry.hidden; });
        section.hidden = !found.length;
        shown += found.length;
        of += entries.length;
      }
      form.querySelector("[data-shown]").textContent = shown === of ? `${of} behaviours` : `${shown} of ${of} behaviours`;
      root.querySelector("[data-nothing]").hidden = shown > 0;
    };
    form.addEventListener("input", () => { apply(); keep(root.dataset.page, written(form)); });
    form.addEventListener("submit", (event) => event.preventDefault());
    return () => { if (shows(form)) { read(form, parts().state); apply(); } };
  };

  // Everything, from every page: what it reads is loaded when the field is first used.
  const base = document.currentScript.src, here = (address) => (single ? address : new URL(address, base).href);
  const load = (name) => new Promise((done, fail) => {
    const script = document.createElement("script");
    Object.assign(script, { src: here(name), onload: done, onerror: fail });
    document.head.append(script);
  });
  const loaded = async () => {
    if (!single) await Promise.all([load("search-index.js"), load("minisearch.js").then(() => load("search.js"))]);
    return reportSearch(single ? JSON.parse(document.querySelector("[data-entries]").textContent) : searchEntries);
  };
  const find = (form) => {
    const field = form.elements.text, panel = document.querySelector("header [data-found]");
    let answers = null;
    const apply = async () => {
      const search = (answers || field.value.trim()) && await (answers ||= loaded()), own = all("main [data-found]").find(shows), place = own || panel;
      if (own) keep("search", written(form));
      place.hidden = !field.value.trim();
      if (place.hidden) return;
      const found = search(field.value);
      const list = document.createElement("ol"), said = document.createElement("p");
      list.append(...found.slice(0, own ? 50 : 8).map((entry) => {
        const item = document.createElement("li"), link = document.createElement("a"), about = document.createElement("p");
        [link.href, link.textContent, about.textContent] = [here(entry.href), entry.title, entry.kind.replace(/s$/, "") + (entry.text ? ` · ${entry.text}` : "")];
        item.append(link, about);
        return item;
      }));
      said.setAttribute("role", "status");
      said.textContent = found.length ? `${found.length} found, the best first. ` : "Nothing is found. Search for other words, or for the error class alone.";
      if (!own && found.length > 8) { const more = document.createElement("a"); [more.href, more.textContent] = [everything(), "Show more"]; said.append(more); }
      place.replaceChildren(list, said);
    };
    const everything = () => `${form.dataset.find}${single ? "" : "#"}?${written(form)}`;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim() && !all("main [data-found]").some(shows)) { remember(); location.href = everything(); }
    });
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !panel.hidden) { panel.hidden = true; field.focus(); }
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      field.focus();
    });
    panel.addEventListener("click", (event) => { if (event.target.closest("a")) panel.hidden = true; });
    return () => {
      const own = all("main [data-found]").some(shows);
      panel.hidden = true;
      if (own) { read(form, parts().state); apply(); field.focus({ preventScroll: true }); }
    };
  };

  // What a page, or in one file each page when it is first shown, can do with a script.
  const restore = [], picked = [];
  const wire = (root) => {
    for (const element of all(".scripted", root)) element.hidden = false;
    if (matchMedia("(max-width: 40rem)").matches) for (const fold of all("[data-fold]", root)) fold.open = false;
    restore.push(...all("[data-filters]", root).map(matrix), ...all("form[data-features]", root).map(features), ...all("[data-search]", root).map(search));
    picked.push(...all("[data-pick]", root).map(pick), ...all("[data-known]", root).map(others));
    all(".account > .step[id]", root).forEach(step);
    for (const region of all(".scroll[aria-label], .scroll[aria-labelledby]", root)) {
      region.tabIndex = 0;
      region.setAttribute("role", "region");
    }
    all("figure[data-name]", root).forEach(save);
    all("[data-copy]", root).forEach(copy);
  };
  for (const nav of all("[data-search-page]")) {
    nav.firstElementChild.insertAdjacentHTML("afterend", `<form class="find" role="search" aria-label="The whole report" data-find><input type="search" name="text" aria-label="Search the whole report" aria-keyshortcuts="/" autocomplete="off" spellcheck="false" placeholder="Search: symptom, setting, ticket, error ( / )"></form>`);
    nav.querySelector("form").dataset.find = nav.dataset.searchPage;
    nav.insertAdjacentHTML("afterend", `<section class="found" aria-label="Found" data-found hidden></section>`);
  }
  wire(single ? document.querySelector("header") : document);
  restore.push(...all("[data-find]").map(find));
  const opened = () => {
    const place = document.getElementById(parts().place);
    if (place && place.matches("details")) place.open = true;
    if (place && !single && parts().state.size) place.scrollIntoView();
  };
  const arrive = () => {
    if (single) turn();
    restore.forEach((one) => one());
    picked.forEach((one) => one());
    opened();
    returned();
  };
  addEventListener("hashchange", arrive);
  addEventListener("pageshow", (event) => { if (event.persisted) arrive(); });
  // What is folded away on a screen is on paper.
  let folded = [];
  addEventListener("beforeprint", () => { folded = all("details:not([open])"); for (const one of folded) one.open = true; });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
  arrive();
})();
