// Which entries of a report answer a text that a reader writes, best first. It needs MiniSearch.
"use strict";
globalThis.reportSearch = (entries) => {
  const COMMON = new Set("don doesn didn isn won work works working a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my of on or our so some than that the their them then there these they this to too was we were not what when where which while who why will with would you your spark structured streaming stream org apache".split(" "));
  // What a reader's word also means here: stems of the left side are searched as those of the right side too.
  const ALSO = {};
  for (const [words, others] of [
    ["data event record message", "row"], ["row", "data"],
    ["stuck stall freeze hang block stop move advance progress", "idle silent hold"],
    ["oom memory heap leak huge big large blow", "state grow"],
    ["daylight dst saving summer winter timezone tz utc zone october march", "zone session"], ["clock", "zone"],
    ["disappear missing lost gone lose miss vanish", "vanish lose"],
    ["duplicate dup dedup deduplicate distinct", "duplicate deduplication twice"], ["twice double", "twice duplicate"],
    ["output result show appear print write produce", "emit come"], ["nothing never none no empty", "come never"],
    ["rollback revert downgrade undo", "back resume version"], ["upgrade migrate migration update", "upgrade version"],
    ["reprocess historical history backlog", "backfill"], ["replay retry", "replay crash"],
    ["retention expired", "gone topic"], ["bucket directory path location copy", "folder move"],
    ["ci pipeline build", "gate ci"], ["skew slow lag slowest", "slow idle"],
    ["threshold lateness", "delay"], ["clean cleanup expire expiration purge remove release buffer", "evict"],
    ["scratch", "new checkpoint"], ["modify change alter stateful operation", "change"],
    ["timestamp time", "time"], ["null none nan", "null"], ["unsupported rejected supported disallowed", "refuse reject"],
    ["unmatched matched matching", "match"], ["grouped ungrouped", "stateful"], ["die crash kill oomkilled restart", "restart crash"], ["late delayed", "late"], ["include accept aggregate", "count drop"], ["multiple two several second", "chain several"], ["different", "several lowest"], ["drop discard filter", "drop"], ["switch enable", "set"], ["ignore", "use keep old"],
    ["survive", "resume"],
  ]) for (const word of words.split(" ")) ALSO[stem(word)] = [stem(word), ...others.split(" ").map(stem)];

  function stem(word) {
    if (/[\d_.-]/.test(word) || word.length < 4) return word;
    const short = word.replace(/ies$/, "y").replace(/(ss|sh|ch|x)es$/, "$1").replace(/([^su])s$/, "$1");
    const bare = short.replace(/(?:ations?|ing|ed)$/, "");
    return (bare.length > 2 && /[aeiouy]/.test(bare) ? bare.replace(/([bdfgmnprt])\1$/, "$1") : short).replace(/e$/, "");
  }
  // A name with points, underlines or capitals is found whole and by its parts; a version and a ticket only whole.
  const tokens = (text) => [...text.matchAll(/[\p{L}\p{N}]+(?:[._-][\p{L}\p{N}]+)*/gu)].flatMap(([name]) => {
    if (/^[\d.]+$/.test(name)) return [name];
    const parts = name.split(/[._-]/), humps = parts.flatMap((part) => part.split(/(?<=\p{Ll})(?=\p{Lu})/u));
    return [...new Set([name, ...parts, ...humps])];
  });
  const term = (token) => { const word = token.toLowerCase(); return COMMON.has(word) || /^\p{L}$/u.test(word) ? null : stem(word); };
  const index = new MiniSearch({ fields: ["title", "text", "words", "errors"], tokenize: tokens, processTerm: term });
  index.addAll(entries.map((entry, id) => ({ id, ...entry })));
  const WEIGHT = { Questions: 1.7, Pages: 1.2, "Known bugs": 1.4, Documentation: 0.9, Behaviours: 0.8 };
  const errors = entries.map((entry) => entry.errors.split("|").filter((piece) => piece));

  return (text) => {
    const pasted = text.trim().toLowerCase().split(/\s+/).join(" "), few = pasted.split(" ").length < 15;
    const found = index.search(text, {
      boost: { title: 3, text: 1.5 }, weights: { fuzzy: 0.3, prefix: 0.5 },
      processTerm: (token) => { const one = term(token); return one && few && ALSO[one] || one; },
      prefix: (one) => few && one.length > 2, fuzzy: (one) => few && one.length > 4 && !/[\d_.-]/.test(one) ? 0.2 : false,
      boostTerm: (one) => (/\d/.test(one) ? 2 : 1),
      boostDocument: (id) => WEIGHT[entries[id].kind] || 1,
    });
    // A message that an entry shows is worth more than any of its words.
    const shown = (id) => (errors[id].some((piece) => pasted.includes(piece)) ? 5 : 1);
    const best = (all) => all.sort((a, b) => b.score - a.score);
    // Of the combinations of a matrix, the others stand behind the best: they answer the same.
    const cases = new Set(), once = ({ entry, score }) => {
      const name = entry.kind === "Cases" ? entry.text.split(".")[0] : entry.href, again = cases.has(name);
      cases.add(name);
      return { entry, score: again ? score / 2 : score };
    };
    return best(best(found.map(({ id, score }) => ({ entry: entries[id], score: score * shown(id) }))).map(once)).map((one) => one.entry);
  };
};
