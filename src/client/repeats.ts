/**
 * Requests that spend a secret, under a key that is stored before they are sent. A response may be lost;
 * the same request with the same key gets it again, also after a reload of the page.
 */
import { codeOf } from "./errors.ts"

export type KeyHeader = Readonly<Record<string, string>>

/** 160 random bits; none on platforms without Web Crypto. */
export const newKey = (): string | undefined =>
  globalThis.crypto?.getRandomValues(new Uint32Array(5)).join("-")

/** Whether the service may have executed the request of this error. */
export const isLost = (error: unknown): boolean =>
  /^(network_error|timed_out|unreadable_response)$/.test(codeOf(error) ?? "")

/** Sends a request with its key, and once more if its response was lost. Without a key it sends once. */
export const sendKeyed = async <A>(
  key: string | undefined,
  send: (headers: KeyHeader) => Promise<A>
): Promise<A> => {
  if (key === undefined) return send({})
  const headers = { "idempotency-key": key }
  try {
    return await send(headers)
  } catch (error) {
    if (isLost(error)) return send(headers)
    throw error
  }
}
