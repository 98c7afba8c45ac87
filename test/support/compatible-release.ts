/** The release beside which this one must run during a rolling upgrade. */
import { missingHistory } from "./release.ts"

/** Its commit. A release replaces this line with its own. */
export const compatibleRelease = "176cdc472eb7a6d054aa6203cefee1ec8db98313"

/** Why tests that need it do not run here. */
export const skipReason = (): string | undefined => missingHistory(compatibleRelease)
