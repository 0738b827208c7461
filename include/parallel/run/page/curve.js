R"script(// A curve as few points: smoothed, cut to what is shown, and thinned to what a screen can tell apart.

/// Averages that forget; the first ones are of what there is (as Adam's moments are corrected).
function smoothed(values, weight) {
  if (weight === 0) return values;
  let sum = 0, of = 0;
  return values.map((v) => {
    if (!Number.isFinite(v)) return v;
    sum = weight * sum + (1 - weight) * v, of = weight * of + (1 - weight);
    return sum / of;
  });
}

/// The points of a curve in [from, to], at most four for each of `columns`: the first, the lowest, the highest and the last. Where a value is no
/// number stands a null.
function thinned(at, values, from, to, columns) {
  const result = [], scale = columns / (to - from || 1);
  let column = -1, first = -1, low = 0, high = 0, last = 0;
  const flush = () => {
    if (first < 0) return;
    for (const i of [...new Set([first, low, high, last])].sort((a, b) => a - b)) result.push([at[i], values[i]]);
    first = -1;
  };
  for (let i = 0; i < values.length; ++i) {
    if (at[i] < from || at[i] > to) continue;
    if (!Number.isFinite(values[i])) {
      flush(), result.push(null);
      continue;
    }
    const here = Math.floor((at[i] - from) * scale);
    if (first < 0 || here !== column) flush(), column = here, first = low = high = i;
    if (values[i] < values[low]) low = i;
    if (values[i] > values[high]) high = i;
    last = i;
  }
  flush();
  return result;
}

/// One point for each column: the mean of what lies there.
function averaged(at, values, from, to, columns) {
  const sums = new Map(), scale = columns / (to - from || 1);
  for (let i = 0; i < values.length; ++i) {
    if (at[i] < from || at[i] > to || !Number.isFinite(values[i])) continue;
    const column = Math.floor((at[i] - from) * scale), sum = sums.get(column);
    if (sum) sum[0] += at[i], sum[1] += values[i], ++sum[2];
    else sums.set(column, [at[i], values[i], 1]);
  }
  return [...sums.values()].map(([place, sum, count]) => [place / count, sum / count]);
}

/// The index of the value that is nearest to a place; -1 for none.
function nearest(at, place) {
  let low = 0, high = at.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    at[middle] < place ? low = middle + 1 : high = middle;
  }
  return low > 0 && place - at[low - 1] < at[low] - place ? low - 1 : Math.min(low, at.length - 1);
}

/// Round numbers between two, about so many; on a logarithmic axis powers of ten, with 2 and 5 between where there are few.
function ticksBetween(low, high, wanted, logarithmic) {
  const result = [];
  if (logarithmic) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), apart = Math.ceil((last - first) / wanted);
    for (let p = first; p <= last; p += apart)
      for (const factor of last - first <= 2 ? [1, 2, 5] : [1]) result.push(factor * 10 ** p);
  } else {
    const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough)), step = power * [1, 2, 5, 10].find((f) => power * f >= rough);
    for (let k = Math.ceil(low / step); k * step <= high; ++k) result.push(k * step);
  }
  return result.filter((t) => t >= low && t <= high).map((t) => Number(t.toPrecision(12)));
}
)script"
