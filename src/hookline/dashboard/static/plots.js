// Draws the plots again with uPlot, so that values can be read; without it the server's drawing stands.
"use strict";
(() => {
  const DAY = 86400;
  const two = (number) => String(number).padStart(2, "0");
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

  function clock(at, span) {
    const date = new Date(at * 1000);
    const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
    const day = `${date.getUTCDate()} ${months[date.getUTCMonth()]}`;
    if (span > 2 * DAY) return time === "00:00" ? day : `${day}, ${time}`;
    return time;
  }

  function milliseconds(value) {
    if (value == null) return "–";
    if (value < 1) return `${value.toFixed(1)} ms`;
    if (value < 999.5) return `${value.toFixed(0)} ms`;
    return value < 59950 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value / 60000)} min`;
  }

  const mark = (value) => (value >= 1000 ? `${value / 1000} s` : `${Number(value.toPrecision(3))} ms`);

  // Colours are asked of the browser: a variable that depends on the theme has no colour as text.
  function colours(box) {
    const probe = box.appendChild(document.createElement("i"));
    const found = {};
    for (const name of ["ink-2", "rule", "edge", "data-1", "data-2", "bad", "bad-wash"]) {
      probe.style.color = `var(--${name})`;
      found[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    return found;
  }

  function draw(plot, box, given) {
    const colour = colours(box);
    const font = `12px ${getComputedStyle(plot).fontFamily}`;
    const names = ["p99", "p95", "p50"].filter((name) => given.lines[name]);
    const values = names.flatMap((name) => given.lines[name]).filter((value) => value > 0);
    const low = Math.floor(Math.log10(Math.min(...values)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values) * 1.0001)));
    const powers = Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n));
    const span = given.to - given.from;
    const look = {
      p99: { stroke: colour["ink-2"], width: 1.5, dash: [4, 3] },
      p95: { stroke: colour["data-1"], width: 2 },
      p50: { stroke: colour["data-2"], width: 1.5 },
    };
    const said = Object.fromEntries(names.map((name) => [name, plot.querySelector(`[data-series=${name}] b`)]));
    const whole = Object.fromEntries(names.map((name) => [name, said[name]?.textContent]));
    const when = plot.querySelector(".at");
    const axis = { stroke: colour["ink-2"], font, ticks: { show: false } };
    return new uPlot(
      {
        width: Math.max(200, box.clientWidth),
        height: 200,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        padding: [8, 20, 0, 0],
        scales: {
          x: { range: [given.from, given.to] },
          y: { distr: 3, range: [10 ** low, 10 ** high] },
        },
        axes: [
          { ...axis, size: 24, gap: 4, space: 80, grid: { show: false }, values: (_, all) => all.map((at) => clock(at, span)) },
          { ...axis, size: 58, gap: 6, grid: { stroke: colour.rule, width: 1 }, splits: () => powers, values: (_, all) => all.map(mark) },
        ],
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        series: [{}, ...names.map((name) => ({ ...look[name], label: name, points: { show: given.times.length < 3, size: 5, fill: look[name].stroke } }))],
        hooks: {
          drawClear: [
            (drawn) => {
              if (given.since == null) return;
              const { ctx, bbox } = drawn;
              const from = drawn.valToPos(Math.max(given.since, given.from), "x", true);
              ctx.save();
              ctx.fillStyle = colour["bad-wash"];
              ctx.fillRect(from, bbox.top, bbox.left + bbox.width - from, bbox.height);
              ctx.strokeStyle = colour.bad;
              ctx.lineWidth = devicePixelRatio;
              ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio]);
              ctx.beginPath();
              ctx.moveTo(from, bbox.top);
              ctx.lineTo(from, bbox.top + bbox.height);
              ctx.stroke();
              ctx.restore();
            },
          ],
          setCursor: [
            ({ cursor }) => {
              const at = cursor.left >= 0 ? cursor.idx : null;
              for (const name of names) {
                if (said[name]) said[name].textContent = at == null ? whole[name] : milliseconds(given.lines[name][at]);
              }
              when.textContent = at == null ? "" : `at ${clock(given.times[at], span)}`;
            },
          ],
        },
      },
      [given.times, ...names.map((name) => given.lines[name])],
      box,
    );
  }

  function enhance(plot) {
    const given = JSON.parse(plot.dataset.plot);
    const svg = plot.querySelector("svg.area");
    if (!given.times.length || !svg) return;
    const box = document.createElement("div");
    box.className = "drawn";
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", svg.getAttribute("aria-label"));
    const when = document.createElement("span");
    when.className = "at";
    plot.querySelector(".key").append(when);
    plot.append(box);
    plot.classList.add("is-drawn");
    let drawn = draw(plot, box, given);
    const again = () => { drawn.destroy(); drawn = draw(plot, box, given); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    new ResizeObserver(() => {
      if (box.clientWidth && box.clientWidth !== drawn.width) drawn.setSize({ width: Math.max(200, box.clientWidth), height: 200 });
    }).observe(box);
  }

  for (const plot of document.querySelectorAll(".plot[data-plot]")) enhance(plot);
})();
