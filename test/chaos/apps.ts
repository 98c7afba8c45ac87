/** What an app under load is, and how it is kept going. */
import { setTimeout as delay } from "node:timers/promises"
import { createClient, type Client, memoryStorage } from "#client/client"
import type { TestTarget } from "#testing/players"
import { isPassing, type Journal, type Kind } from "./journal.ts"

export interface App {
  readonly kind: Kind
  readonly name: string
  /** Gets one thing done, or rejects. */
  readonly step: (signal: AbortSignal) => Promise<void>
  /** Between steps, when all is well: holds the service to what it has promised. */
  readonly verify?: () => Promise<void>
}

/** How often an app of a kind does its thing, in milliseconds. */
const paceMillis: Readonly<Record<Kind, number>> = {
  rooms: 100,
  matches: 200,
  channels: 250,
  saves: 200,
  stats: 200
}

/** The time after which a failed call is made again. */
const againMillis = 250

/** Calls until the call is not refused for the moment. */
export const insist = async <A>(call: () => Promise<A>): Promise<A> => {
  while (true) {
    try {
      return await call()
    } catch (error) {
      if (!isPassing(error)) throw error
      await delay(againMillis)
    }
  }
}

/** A client as an app makes it: nothing is kept but in memory, every option the default. */
export const appClient = async ({ publishableKey, url }: TestTarget): Promise<Client> => {
  const client = createClient({ baseUrl: url, key: publishableKey, storage: memoryStorage() })
  await insist(() => client.sessions.guest())
  return client
}

/**
 * Keeps an app going until the signal; what fails is made again a moment later. More failures in a row
 * than `retries` would have been noticed by the app's user.
 */
export const drive = async (
  app: App,
  journal: Journal,
  signal: AbortSignal,
  retries: number
): Promise<void> => {
  const { kind, name } = app
  let failures = 0
  while (!signal.aborted) {
    const begun = performance.now()
    try {
      await app.step(signal)
      journal.done(name, performance.now() - begun)
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      failures += 1
      journal.failed(kind, name, error)
      if (failures === retries + 1) journal.noticed.push(`${name}: ${String(error)}`)
    }
    const pause = failures > 0 ? againMillis : paceMillis[kind]
    const rest = Math.max(1, pause - (performance.now() - begun))
    await delay(rest, undefined, { signal }).catch(() => undefined)
  }
}
