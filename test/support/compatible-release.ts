/** The release beside which this one must run during a rolling upgrade. */
import { missingHistory } from "./release.ts"

/** Its commit. A release replaces this line with its own. */
export const compatibleRelease = "c05a9e3c4ff5d2592579403a40808c25ad0888e5"

/** Why tests that need it do not run here. */
export const skipReason = (): string | undefined => missingHistory(compatibleRelease)
