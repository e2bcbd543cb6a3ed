// Elements from data. Text goes in as text nodes and attribute values only, never as markup: names cannot break the page.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false)
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
}

// Text that came from outside, kept apart from its surroundings so that right-to-left names do not turn them around.
export const name = (text) => h("bdi", {}, text);

// Hands the reader a file that never was on a server.
export function download(fileName, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = h("a", {href: url, download: fileName});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export const fileName = (text) => (text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "figure");

// Lines of values as CSV; the first line names the columns.
export function csv(lines) {
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    // A cell that begins like a formula would be one to a spreadsheet.
    const safe = /^[=+@\t\r]/.test(text) || /^-[^\d.]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return lines.map((row) => row.map(field).join(",")).join("\n") + "\n";
}
