"use strict";
(() => {
  const held = document.getElementById("model-data");
  const form = document.getElementById("example");
  if (!held || !form) return;
  const data = JSON.parse(held.textContent);
  const shown = document.getElementById("example-answer");
  form.hidden = false;

  // A value as the model sees it: a number (a date in days, a category by its place), or null.
  const value = (place) => {
    const field = form.elements["f" + place];
    if (!field || field.value === "") return null;
    if (field.type === "date") {
      const day = Date.parse(field.value + "T00:00:00Z");
      return Number.isNaN(day) ? null : Math.round(day / 86400000);
    }
    const number = Number(field.value);
    return Number.isNaN(number) ? null : number;
  };

  // A test: [feature, edges, child of missing values] or [feature, null, child of each category].
  const next = (test, values) => {
    const [feature, edges, where] = test;
    const x = values[feature];
    if (edges === null) return where[x === null ? where.length - 1 : x];
    return x === null ? where : edges.filter((edge) => edge <= x).length;
  };

  // A node: [test, children] or [null, value].
  const follow = (nodes, values) => {
    const path = [0];
    let here = nodes[0];
    while (here[0] !== null) {
      const place = here[1][next(here[0], values)];
      path.push(place);
      here = nodes[place];
    }
    return { path, value: here[1] };
  };

  const digits = (number, most) => Number(number.toPrecision(most)).toString();

  const shares = (scores) => {
    const all = scores.length === 1 ? [0, scores[0]] : scores;
    const top = Math.max(...all);
    const weights = all.map((score) => Math.exp(score - top));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / sum);
  };

  const say = (answer) => {
    if (data.classes === null) {
      const [low, high] = data.bounds;
      return data.target + ": " + digits(Math.min(high, Math.max(low, answer[0])), 5);
    }
    const best = answer.indexOf(Math.max(...answer));
    const said = data.target + ": " + data.classes[best];
    if (answer[best] === 1) return said; // a drawn label, not an estimate
    const each = answer.map((share, k) => data.classes[k] + " " + share.toFixed(3));
    return said + " (" + each.join(", ") + ")";
  };

  const answer = (event) => {
    if (event) event.preventDefault();
    document.querySelectorAll(".on").forEach((one) => one.classList.remove("on"));
    const values = data.features.map((_, place) => value(place));
    const lines = [];
    let scores = data.start === null ? null : [...data.start];
    let found = null;
    data.trees.forEach((tree, number) => {
      const { path, value: held } = follow(tree.shown, values);
      path.forEach((place) => {
        const item = document.getElementById("t" + number + "n" + place);
        if (!item) return;
        item.classList.add("on");
        if (data.start === null && item.firstElementChild.tagName === "DETAILS")
          item.firstElementChild.open = true;
      });
      if (scores === null) found = follow(tree.exact, values).value;
      else scores = scores.map((score, k) => score + held[k]);
      if (data.start === null)
        path.slice(1).forEach((place) => lines.push(tree.words[place]));
    });
    if (scores !== null) {
      found = data.classes === null ? scores : shares(scores);
      lines.push(data.trees.length + " trees add up to " + scores.map((s) => digits(s, 4)).join(", "));
    }
    shown.textContent = say(found) + (lines.length ? " \u2014 " + lines.join(" \u2192 ") : "");
  };
  form.addEventListener("submit", answer);
})();
