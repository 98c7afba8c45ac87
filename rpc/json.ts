/** What is asked of any JSON value before it is looked at in full. */

/** Whether a value nests deeper than so many levels; a deep one overflows whatever walks it. */
export const exceedsDepth = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => exceedsDepth(member, levels - 1)))
