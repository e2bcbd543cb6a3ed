// Series of readings: unpacked from the page's data, and thinned to what a screen can show.

// [[seconds, value or null], ...]; null marks a gap.
export function unpack(series) {
  if (series.points) return series.points;
  const {t, v, t_step_s: step_s} = series;
  const points = new Array(t.length);
  for (let i = 0, at = 0; i < t.length; ++i) points[i] = [(at += t[i]) * step_s, v[i]];
  return (series.points = points);
}

// Of the points between `from` and `to` (and one on either side) the lowest and the highest of each of `buckets` equal parts
// of time, and every gap.
export function view(points, from, to, buckets) {
  let first = lower(points, from), last = lower(points, to);
  first = Math.max(0, first - 1);
  last = Math.min(points.length, last + 2);
  if (last - first <= 2 * buckets) return points.slice(first, last);
  const out = [];
  const width = (to - from) / buckets;
  let bucket = null, low = null, high = null;
  const close = () => {
    if (low === null) return;
    const pair = low === high ? [low] : low < high ? [low, high] : [high, low];
    for (const i of pair) out.push(points[i]);
    low = high = null;
  };
  for (let i = first; i < last; ++i) {
    const v = points[i][1];
    const number = Math.floor((points[i][0] - from) / width);
    if (number !== bucket || v === null) {
      close();
      bucket = number;
    }
    if (v === null) {
      out.push(points[i]);
      continue;
    }
    if (low === null || v < points[low][1]) low = i;
    if (high === null || v > points[high][1]) high = i;
  }
  close();
  return out;
}

// Index of the first point not before t.
function lower(points, t) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

// First and last moment of several series; null without any.
export function extent(list) {
  let from = Infinity, to = -Infinity;
  for (const series of list) {
    const points = unpack(series);
    if (points.length === 0) continue;
    from = Math.min(from, points[0][0]);
    to = Math.max(to, points[points.length - 1][0]);
  }
  return from <= to ? [from, to] : null;
}

// Whether a series has a gap, and the sum of its gaps in seconds.
export function gaps(series) {
  const points = unpack(series);
  let sum = 0, count = 0;
  for (let i = 1; i + 1 < points.length; ++i)
    if (points[i][1] === null) {
      sum += points[i + 1][0] - points[i - 1][0];
      ++count;
    }
  return {sum, count};
}

// The newest value not later than t, or null in a gap or outside.
export function valueAt(points, t, within) {
  const i = lower(points, t);
  const after = points[i], before = points[i - 1];
  if (after && after[0] === t) return after[1];
  if (!before || before[1] === null || (after && after[1] === null && t > before[0] + within)) return null;
  if (!after) return t - before[0] <= within ? before[1] : null;
  return before[1];
}
