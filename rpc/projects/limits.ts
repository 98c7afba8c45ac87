/** Limits of projects and their keys. */

export const projectLimits = {
  nameMaxCharacters: 80,
  /** Includes deleted projects that can still be restored. */
  perDeveloper: 100,
  /** Keys of one environment that are not revoked. */
  keysPerEnvironment: 100,
  searchMaxCharacters: 254
} as const
