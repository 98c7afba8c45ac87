/** Distance of two names, to suggest the one that was probably meant. */

/** Levenshtein distance of two names, ignoring case. */
export const editDistance = (left: string, right: string): number => {
  const letters = Array.from(right.toLowerCase())
  let row = Array.from({ length: letters.length + 1 }, (_, index) => index)
  for (const [i, a] of Array.from(left.toLowerCase()).entries()) {
    const next = [i + 1]
    for (const [j, b] of letters.entries()) {
      const replaced = (row[j] ?? 0) + (a === b ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
