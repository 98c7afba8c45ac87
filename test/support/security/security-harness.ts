/** The service of the security tests, with access to its database and its master key. */
import { appWithSql } from "../devices.ts"
import { SVC_MASTER_KEY } from "./forger.ts"

/** The service with a known master key, and its database. */
export const SecurityAppLive = (env: Readonly<Record<string, string>> = {}) =>
  appWithSql({ SVC_MASTER_KEY, SVC_SIGNUPS: "open", ...env })

export const live = { timeout: "120 seconds", excludeTestServices: true } as const
