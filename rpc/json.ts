/** Depth check for untrusted JSON values. */

/**
 * Whether a value nests deeper than `levels`. Check it before any recursive walk: deep nesting
 * overflows the stack.
 */
export const exceedsDepth = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => exceedsDepth(member, levels - 1)))
