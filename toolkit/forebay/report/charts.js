// Puts the charts of a page in the place of its pictures. A picture stays where there is no chart,
// where drawing it fails, and in print.
"use strict";
(() => {
  const VIEWS = new WeakMap(); // of each figure
  const DARK = window.matchMedia("(prefers-color-scheme: dark)");

  function bytes(count) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let place = 0;
    for (; Math.abs(count) >= 1024 && place < units.length - 1; place += 1) count /= 1024;
    return `${count.toFixed(place ? 1 : 0)} ${units[place]}`;
  }

  function seconds(time) {
    if (time >= 1 || time === 0) return `${time.toFixed(time ? 2 : 0)} s`;
    return time >= 1e-3 ? `${(time * 1e3).toFixed(1)} ms` : `${(time * 1e6).toFixed(0)} us`;
  }

  // The axis has logarithms of ratios.
  function gain(ratio) {
    const percent = 100 * Math.expm1(ratio);
    if (Math.abs(percent) < 1e-7) return "0 %";
    return `${percent > 0 ? "+" : "\u2212"}${Number(Math.abs(percent).toPrecision(3))} %`;
  }

  const SHOWN = {
    text: String,
    bytes,
    rate: (count) => `${bytes(count)}/s`,
    seconds,
    share: (share) => `${Number((100 * share).toPrecision(2))} %`,
    row: String,
  };

  function between(unit, low, high) {
    // A row's edges are half a process away from the processes that it has.
    if (unit === "row") return low + 1 === high ? `${low + 0.5}` : `${low + 0.5} to ${high - 0.5}`;
    return `${SHOWN[unit](low)} to ${SHOWN[unit](high)}`;
  }

  // What is told of `datum`, as HTML: each line of `tips` of which it has something.
  function told(tips, datum, escaped) {
    return tips
      .filter(([, , fields]) => fields.every((name) => datum[name] != null && datum[name] !== ""))
      .map(([title, unit, fields]) => {
        const values = fields.map((name) => datum[name]);
        const words = values.length > 1 ? between(unit, ...values) : SHOWN[unit](values[0]);
        return `<div><span>${escaped(title)}</span> ${escaped(words)}</div>`;
      })
      .join("");
  }

  // The cells of a grid that have anything: their edges, what is in them, and of what most.
  function cells(grid) {
    const raw = Uint8Array.from(atob(grid.codes), (letter) => letter.charCodeAt(0));
    const wide = grid.across.length - 1;
    const high = grid.down.length - 1;
    const found = [];
    for (let place = 0; place < wide * high; place += 1) {
      const [row, column] = [Math.floor(place / wide), place % wide];
      const cell = {
        start: grid.across[column], end: grid.across[column + 1],
        low: grid.down[row], high: grid.down[row + 1],
      };
      let [total, largest] = [0, 0];
      grid.layers.forEach((layer, number) => {
        const at = 2 * (number * wide * high + place);
        const code = raw[at] + 256 * raw[at + 1];
        if (code === 0) return;
        cell[layer] = grid.power ? 2 ** (code / 1000) - 1 : code / 1000;
        if (code > largest) [largest, cell.most] = [code, layer];
        total += code;
      });
      if (total === 0) continue;
      cell.strength = grid.least + (1 - grid.least) * Math.min(1, total / grid.full);
      found.push(cell);
    }
    return found;
  }

  function rows(data) {
    if (data.grid) return cells(data.grid);
    const names = Object.keys(data);
    return (data[names[0]] ?? []).map((_, place) =>
      Object.fromEntries(names.map((name) => [name, data[name][place]])));
  }

  // The page's own colours and letters.
  function theme(style) {
    const [text, line] = ["--text", "--line"].map((name) => style.getPropertyValue(name).trim());
    return {
      background: "transparent",
      customFormatTypes: true,
      font: getComputedStyle(document.body).fontFamily,
      view: { stroke: null },
      text: { color: text, fontSize: 13 },
      axis: {
        labelColor: text, titleColor: text, domainColor: text, tickColor: text, gridColor: line,
        grid: false, labelFlush: false, labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal",
      },
    };
  }

  async function draw(figure) {
    const key = `${DARK.matches ? "dark" : "light"} ${figure.clientWidth}`;
    if (figure.dataset.drawn === key) return;
    const chart = JSON.parse(figure.querySelector("script").textContent);
    const spec = { ...chart.spec, config: theme(getComputedStyle(document.documentElement)) };
    for (const part of spec.vconcat ?? [spec]) part.width = figure.clientWidth - (chart.beside ?? 0);
    if (chart.beside === null) spec.autosize = { type: "fit-x", contains: "padding" };
    spec.datasets = Object.fromEntries(
      Object.entries(chart.data).map(([name, data]) => [name, rows(data)]));
    spec.description = figure.querySelector("svg").getAttribute("aria-label");
    const place = document.createElement("div");
    place.className = "chart";
    const view = await window.vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "canvas", actions: false, ast: true, defaultStyle: false,
      expressionFunctions: { showBytes: bytes, showSeconds: seconds, showGain: gain },
      tooltip: {
        disableDefaultStyle: true,
        formatTooltip: (datum, escaped) => told(chart.tips, datum, escaped),
      },
    });
    VIEWS.get(figure)?.finalize();
    VIEWS.set(figure, view);
    figure.querySelector(".chart")?.remove();
    figure.querySelector("svg").after(place);
    figure.classList.toggle("moves", chart.moves);
    figure.classList.add("alive");
    figure.dataset.drawn = key;
  }

  async function drawAll() {
    for (const source of document.querySelectorAll('figure > script[type="application/json"]')) {
      const figure = source.parentElement;
      try {
        await draw(figure);
      } catch (error) {
        figure.classList.remove("alive", "moves");
        VIEWS.get(figure)?.finalize();
        VIEWS.delete(figure);
        figure.querySelector(".chart")?.remove();
        delete figure.dataset.drawn;
        console.warn(`A picture stays as it is: ${error}`);
      }
    }
  }

  // One after the other: a page may change its size while charts are drawn.
  let last = drawAll();
  const again = () => { last = last.then(drawAll); };
  DARK.addEventListener("change", again);
  let pause = 0;
  window.addEventListener("resize", () => {
    clearTimeout(pause);
    pause = setTimeout(again, 200);
  });
})();
