"use strict";
(() => {
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
  const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const show = (tab) => {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      panel(other).hidden = !chosen;
    }
    // Where the tabs are one row that scrolls, the chosen one stays in sight; the page itself stays put.
    const bar = tab.parentElement;
    bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
    panel(tab).querySelectorAll("[data-browser]").forEach(browse);
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
  // A link into a study that is not shown opens its tab first.
  const follow = () => {
    const goal = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const tab = goal && tabs.find((other) => panel(other).contains(goal));
    if (!tab || !panel(tab).hidden) return;
    show(tab);
    goal.scrollIntoView();
  };
  window.addEventListener("hashchange", follow);

  const table = (caption, columns, rows) =>
    make("div", { class: "scroller", role: "region", "aria-label": caption, tabindex: "0" },
      make("table", {}, make("caption", {}, make("span", {}, caption)),
        make("thead", {}, make("tr", {}, columns.map((c) => make("th", { scope: "col" }, c)))),
        make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, k) =>
          make(k ? "td" : "th", k ? {} : { scope: "row" }, cell)))))));

  const forecasts = (study, state) => study.targets.map((target, at) => table(
    study.targets.length > 1 ? `Forecasts and losses: ${target.phrase}, ${target.unit}` : "Forecasts and losses",
    ["context and call", "point", "80 % interval", "interval score", "point error", "inside", "drift"],
    state.contexts.flatMap((context) => context.calls.map((call, k) => {
      const read = call.answered ? call.read[at] : null;
      return [
        `${context.label}, call ${call.call}`,
        ...(read
          ? [call.fallback ? make("span", { class: "fallback" }, `${read[0]} (fallback)`) : read[0], ...read.slice(1)]
          : ["not answered", "", "", "", ""]),
        k ? "" : context.drift[at],
      ];
    }))));

  const slots = (explanation) => make("dl", { class: "slots" }, explanation.slots.flatMap(([name, said, quote]) => [
    make("dt", {}, name),
    said === null ? make("dd", { class: "absent" }, "empty slot")
      : make("dd", {}, said, quote && quote !== said ? [" ", make("q", {}, quote)] : null)]));

  const written = (explanation) => [
    fold("Text as written", text(explanation.text || "(empty)")),
    explanation.extraction === null ? null : fold("Extraction, raw reply", text(explanation.extraction || "(empty)"))];

  const card = (explanation) => make("div", { class: `card ${explanation.source === "ordinary" ? "O" : "M"}` },
    make("h4", {}, `Its ${explanation.source} explanation`),
    make("p", {}, "written by ", explanation.agent || "nobody"),
    slots(explanation), written(explanation));

  // What a donor's explanation was, beyond what the context showed of it.
  const lent = (study, context) => {
    if (context.place === null) return null;
    return study.states[context.place].explanations
      .filter((explanation) => !context.says || explanation.source === context.says[0])
      .map((explanation) => fold(`The donor's card and text (${explanation.source})`, slots(explanation), written(explanation)));
  };

  const shown = (study, state, context) => {
    if (context.of === null) return make("p", { class: "absent" }, "Shown: no explanation.");
    const [source, form] = context.says || ["", "in some form"];
    return [
      make("p", {}, `Shown: the ${source} explanation of `,
        context.place === null && context.of === state.id ? "this state" : ["donor ", make("code", { class: "hash" }, context.of)], `, ${form}.`),
      context.prompt && context.prompt.shown !== null ? text(context.prompt.shown || "(empty)") : null,
      lent(study, context)];
  };

  const replies = (study, state, context) => make("div", { class: `card ${context.letter}` },
    make("h4", {}, context.label),
    shown(study, state, context),
    context.calls.map((call) => call.answered
      ? [make("p", {}, `Call ${call.call}, read as `, call.read.map((read, at) => read
          ? `${at ? "; " : ""}${study.targets.length > 1 ? `${study.targets[at].phrase} ` : ""}${read[0]} ${read[1]}` : null),
          call.fallback ? make("span", { class: "fallback" }, ` fallback: ${call.reason || "no reason recorded"}`) : null),
        text(call.raw || "(empty reply)"),
        fold("How it was asked",
          make("p", {}, `Model ${call.model}, finish reason ${call.finish}, latency ${call.latency}, seed ${call.seed}.`),
          make("p", {}, "Prompt digest ", make("code", { class: "hash" }, call.digest)))]
      : make("p", { class: "absent" }, `Call ${call.call} was not answered.`)));

  const user = (study, state, prompt) =>
    state.stem + study.texts[prompt.before] + (prompt.shown || "") + study.texts[prompt.after];

  const prompt = (study, state, context) =>
    context.prompt === null ? make("p", { class: "absent" }, "The prompt is not in the records.")
      : fold(`Prompt under ${context.label}`,
          make("h4", {}, "System"), text(study.texts[context.prompt.system]),
          make("h4", {}, "User"), text(user(study, state, context.prompt)),
          make("p", {}, `Sampling: ${context.prompt.sampling}.`),
          context.prompt.grammar === null ? null : fold("Grammar of the reply", text(study.texts[context.prompt.grammar])));

  const outcomes = (study, state) => study.targets.map((target, at) => {
    const outcome = state.outcomes[at];
    return make("p", { class: "outcome" },
      study.targets.length > 1 ? `${target.phrase}: ` : "",
      outcome.defined ? `executed ${target.form} ` : "outcome ",
      make("strong", {}, outcome.value), outcome.defined ? ` ${target.unit}` : `: ${outcome.reason}`);
  });

  const detail = (study, state) => [
    make("h3", {}, state.id),
    outcomes(study, state),
    state.fallbacks ? make("p", { class: "fallback" }, `${state.fallbacks} of its replies could not be read; the frozen fallback stands in.`) : null,
    make("p", {}, make("strong", {}, `${state.intervention}: `), state.action),
    make("p", { class: "text" }, state.description),
    fold("Public facts", make("dl", { class: "facts" }, state.facts.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value))))),
    forecasts(study, state),
    make("div", { class: "pairs" }, state.explanations.map(card)),
    make("h4", {}, "What each context showed, and what came back"),
    make("div", { class: "triples" }, state.contexts.map((context) => replies(study, state, context))),
    make("h4", {}, "Prompts as they were sent"),
    ...state.contexts.map((context) => prompt(study, state, context)),
  ].flat().filter((node) => node !== null);

  const searchable = (state) => [state.id, state.intervention, state.action, state.description,
    ...state.explanations.map((e) => e.text),
    ...state.contexts.flatMap((c) => c.calls.map((k) => k.raw || ""))].join("\n").toLowerCase();

  // A study's data are read when it is first shown.
  const browse = (root) => {
    if (root.dataset.ready) return;
    root.dataset.ready = "yes";
    const study = JSON.parse(document.getElementById(`${root.dataset.browser}-records`).textContent);
    const list = root.querySelector("[data-list]");
    const pane = root.querySelector("[data-detail]");
    const count = root.querySelector("[data-count]");
    const filters = Object.fromEntries([...root.querySelectorAll("[data-filter]")].map((f) => [f.dataset.filter, f]));
    const texts = study.states.map(searchable);
    const options = study.states.map((state, index) => {
      const option = make("div", { class: "option", role: "option", id: `${root.dataset.browser}-option-${index}`, "aria-selected": "false" },
        make("span", { class: "where" }, state.task),
        make("span", { class: "y" }, state.outcomes.map((outcome) => outcome.value).join("; ")),
        make("span", { class: "what" }, state.where ? `${state.where}, ${state.intervention}` : state.intervention),
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
      options[index].setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", options[index].id);
      reveal(options[index]);
      pane.replaceChildren(...detail(study, study.states[index]));
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
          && (filters.only.value !== "undefined" || state.outcomes.some((outcome) => !outcome.defined)));
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

  if (tabs.length) show(tabs[0]); else document.querySelectorAll("[data-browser]").forEach(browse);
  follow();
})();
