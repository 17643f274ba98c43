// Charts, drawn from the table that stands under each: one source for the eye and for who reads the table.

await new Promise((resolve, reject) => {
  if (window.Chart) { resolve(); return; }
  const script = document.createElement("script");
  script.src = new URL("../vendor/chart.js", import.meta.url);
  script.onload = resolve;
  script.onerror = () => reject(new Error("chart.js did not load"));
  document.head.append(script);
});

const drawn = new Map();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const series = () => ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"].map(colour);
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 4], [10, 4]];

function read(figure) {
  const table = figure.querySelector("table");
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  return {
    labels: rows.map((row) => row.cells[0].textContent),
    sets: names.map((name, i) => ({ label: name, data: rows.map((row) => { const said = row.cells[i + 1].dataset.value; return said === "" ? null : Number(said); }) })),
  };
}

export function draw(figures) {
  for (const figure of figures) {
    drawn.get(figure)?.destroy();
    const { labels, sets } = read(figure);
    if (!labels.length) continue;
    const kind = figure.dataset.chart, stacked = "stacked" in figure.dataset, unit = figure.dataset.unit, colours = series();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const write = (value) => (unit === "$" ? `$${Number(value.toPrecision(3))}` : `${Number(value.toPrecision(4)).toLocaleString()}${unit ? ` ${unit}` : ""}`);
    drawn.set(figure, new window.Chart(figure.querySelector("canvas"), {
      type: kind,
      data: { labels, datasets: sets.map((set, i) => ({
        ...set, borderColor: colours[i % 6], backgroundColor: kind === "bar" ? colours[i % 6] : "transparent", borderDash: kind === "line" ? DASHES[i % 6] : [],
        borderWidth: kind === "line" ? 2 : 0, pointRadius: labels.length > 40 ? 0 : 2.5, spanGaps: true, maxBarThickness: 36,
      })) },
      options: {
        animation: still ? false : { duration: 250 }, maintainAspectRatio: false, interaction: { mode: "index", intersect: false },
        scales: {
          x: { stacked, ticks: { color: colour("--faint"), maxRotation: 0, autoSkipPadding: 12 }, grid: { display: false } },
          y: { stacked, beginAtZero: true, ticks: { color: colour("--faint"), callback: write, maxTicksLimit: 6 }, grid: { color: colour("--line") } },
        },
        plugins: { legend: { display: sets.length > 1, labels: { color: colour("--text"), boxWidth: 14 } }, tooltip: { callbacks: { label: (c) => `${c.dataset.label}: ${write(c.raw)}` } } },
      },
    }));
  }
  for (const [figure, chart] of drawn) if (!figure.isConnected) { chart.destroy(); drawn.delete(figure); }
}

document.addEventListener("bench:theme", () => draw([...drawn.keys()]));
