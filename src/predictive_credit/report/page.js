"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  // Text only ever becomes a text node: nothing a model or an agent wrote is read as markup.
  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  };
  const fold = (summary, ...children) => make("details", {}, make("summary", {}, summary), ...children);
  const text = (content) => make("pre", { tabindex: "0" }, content);

  const tabs = [...document.querySelectorAll("[role=tab]")];
  const show = (tab) => {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
  };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      show(next);
      next.focus();
    });
  });

  const table = (caption, columns, rows) =>
    make("div", { class: "scroller", role: "region", "aria-label": caption, tabindex: "0" },
      make("table", {}, make("caption", {}, make("span", {}, caption)),
        make("thead", {}, make("tr", {}, columns.map((c) => make("th", { scope: "col" }, c)))),
        make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, k) =>
          make(k ? "td" : "th", k ? {} : { scope: "row" }, cell)))))));

  const forecasts = (state) => table("Forecasts and losses",
    ["context and call", "point", "80 % interval", "interval score", "point error", "inside", "drift"],
    state.contexts.flatMap((context) => context.calls.map((call, k) => [
      `${context.label}, call ${call.call}`,
      ...(call.answered
        ? [call.fallback ? make("span", { class: "fallback" }, `${call.point} (fallback)`) : call.point,
          call.interval, call.interval_score, call.point_error, call.covered]
        : ["not answered", "", "", "", ""]),
      k ? "" : context.drift,
    ])));

  const replies = (context) => make("div", { class: `card ${context.letter}` },
    make("h4", {}, `${context.label}: replies`),
    context.calls.map((call) => call.answered
      ? [make("p", {}, `Call ${call.call}, read as ${call.point} ${call.interval}`,
          call.fallback ? make("span", { class: "fallback" }, ` fallback: ${call.reason || "no reason recorded"}`) : null),
        text(call.raw || "(empty reply)"),
        fold("How it was asked",
          make("p", {}, `Model ${call.model}, finish reason ${call.finish}, latency ${call.latency}, seed ${call.seed}.`),
          make("p", {}, "Prompt digest ", make("code", { class: "hash" }, call.digest)))]
      : make("p", { class: "absent" }, `Call ${call.call} was not answered.`)));

  const prompt = (context) =>
    context.prompt === null ? make("p", { class: "absent" }, "The prompt is not in the records.")
      : fold(`Prompt under ${context.label}`,
          make("h4", {}, "System"), text(current.systems[context.prompt.system]),
          make("h4", {}, "User"), text(context.prompt.user),
          make("p", {}, `Sampling: ${context.prompt.sampling}.`),
          context.prompt.grammar ? fold("Grammar of the reply", text(context.prompt.grammar)) : null);

  const card = (explanation) => make("div", { class: `card ${explanation.letter}` },
    make("h4", {}, `${explanation.context} explanation`),
    make("p", {}, "written by ", explanation.agent || "nobody", " about ", make("code", { class: "hash" }, explanation.of)),
    make("dl", { class: "slots" }, explanation.slots.flatMap(([name, said, quote]) => [
      make("dt", {}, name),
      said === null ? make("dd", { class: "absent" }, "empty slot")
        : make("dd", {}, said, quote && quote !== said ? [" ", make("q", {}, quote)] : null)])),
    fold("Text as written", text(explanation.text || "(empty)")));

  let current = null;
  const detail = (state, unit) => [
    make("h3", {}, state.id),
    make("p", { class: "outcome" }, state.defined ? "Executed change " : "Outcome ",
      make("strong", {}, state.outcome), state.defined ? ` ${unit}` : `: ${state.reason}`),
    state.fallbacks ? make("p", { class: "fallback" }, `${state.fallbacks} of its replies could not be read; the frozen fallback stands in.`) : null,
    make("p", {}, make("strong", {}, `${state.intervention}: `), state.action),
    make("p", { class: "text" }, state.description),
    fold("Public facts", make("dl", { class: "facts" }, state.facts.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value))))),
    forecasts(state),
    make("div", { class: "pairs" }, state.explanations.map(card)),
    make("div", { class: "triples" }, state.contexts.map(replies)),
    make("h4", {}, "Prompts as they were sent"),
    ...state.contexts.map(prompt),
  ].flat().filter((node) => node !== null);

  const searchable = (state) => [state.id, state.intervention, state.action, state.description,
    ...state.explanations.map((e) => e.text),
    ...state.contexts.flatMap((c) => c.calls.map((k) => k.raw || ""))].join("\n").toLowerCase();

  const browse = (root) => {
    const study = data[root.dataset.browser];
    const list = root.querySelector("[data-list]");
    const pane = root.querySelector("[data-detail]");
    const count = root.querySelector("[data-count]");
    const filters = Object.fromEntries([...root.querySelectorAll("[data-filter]")].map((f) => [f.dataset.filter, f]));
    const texts = study.states.map(searchable);
    const options = study.states.map((state, index) => {
      const option = make("div", { class: "option", role: "option", id: `${root.dataset.browser}-option-${index}`, "aria-selected": "false" },
        make("span", { class: "where" }, state.task),
        make("span", { class: "y" }, state.outcome),
        make("span", { class: "what" }, `${state.budget}, seed ${state.seed}, ${state.intervention}`),
        state.fallbacks ? make("span", { class: "flag" }, "fallback") : make("span", {}));
      option.addEventListener("click", () => select(index));
      return option;
    });
    list.append(...options);
    let chosen = -1;

    // Scrolls the list alone: scrollIntoView would move the page as well.
    const reveal = (option) => {
      const top = option.offsetTop - list.offsetTop;
      const room = list.clientHeight - option.offsetHeight;
      list.scrollTop = Math.max(Math.min(list.scrollTop, top), top - room);
    };
    const select = (index) => {
      if (index === chosen) return;
      if (chosen >= 0) options[chosen].setAttribute("aria-selected", "false");
      chosen = index;
      current = study;
      options[index].setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", options[index].id);
      reveal(options[index]);
      pane.replaceChildren(...detail(study.states[index], study.unit));
    };
    const clear = () => {
      if (chosen >= 0) options[chosen].setAttribute("aria-selected", "false");
      chosen = -1;
      list.removeAttribute("aria-activedescendant");
      pane.replaceChildren(make("p", { class: "absent" }, "No state matches."));
    };
    const visible = () => options.map((_, index) => index).filter((index) => !options[index].hidden);
    const filter = () => {
      const asked = filters.text.value.trim().toLowerCase();
      study.states.forEach((state, index) => {
        options[index].hidden = !(texts[index].includes(asked)
          && (!filters.task.value || state.task === filters.task.value)
          && (!filters.action.value || state.intervention === filters.action.value)
          && (filters.only.value !== "fallback" || state.fallbacks > 0)
          && (filters.only.value !== "undefined" || !state.defined));
      });
      const shown = visible();
      count.textContent = shown.length === options.length ? `${shown.length} states` : `${shown.length} of ${options.length} states`;
      if (!shown.length) clear(); else if (!shown.includes(chosen)) select(shown[0]);
    };
    const step = (key) => {
      const shown = visible();
      const at = shown.indexOf(chosen);
      const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8, Home: 0, End: shown.length - 1 }[key];
      if (next === undefined || !shown.length) return false;
      select(shown[Math.max(0, Math.min(shown.length - 1, next))]);
      return true;
    };
    list.addEventListener("keydown", (event) => { if (step(event.key)) event.preventDefault(); });
    filters.text.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") { event.preventDefault(); list.focus(); }
    });
    root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    for (const control of Object.values(filters)) {
      for (const kind of ["input", "change"]) control.addEventListener(kind, filter);
    }
    filter();
  };

  document.querySelectorAll("[data-browser]").forEach(browse);
  if (tabs.length) show(tabs[0]);
})();
