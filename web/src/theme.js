// Light and dark, and the colours of series. The colours are Okabe and Ito's, told apart by people with any kind of colour
// blindness, shifted in brightness for each ground; dashes and symbols repeat what colour says.

const SERIES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b8860b", "#cc79a7", "#3d8fc7", "#7a5195", "#5b6770"],
  dark: ["#56b4e9", "#f28e4b", "#2fc79a", "#e6c34a", "#e39ac4", "#8fd0f5", "#b99be0", "#a7b3bd"],
};
export const DASHES = ["solid", [6, 3], [2, 2], [8, 3, 2, 3]];
export const SYMBOLS = ["circle", "diamond", "rect", "triangle", "roundRect", "pin", "arrow"];

const GROUND = {
  light: {text: "#1c2430", soft: "#566171", line: "#d9dee5", card: "#ffffff", band: "rgba(20, 40, 70, 0.05)", warn: "#b3261e"},
  dark: {text: "#e7ebf0", soft: "#a3afbd", line: "#343d49", card: "#1a2027", band: "rgba(255, 255, 255, 0.06)", warn: "#ff8a80"},
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");
let chosen = null;  // "light", "dark" or null: as the system has it
const listeners = new Set();

export const mode = () => (print.matches ? "light" : chosen ?? (dark.matches ? "dark" : "light"));
export const printing = () => print.matches;
export const ground = () => GROUND[mode()];
export const colour = (index) => SERIES[mode()][index % SERIES[mode()].length];
export const dash = (index) => DASHES[Math.floor(index / SERIES.light.length) % DASHES.length];
export const symbol = (index) => SYMBOLS[index % SYMBOLS.length];
export const onChange = (listener) => listeners.add(listener);

function changed() {
  document.documentElement.dataset.theme = mode();
  for (const listener of listeners) listener();
}

export function toggle() {
  chosen = mode() === "dark" ? "light" : "dark";
  changed();
}

export function start() {
  document.documentElement.dataset.theme = mode();
  dark.addEventListener("change", changed);
  print.addEventListener("change", changed);
}
