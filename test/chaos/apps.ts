/** Apps under load: their interface, and the loop that drives them. */
import { setTimeout as delay } from "node:timers/promises"
import { createClient, type Client, memoryStorage } from "#client/client"
import type { TestTarget } from "#testing/players"
import { isPassing, type Journal, type AppKind } from "./journal.ts"

export interface App {
  readonly kind: AppKind
  readonly name: string
  /** Gets one thing done, or rejects. */
  readonly step: (signal: AbortSignal) => Promise<void>
  /** Compares the service with what it acknowledged, while no fault is active. */
  readonly verify?: () => Promise<void>
}

/** Milliseconds from one step of an app to the next. */
const intervalMillis: Readonly<Record<AppKind, number>> = {
  rooms: 100,
  matches: 200,
  channels: 250,
  saves: 200,
  stats: 200
}

/** The pause before a failed call is repeated. */
const retryMillis = 250

/** Repeats a call while it fails with a passing error. */
export const retryPassing = async <A>(call: () => Promise<A>): Promise<A> => {
  while (true) {
    try {
      return await call()
    } catch (error) {
      if (!isPassing(error)) throw error
      await delay(retryMillis)
    }
  }
}

/** A client with default options that stores its session in memory. */
export const appClient = async ({ publishableKey, url }: TestTarget): Promise<Client> => {
  const client = createClient({ baseUrl: url, key: publishableKey, storage: memoryStorage() })
  await retryPassing(() => client.sessions.guest())
  return client
}

/**
 * Runs an app's steps until the signal, and repeats a failed one. More than `retries` failures in a row
 * count as noticed by the app's user.
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
    const pause = failures > 0 ? retryMillis : intervalMillis[kind]
    const rest = Math.max(1, pause - (performance.now() - begun))
    await delay(rest, undefined, { signal }).catch(() => undefined)
  }
}
