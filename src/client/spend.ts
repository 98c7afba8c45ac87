/** Requests of modules that spend a secret: sign-in codes, transfer codes and links of mails. */
import type { Core } from "./core.ts"
import { isRecord } from "./errors.ts"
import { isLost, type KeyHeader, newKey, sendKeyed } from "./repeats.ts"

/** A request without a response: what it spends, and its key. */
interface PendingRequest {
  readonly spent: string
  readonly key: string
}

const entryOf = ({ name }: Core, action: string): string => `${name}:${action}`

/** The stored request of an action, if it got no response. */
export const pendingRequest = async (
  core: Core,
  action: string
): Promise<PendingRequest | undefined> => {
  try {
    const value: unknown = JSON.parse(String(await core.storage.getItem(entryOf(core, action))))
    if (!isRecord(value)) return undefined
    const { key, spent } = value
    return typeof spent === "string" && typeof key === "string" ? { spent, key } : undefined
  } catch {
    return undefined
  }
}

const store = async (
  core: Core,
  action: string,
  value: PendingRequest | undefined
): Promise<void> => {
  const entry = entryOf(core, action)
  try {
    await (value === undefined
      ? core.storage.removeItem(entry)
      : core.storage.setItem(entry, JSON.stringify(value)))
  } catch (error) {
    // Without the entry, the request can be repeated until the page closes.
    core.log(action, error)
  }
}

/**
 * Sends a request that spends a secret, again if its response was lost, and with the stored key if an
 * earlier page got no response. `spent` identifies the secret; its end suffices.
 */
export const spend = async <A>(
  core: Core,
  action: string,
  spent: string,
  send: (header: KeyHeader) => Promise<A>
): Promise<A> => {
  const before = await pendingRequest(core, action)
  const key = before?.spent === spent ? before.key : newKey()
  if (key !== undefined) await store(core, action, { spent, key })
  try {
    const response = await sendKeyed(key, send)
    await store(core, action, undefined)
    return response
  } catch (error) {
    if (!isLost(error)) await store(core, action, undefined)
    throw error
  }
}

/** The end of a secret, by which it is recognized without being stored. */
export const endOf = (secret: string): string => secret.slice(-16)
