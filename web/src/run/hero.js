// The top of a run's page: what a manager wants to know, with the factors of cost and emissions as inputs.
import {h, name} from "../dom.js";
import {count, duration, known, listed, MISSING, percent, significant, wattHours, withUnit} from "../format.js";
import {toggle} from "../theme.js";

export function tile(label, value, detail, kind) {
  return h("div", {class: `tile ${kind ?? ""}`}, h("div", {class: "label"}, label), h("div", {class: String(value).length > 9 ? "value long" : "value"}, value),
    h("div", {class: "detail"}, detail));
}

export function header(kind, title, lines) {
  return h("header", {class: "top"},
    h("div", {class: "brand"}, h("span", {class: "mark", "aria-hidden": "true"}), "Ergometer", h("span", {class: "kind"}, kind),
      h("button", {type: "button", class: "theme", onclick: toggle, title: "Switch between light and dark"}, "Light / dark")),
    h("h1", {}, name(title)), lines.filter(Boolean).map((line) => h("p", {class: "lead"}, line)));
}

export function runHero(data) {
  const {summary, manifest} = data;
  const run = summary.run;
  const joules = run.energy_j ?? null;
  const modelled = run.modelled_j;
  const measured = known(joules);
  const tiles = [
    measured ? tile("Energy", withUnit(joules, "J"), known(run.uncertainty_j) ? `± ${withUnit(run.uncertainty_j, "J", 2)} (95 %), ${wattHours(joules)}` : wattHours(joules), "main")
      : known(modelled) ? tile("Energy, estimated", `~${withUnit(modelled, "J", 2)}`, `${wattHours(modelled)}; from a model, nothing was measured`, "main")
        : tile("Energy", MISSING, "no sensor told energy or power", "main"),
    tile("Mean power", withUnit(run.mean_power_w, "W"), known(run.mean_power_w) ? "energy by duration" : "not known"),
    tile("Duration", duration(run.duration_s), known(run.exit_code) ? (run.exit_code === 0 ? "ended well" : `exit code ${run.exit_code}`) : "its end is not known"),
  ];
  if (known(run.net_energy_j))
    tiles.push(tile("Above idle", withUnit(run.net_energy_j, "J"), known(joules) && joules > 0 ? `${percent(run.net_energy_j / joules)} of all` : ""));
  return h("div", {}, header("run report", manifest.name || "Run", [sentence(data)]),
    h("div", {class: "tiles"}, tiles, factorTiles(data.factors, measured ? joules : modelled, !measured && known(modelled))),
    findings(data));
}

// Cost and emissions follow the inputs; without a factor there is no number.
export function factorTiles(factors, joules, estimated) {
  const kwh = known(joules) ? joules / 3.6e6 : null;
  const about = estimated ? "~" : "";
  const cost = h("div", {class: "value"}), carbon = h("div", {class: "value"});
  const input = (label, value, attributes) => h("input", {"aria-label": label, value, autocomplete: "off", ...attributes});
  const price = input("Price of one kWh", factors.price_per_kwh ?? "", {inputmode: "decimal", placeholder: "price", size: 6});
  const currency = input("Currency", factors.currency ?? "", {placeholder: "EUR", size: 4, maxlength: 12});
  const grams = input("g CO2e of one kWh", factors.carbon_g_per_kwh ?? "", {inputmode: "decimal", placeholder: "g", size: 6});
  // A comma is a decimal point to half of the world.
  const factor = (element) => {
    const text = element.value.trim().replace(",", ".");
    const value = Number(text);
    const good = text !== "" && Number.isFinite(value) && value >= 0;
    element.toggleAttribute("aria-invalid", text !== "" && !good);
    return good ? value : null;
  };
  const update = () => {
    const [p, g] = [factor(price), factor(grams)];
    const unit = currency.value.trim();
    cost.textContent = kwh === null || p === null ? MISSING : `${about}${significant(kwh * p, 3)}${unit ? ` ${unit}` : ""}`;
    carbon.textContent = kwh === null || g === null ? MISSING : about + mass(kwh * g);
    for (const element of [cost, carbon]) element.classList.toggle("long", element.textContent.length > 9);
  };
  for (const element of [price, currency, grams]) element.addEventListener("input", update);
  update();
  return [
    h("div", {class: "tile"}, h("div", {class: "label"}, "Cost"), cost, h("div", {class: "detail"}, price, " ", currency, " per kWh")),
    h("div", {class: "tile"}, h("div", {class: "label"}, "Emissions, CO₂e"), carbon, h("div", {class: "detail"}, grams, " g per kWh")),
  ];
}

function mass(grams) {
  if (!known(grams)) return MISSING;
  if (grams >= 1e6) return `${significant(grams / 1e6, 3)} t`;
  if (grams >= 1e3) return `${significant(grams / 1e3, 3)} kg`;
  if (grams >= 1 || grams === 0) return `${significant(grams, 3)} g`;
  return `${significant(grams * 1e3, 3)} mg`;
}

function sentence({summary, manifest}) {
  const run = summary.run;
  const time = known(run.duration_s) ? ` in ${duration(run.duration_s)}` : "";
  const started = manifest.started ? ` Started ${manifest.started.replace("T", " ").replace("Z", " UTC").replaceAll("-", "\u2011")}.` : "";
  if (known(run.energy_j)) return `This run used ${withUnit(run.energy_j, "J")} (${wattHours(run.energy_j)})${time}.${started}`;
  if (known(run.modelled_j)) return `Nothing measured the energy of this run; a model estimates ${withUnit(run.modelled_j, "J", 2)}${time}.${started}`;
  return `The energy of this run is not known: no sensor told energy or power${time}.${started}`;
}

// Sentences that follow from this run's data, and only those.
function findings(data) {
  const out = [];
  const {summary, manifest} = data;
  const domains = summary.nodes.flatMap((node) => node.domains.map((domain) => ({...domain, node: node.name})));
  const total = domains.filter((d) => d.in_total && known(d.energy_j));
  const sum = total.reduce((s, d) => s + d.energy_j, 0);
  if (total.length > 1 && sum > 0) {
    const largest = [...total].sort((a, b) => b.energy_j - a.energy_j);
    const gpus = total.filter((d) => d.domain.startsWith("gpu/"));
    const share = gpus.reduce((s, d) => s + d.energy_j, 0) / sum;
    out.push(gpus.length > 1 ? `${percent(share, 0)} of the energy went to ${count(gpus.length, "GPU")}; the largest part, ${largest[0].domain}, took ${percent(largest[0].energy_j / sum, 0)}.`
      : `${largest[0].domain} took ${percent(largest[0].energy_j / sum, 0)} of the energy.`);
  }
  out.push(...balance(total), ...activity(data), ...gapFindings(domains, summary));
  const epochs = summary.regions.filter((r) => r.name === "epoch");
  const whole = epochs.filter((r) => !r.cut), cut = epochs.length - whole.length;
  const done = whole.reduce((s, r) => s + r.count, 0);
  const told = whole.filter((r) => known(r.energy_j));
  if (epochs.length) {
    const mean = told.reduce((s, r) => s + r.energy_j, 0) / told.reduce((s, r) => s + r.count, 0);
    out.push(`${count(done, "epoch")} complete${cut ? `, ${cut} cut short` : ""}${told.length ? `; ${withUnit(mean, "J")} each on average` : ""}.`);
  }
  if (!summary.run.valid) out.push(manifest.state === "complete" ? known(summary.run.modelled_j) ? "Nothing was measured: the energies on this page are a model's estimates." : "Nothing could be measured." : "The run was cut short: its numbers end with the last readings.");
  if (summary.run.partial) out.push("The energy is a lower bound: a device that belongs to it is missing or was not covered throughout.");
  return out.length ? h("ul", {class: "findings"}, out.map((text) => h("li", {}, text))) : null;
}

// Uneven load of several GPUs; silent where there is nothing to compare.
function balance(total) {
  const gpus = total.filter((d) => d.domain.startsWith("gpu/") && known(d.mean_power_w));
  if (gpus.length < 2) return [];
  const sorted = [...gpus].sort((a, b) => b.mean_power_w - a.mean_power_w);
  const [most, least] = [sorted[0], sorted[sorted.length - 1]];
  if (!(most.mean_power_w > 1.25 * least.mean_power_w)) return [];
  return [`The ${gpus.length} GPUs were loaded unevenly: ${most.domain} drew ${withUnit(most.mean_power_w, "W", 3)} on average, ${least.domain} ${withUnit(least.mean_power_w, "W", 3)}.`];
}

// Mean utilisation over the GPUs that reported it.
function activity(data) {
  const gpus = new Set(data.nodes.flatMap((n) => n.gpus.filter((g) => g.visible).map((g) => `${n.name}\n${g.domain}`)));
  if (!gpus.size) return [];
  const column = ["sm_active_ratio", "gpu_active_ratio"].find((c) => data.series.some((s) => s.column === c && known(s.mean)));
  if (!column) return ["No GPU reported its utilisation."];
  const told = data.series.filter((s) => s.column === column && known(s.mean) && gpus.has(`${s.node}\n${s.domain}`));
  if (!told.length) return [];
  const mean = told.reduce((s, x) => s + x.mean, 0) / told.length;
  const missing = gpus.size > told.length ? ` (${told.length} of ${gpus.size} reported)` : "";
  const word = column === "sm_active_ratio" ? "multiprocessors were active" : "was busy";
  return [gpus.size === 1 ? `The GPU's ${column === "sm_active_ratio" ? word : "kernels ran"} ${percent(mean, 0)} of the time.`
    : `On average ${percent(mean, 0)} GPU utilisation${missing}.`];
}

function gapFindings(domains, summary) {
  const holes = domains.filter((d) => d.in_total && known(d.longest_gap_s));
  if (!holes.length) return [];
  const worst = holes.reduce((a, b) => (b.longest_gap_s > a.longest_gap_s ? b : a));
  const covered = Math.min(...holes.map((d) => d.coverage));
  return [`Readings are missing for part of the time (${listed(holes.slice(0, 4).map((d) => d.domain))}; longest gap ${duration(worst.longest_gap_s)}, coverage ${percent(covered)}): energy inside gaps is not counted.`];
}
