// The report's own script: reads the numbers once, keeps what is chosen, and writes text as text only.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("data");
  const specs = read("charts");
  const $ = (id) => document.getElementById(id);
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross"];
  const PAGE = 4;
  const chosen = { ...data.start, strength: 0, page: 0 };
  const views = {};

  // ------------------------------------------------------------------ numbers and words

  const setting = (method = chosen.method) => data.settings[chosen.grouping][method][chosen.notion][chosen.k];
  const shared = (method = chosen.method) => data.shared[setting(method).shared];
  const grid = (method = chosen.method) => data.methods[method].grid;
  const best = () => setting().best[chosen.quality];
  const k = () => data.ks[chosen.k];
  const quality = () => `${data.qualities[chosen.quality]}@${k()}`;
  const fixed = (value, digits = 3) => (value === null || Number.isNaN(value) ? "–" : value.toFixed(digits));
  const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)}%`);
  const withError = (value, error) => (value === null || error === null ? fixed(value) : `${fixed(value)} ± ${fixed(error)}`);
  const strengthText = (value) => String(Number(value.toPrecision(3)));
  const signed = (value, digits = 3) => {
    if (value === null || Number.isNaN(value)) return "–";
    const text = Math.abs(value).toFixed(digits);
    return Number(text) === 0 ? text : (value > 0 ? "+" : "−") + text;
  };
  const reduction = (before, after) => (before > 0 && after !== null ? (before - after) / before : null);
  const reductionText = (part) => {
    if (part === null) return "–";
    const text = Math.abs(100 * part).toFixed(0);
    return text === "0" ? "as large as" : `${text}% ${part > 0 ? "below" : "above"}`;
  };
  const ratio = (rates, i) => {
    const known = rates.map((own) => own[i]).filter((value) => value !== null);
    const top = Math.max(...known);
    return known.length > 1 && top > 0 ? Math.min(...known) / top : null;
  };
  const series = (name, i) => `var(--${name}${i % 6})`;

  function element(tag, text, name) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  function row(cells, name, first = "th") {
    const line = element("tr", undefined, name);
    cells.forEach((text, i) => {
      const cell = element(i === 0 ? first : "td", text);
      if (i === 0 && first === "th") cell.scope = "row";
      line.append(cell);
    });
    return line;
  }

  function head(table, cells) {
    const line = element("tr");
    for (const text of cells) {
      const cell = element("th", text);
      cell.scope = "col";
      line.append(cell);
    }
    table.tHead.replaceChildren(line);
  }

  // ------------------------------------------------------------------ what depends on the selectors

  function fillSelectors() {
    const choices = {
      grouping: data.groupings,
      notion: data.notions.map((one) => one.name),
      k: data.ks.map(String),
      method: data.methods.map((one) => one.name),
      quality: data.qualities,
    };
    let several = false;
    for (const [name, texts] of Object.entries(choices)) {
      const select = $(name);
      texts.forEach((text, i) => {
        const option = element("option", text);
        option.value = String(i);
        select.append(option);
      });
      select.value = String(chosen[name]);
      $(`${name}-label`).hidden = texts.length < 2;
      several ||= texts.length > 1;
      select.addEventListener("change", () => choose(name, Number(select.value)));
    }
    $("selectors").hidden = !several;
  }

  function choose(name, value) {
    const followed = chosen.strength === best();
    chosen[name] = value;
    chosen.page = 0;
    if (!setting()) chosen.method = data.methods.findIndex((_, i) => setting(i));
    $("method").value = String(chosen.method);
    if (followed || name === "method") chosen.strength = best();
    showSetting();
  }

  function showSetting() {
    [...$("method").options].forEach((option, i) => (option.disabled = !setting(i)));
    const own = setting();
    const story = own.story[chosen.quality];
    ["answer", "uneven-figure", "uneven", "no-loss-figure", "no-loss", "further-figure", "further"].forEach(
      (id, i) => ($(id).textContent = story[i]),
    );
    const slider = $("strength");
    slider.max = String(grid().length - 1);
    slider.value = String(chosen.strength);
    $("meaning").textContent = data.notions[chosen.notion].meaning;
    const method = data.methods[chosen.method];
    $("method-help").textContent = method.title ? `Method ${method.name}: ${method.title}. Strength: ${method.knob}.` : "";
    $("tradeoff-y").textContent = `${quality()} ↑`;
    for (const part of document.querySelectorAll("[data-grouping]")) {
      const fits = (key) => !(key in part.dataset) || part.dataset[key] === String(chosen[key]);
      if (part.tagName === "TR") {
        const here = ["notion", "k", "method"].every(fits);
        part.classList.toggle("here", here);
        if (here) part.setAttribute("aria-current", "true");
        else part.removeAttribute("aria-current");
      } else part.hidden = !["grouping", "notion", "quality"].every(fits);
    }
    everyStrength();
    ratesTable();
    legends();
    draw();
    showStrength();
  }

  function everyStrength() {
    const own = setting();
    const numbers = shared();
    head($("every"), ["strength", quality(), "gap", "reduction", "four-fifths ratio", "quality"]);
    const lines = grid().map((strength, i) => {
      const part = reduction(own.violation[0], own.violation[i]);
      const line = row([
        strengthText(strength),
        withError(numbers.quality[chosen.quality][i], numbers.error[chosen.quality][i]),
        withError(own.violation[i], own.error[i]),
        part === null ? "–" : `${signed(100 * part, 0)}%`,
        fixed(ratio(numbers.rates, i), 2),
        own.worse[chosen.quality][i] === "1" ? worseText() : i === best() ? "best at no loss" : "",
      ]);
      return line;
    });
    $("every").tBodies[0].replaceChildren(...lines);
  }

  function ratesTable() {
    const groups = data.groups[chosen.grouping];
    const { rates, relevant } = shared();
    const known = relevant.some((own) => own.some((value) => value !== null));
    head($("rates-table"), ["strength", ...groups, ...(known ? groups.map((name) => `${name}, relevant`) : [])]);
    $("rates-table").tBodies[0].replaceChildren(
      ...grid().map((strength, i) =>
        row([strengthText(strength), ...[...rates, ...(known ? relevant : [])].map((own) => share(own[i]))]),
      ),
    );
    $("relevant-part").hidden = !known;
  }

  function legend(list, entries) {
    list.replaceChildren(
      ...entries.map(([text, shape, colour]) => {
        const item = element("li");
        const mark = element("span", undefined, `swatch ${shape}`);
        if (colour) mark.style.setProperty("--c", colour);
        mark.setAttribute("aria-hidden", "true");
        item.append(mark, element("span", text));
        return item;
      }),
    );
  }

  function legends() {
    const methods = data.methods.map((one, i) => [one.name, SHAPES[i % 6], series("s", i)]).filter((_, i) => setting(i));
    legend($("tradeoff-legend"), [...methods, ["best bargains", "wide"]]);
    const groups = data.groups[chosen.grouping].map((name, i) => [name, SHAPES[i % 6], series("g", i)]);
    legend($("rates-legend"), [...groups, ["four fifths of the highest rate", "line"]]);
  }

  // ------------------------------------------------------------------ charts

  function point(method, i) {
    const own = setting(method);
    const numbers = shared(method);
    const [x, y] = [own.violation[i], numbers.quality[chosen.quality][i]];
    if (x === null || y === null) return null;
    const [dx, dy] = [own.error[i] || 0, numbers.error[chosen.quality][i] || 0];
    const name = data.methods[method].name;
    const o = method === chosen.method ? 1 : 0.45;
    return {
      m: method, i, name, strength: grid(method)[i], x, y, xl: x - dx, xh: x + dx, yl: y - dy, yh: y + dy,
      c: series("s", method), s: SHAPES[method % 6], o,
    };
  }

  const points = (method) => (setting(method) ? grid(method).map((_, i) => point(method, i)).filter(Boolean) : []);

  function tradeoffData() {
    const mine = points(chosen.method);
    const front = data.fronts[chosen.grouping][chosen.notion][chosen.k][chosen.quality];
    const marks = [[0, "circle", "no mitigation"], ...(best() ? [[best(), "diamond", "best at no loss"]] : [])];
    return {
      points: data.methods.flatMap((_, i) => (i === chosen.method ? [] : points(i))).concat(mine),
      errors: mine,
      front: front.map(([method, i]) => point(method, i)).filter(Boolean),
      marks: marks.flatMap(([i, s, text]) => (point(chosen.method, i) ? [{ ...point(chosen.method, i), s, text, below: i > 0 }] : [])),
      chosen: [point(chosen.method, chosen.strength)].filter(Boolean),
    };
  }

  function ratesData(name) {
    const lines = shared()[name];
    const all = data.groups[chosen.grouping].flatMap((group, g) =>
      grid().map((strength, i) => ({ i, g, v: lines[g][i], name: group, strength, c: series("g", g), s: SHAPES[g % 6] })));
    const four = grid().map((_, i) => ({ i, v: 0.8 * Math.max(...lines.map((own) => own[i] || 0)) }));
    return {
      rates: all.filter((one) => one.v !== null),
      ...(name === "rates" ? { fourfifths: four } : {}),
      now: [{ i: chosen.strength }],
    };
  }

  // Strengths that an axis names: 0, the powers of ten, and the ends of a grid of shares.
  function ticks() {
    const wanted = grid()[grid().length - 1] <= 1 ? [0, 0.2, 0.4, 0.6, 0.8, 0.98] : [0, 0.01, 0.1, 1, 10, 100];
    const nearest = (value) => grid().reduce((at, own, i) => (Math.abs(own - value) < Math.abs(grid()[at] - value) ? i : at), 0);
    const last = grid()[grid().length - 1];
    const places = [...new Set(wanted.filter((value) => value <= last * 1.001).map(nearest))];
    return places.filter((i, place) => place === 0 || i > places[place - 1] + 1);
  }

  const chartData = (name) => (name === "tradeoff" ? tradeoffData() : ratesData(name));

  function draw() {
    for (const [name, view] of Object.entries(views)) {
      for (const [part, values] of Object.entries(chartData(name))) view.data(part, values);
      if (name !== "tradeoff") view.signal("grid", grid()).signal("ticks", ticks());
    }
  }

  function describeCharts() {
    const own = setting();
    const numbers = shared();
    const i = chosen.strength;
    $("tradeoff").setAttribute("aria-label",
      `Chart of ${quality()} against the gap. Without mitigation the gap is ${fixed(own.violation[0])} and ${quality()} ` +
      `${fixed(numbers.quality[chosen.quality][0])}; at strength ${strengthText(grid()[i])} ${fixed(own.violation[i])} and ` +
      `${fixed(numbers.quality[chosen.quality][i])}. All numbers are in the table below the chart.`);
    for (const name of ["rates", "relevant"]) {
      const rates = data.groups[chosen.grouping].map((group, g) => `${group} ${share(numbers[name][g][i])}`).join(", ");
      const among = name === "rates" ? "all" : "relevant";
      $(name).setAttribute("aria-label", `Chart of selection rates among ${among} items against strength. At the chosen strength: ${rates}.`);
    }
  }

  // ------------------------------------------------------------------ what depends on the strength

  // A loss can only be called significant where its error is known.
  function worseText() {
    return shared().error[chosen.quality][0] === null ? "worse" : "significantly worse";
  }

  function showStrength() {
    const i = chosen.strength;
    const own = setting();
    const numbers = shared();
    const [q, e] = [numbers.quality[chosen.quality], numbers.error[chosen.quality]];
    const strength = strengthText(grid()[i]);
    const worse = own.worse[chosen.quality][i] === "1";
    const part = reduction(own.violation[0], own.violation[i]);
    $("strength-value").textContent = strength;
    $("strength").setAttribute("aria-valuetext", `strength ${strength}`);
    const now = $("now");
    const verdict = element("span", worse ? worseText() : i === 0 ? "no mitigation" : `not ${worseText()}`, worse ? "bad" : "good");
    const gap = part === null || i === 0 ? "" : ` (${reductionText(part)} none)`;
    now.replaceChildren(
      `Gap ${withError(own.violation[i], own.error[i])}${gap} · ${quality()} ${withError(q[i], e[i])} · `, verdict,
    );
    const by = data.groupings.length > 1 ? `, groups by ${data.groupings[chosen.grouping]}` : "";
    $("state").textContent = `Shown: ${data.notions[chosen.notion].name}, top ${k()}${by}, ` +
      `method ${data.methods[chosen.method].name}, strength ${strength}.`;
    $("to-none").disabled = i === 0;
    $("to-best").disabled = i === best();
    showNumbers();
    showInterval();
    [...$("every").tBodies[0].rows].forEach((line, place) => line.classList.toggle("here", place === i));
    [...$("rates-table").tBodies[0].rows].forEach((line, place) => line.classList.toggle("here", place === i));
    for (const [name, view] of Object.entries(views)) {
      if (name === "tradeoff") view.data("chosen", [point(chosen.method, i)].filter(Boolean));
      else view.data("now", [{ i }]);
      view.runAsync();
    }
    describeCharts();
    showExamples();
  }

  function showNumbers() {
    const i = chosen.strength;
    const own = setting();
    const numbers = shared();
    const lines = [["gap", own.violation, fixed, signed]];
    data.qualities.forEach((name, place) => lines.push([`${name}@${k()}`, numbers.quality[place], fixed, signed]));
    const ratios = [ratio(numbers.rates, 0), ratio(numbers.rates, i)];
    const groups = data.groups[chosen.grouping];
    const change = (a, b) => (a === null || b === null ? null : b - a);
    const table = lines.map(([name, values, show, difference]) =>
      row([name, show(values[0]), show(values[i]), difference(change(values[0], values[i]))]));
    table.push(row(["four-fifths ratio", fixed(ratios[0], 2), fixed(ratios[1], 2), signed(change(...ratios), 2)]));
    for (const [kind, label] of [["rates", ""], ["relevant", ", relevant"]]) {
      groups.forEach((name, g) => {
        const values = numbers[kind][g];
        if (values[0] === null) return;
        const points = signed(100 * change(values[0], values[i]), 1);
        table.push(row([`${name}${label} in top ${k()}`, share(values[0]), share(values[i]), points === "–" ? points : `${points} pp`]));
      });
    }
    $("numbers").tBodies[0].replaceChildren(...table);
  }

  function showInterval() {
    const i = chosen.strength;
    const own = setting();
    const numbers = shared();
    const [v, e] = [own.violation[i], own.error[i]];
    const [q, d] = [numbers.quality[chosen.quality][i], numbers.error[chosen.quality][i]];
    if (v === null || q === null) {
      $("interval").textContent = "There is no interval: the gap or the quality is not defined.";
      return;
    }
    if (e === null || d === null) {
      $("interval").textContent = "With a single repeat there is no measure of error.";
      return;
    }
    if (data.factor === null) {
      $("interval").textContent = `At the chosen strength the gap is ${withError(v, e)} and ${quality()} ${withError(q, d)} ` +
        "(standard deviations between seeds; they are no intervals for other queries).";
      return;
    }
    const inside = (value) => fixed(Math.min(1, Math.max(0, value)));
    const span = (value, error) => `${inside(value - data.factor * error)} to ${inside(value + data.factor * error)}`;
    $("interval").textContent = `At the chosen strength the gap is ${fixed(v)}, likely ${span(v, e)}; ${quality()} is ${fixed(q)}, ` +
      `likely ${span(q, d)} (95% intervals from the folds; approximate, since the folds share training queries).`;
  }

  // ------------------------------------------------------------------ example queries

  const unpacked = new Map();
  const itemsOf = data.examples.map((query) => new Map(query.items.map((item) => [item[0], item])));

  // A query's lists along the strengths, as [first strength, items] at each change; unpacked when first asked for.
  function runs(place, number) {
    const key = `${place} ${number}`;
    if (!unpacked.has(key)) {
      const text = data.tops[place][number];
      unpacked.set(key, text && text.split(";").map((run) => {
        const [from, items] = run.split(":");
        return [Number(from), items.split(",").map(Number)];
      }));
    }
    return unpacked.get(key);
  }

  function lists(number) {
    const place = setting().tops;
    const changes = place === null ? "" : runs(place, number);
    if (!changes) return null;
    let now = changes[0][1];
    for (const [from, items] of changes) if (from <= chosen.strength) now = items;
    return { before: changes[0][1].slice(0, kept()), after: now.slice(0, kept()) };
  }

  // Of long lists only the first places are kept, which may be fewer than k.
  function kept() {
    return Math.min(k(), data.places);
  }

  function keptName() {
    return kept() < k() ? `first ${kept()} of the top ${k()}` : `top ${k()}`;
  }

  function judge(number) {
    const found = lists(number);
    if (!found) return null;
    const query = data.examples[number];
    const items = itemsOf[number];
    const relevant = (list) => list.reduce((sum, id) => sum + items.get(id)[2], 0);
    const only = data.notions[chosen.notion].name === "equal opportunity" ? 1 : 0;
    const totals = query.counts[chosen.grouping][only];
    const uneven = (list) => {
      const rates = totals.map((total, group) => total && list.filter((id) => {
        const item = items.get(id);
        return item[3][chosen.grouping] === group && (!only || item[2]);
      }).length / total).filter((_, group) => totals[group] > 0);
      return rates.length > 1 ? Math.max(...rates) - Math.min(...rates) : 0;
    };
    const after = new Set(found.after);
    return {
      number, query, items, ...found,
      changed: found.before.filter((id) => !after.has(id)).length,
      gain: relevant(found.after) - relevant(found.before),
      relevant: [relevant(found.before), relevant(found.after)],
      uneven: [uneven(found.before), uneven(found.after)],
    };
  }

  const ORDERS = {
    changed: (one) => -one.changed,
    lost: (one) => one.gain,
    gained: (one) => -one.gain,
    uneven: (one) => -one.uneven[1],
    evened: (one) => one.uneven[1] - one.uneven[0],
  };

  function showExamples() {
    if (!data.examples.length) return;
    const judged = data.examples.map((_, i) => judge(i)).filter(Boolean);
    $("examples").hidden = !judged.length;
    const key = ORDERS[$("order").value];
    judged.sort((a, b) => key(a) - key(b) || b.changed - a.changed || a.number - b.number);
    const pages = Math.max(1, Math.ceil(judged.length / PAGE));
    chosen.page = Math.min(chosen.page, pages - 1);
    const from = chosen.page * PAGE;
    $("queries").replaceChildren(...judged.slice(from, from + PAGE).map(card));
    const changed = judged.filter((one) => one.changed).length;
    $("which").textContent = `${from + 1}–${Math.min(from + PAGE, judged.length)} of ${judged.length}; ` +
      `the ${keptName()} changes in ${changed} of them at strength ${strengthText(grid()[chosen.strength])}.`;
    $("previous").disabled = chosen.page === 0;
    $("following").disabled = chosen.page >= pages - 1;
  }

  function card(one) {
    const made = element("article", undefined, "query");
    made.append(element("h3", one.query.title));
    const gone = one.before.filter((id) => !one.after.includes(id));
    const come = one.after.filter((id) => !one.before.includes(id));
    const by = (list) => {
      const counts = new Map();
      for (const id of list) {
        const name = groupName(one.items.get(id));
        counts.set(name, (counts.get(name) || 0) + 1);
      }
      return [...counts].map(([name, count]) => `${count} of ${name}`).join(", ");
    };
    const changes = come.length ? `In: ${by(come)}. Out: ${by(gone)}.` : `The same items stay in the ${keptName()}.`;
    made.append(element("p", `${changes} Relevant in the ${keptName()}: ${one.relevant[0]} → ${one.relevant[1]}.`, "small soft"));
    const both = element("div", undefined, "lists");
    both.append(ranked("Before", one.before, one, (id) => (one.after.includes(id) ? ["", ""] : ["out", "moves out"])));
    both.append(ranked("After", one.after, one, (id, place) => {
      const was = one.before.indexOf(id);
      if (was < 0) return ["in", "moves in"];
      return ["", was === place ? "" : was > place ? `↑ ${was - place}` : `↓ ${place - was}`];
    }));
    made.append(both);
    return made;
  }

  function groupName(item) {
    const code = item[3][chosen.grouping];
    return code < 0 ? "group unknown" : data.groups[chosen.grouping][code];
  }

  function ranked(title, ids, one, mark) {
    const part = element("div");
    const list = element("ol");
    part.append(element("h4", title), list);
    ids.forEach((id, place) => {
      const item = one.items.get(id);
      const [name, move] = mark(id, place);
      const line = element("li", undefined, name);
      const code = item[3][chosen.grouping];
      if (code >= 0) line.style.setProperty("--c", series("g", code));
      line.append(element("span", item[1], "title"));
      const facts = element("span", undefined, "facts");
      facts.append(element("span", groupName(item)));
      if (item[2]) facts.append(element("span", "✓ relevant", "good"));
      if (move) facts.append(element("span", move, name === "in" ? "good" : name === "out" ? "bad" : "kept"));
      line.append(facts);
      list.append(line);
    });
    return part;
  }

  // ------------------------------------------------------------------ beginning

  function moveTo(i) {
    chosen.strength = i;
    $("strength").value = String(i);
    showStrength();
  }

  async function begin() {
    fillSelectors();
    $("controls").hidden = false;
    chosen.strength = best();
    $("strength").addEventListener("input", (event) => moveTo(Number(event.target.value)));
    $("to-none").addEventListener("click", () => moveTo(0));
    $("to-best").addEventListener("click", () => moveTo(best()));
    $("order").addEventListener("change", () => { chosen.page = 0; showExamples(); });
    $("previous").addEventListener("click", () => { chosen.page -= 1; showExamples(); });
    $("following").addEventListener("click", () => { chosen.page += 1; showExamples(); });
    showSetting();
    for (const [name, spec] of Object.entries(specs)) {
      spec.datasets = chartData(name);  // and log errors only: a setting without numbers draws nothing
      const made = await vegaEmbed(`#${name}`, spec, { actions: false, renderer: "svg", logLevel: 1 });
      views[name] = made.view;
      // The box has the chart's text alternative; a reader of the screen need not hear every mark.
      for (const part of $(name).children) part.setAttribute("aria-hidden", "true");
    }
    views.tradeoff.addEventListener("click", (_, item) => {
      const at = item && item.datum;
      if (!at || !("m" in at) || !("i" in at)) return;
      if (at.m !== chosen.method) choose("method", at.m);
      moveTo(at.i);
    });
    showSetting();
    await Promise.all(Object.values(views).map((view) => view.runAsync()));
    document.documentElement.dataset.ready = "true";
  }

  begin();
})();
