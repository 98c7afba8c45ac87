/** Answers of requests that spend a secret, kept for a repeat with the same `Idempotency-Key`. */
export const spentAnswers = {
  keptSeconds: 600,
  /**
   * Stored answers of an environment, and of all developers together. Beyond it, an answer is not
   * stored, and its repeat gets the error of a spent secret.
   */
  maxPerTenant: 10_000,
  /** The fewest characters of the key's alphabet that hold 128 bits. */
  keyMinCharacters: 22,
  keyMaxCharacters: 128
} as const
