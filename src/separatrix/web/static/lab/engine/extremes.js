// The largest and the smallest of many values: Math.max(...values) fails where there are more than a call has arguments.

/** @param {ArrayLike<number>} values @returns {number} −Infinity of none */
export function largest(values) {
  let most = -Infinity;
  for (let i = 0; i < values.length; i += 1) most = Math.max(most, values[i]);
  return most;
}

/** @param {ArrayLike<number>} values @returns {number} Infinity of none */
export function smallest(values) {
  let least = Infinity;
  for (let i = 0; i < values.length; i += 1) least = Math.min(least, values[i]);
  return least;
}
