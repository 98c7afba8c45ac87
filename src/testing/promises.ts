/**
 * Test kit for tests without Effect (package export `./testing/promises`): the whole service in the test's
 * process, as one call that returns a promise.
 */
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { type Client, type ClientOptions, createClient, memoryStorage } from "#client/client"
import { TestApp, TestDatabase } from "./app.ts"
import { configure } from "./players.ts"

/** Options of {@link startTestApp}. */
export interface TestAppOptions {
  /** Settings of the service, beside its development defaults. */
  readonly env?: Readonly<Record<string, string>>
  /** URL of a Postgres that `testServer` started. Default: one of its own. */
  readonly server?: string
}

/** A running service with a database of its own. */
export interface RunningTestApp extends AsyncDisposable {
  readonly baseUrl: string
  readonly publishableKey: string
  readonly secretKey: string
  /** Pushes a config document; rejects if the service refuses it. */
  readonly configure: (document: object) => Promise<void>
  /** Makes a client with a session of its own: another player than every other client. */
  readonly client: (options?: Partial<ClientOptions>) => Client
  /** Closes the clients, stops the service, and drops the database. */
  readonly stop: () => Promise<void>
}

/**
 * Starts the service on a free port, with a database of its own.
 *
 * @example
 * const app = await startTestApp()
 * const client = app.client()
 * await app.stop()
 */
export const startTestApp = async (options: TestAppOptions = {}): Promise<RunningTestApp> => {
  const { env, server } = options
  const database =
    server === undefined ? TestDatabase.layer : TestDatabase.layerOn(Redacted.make(server))
  const runtime = ManagedRuntime.make(
    TestApp.layerWith(env).pipe(Layer.provide(database), Layer.orDie)
  )
  const clients = new Set<Client>()
  const stop = async (): Promise<void> => {
    for (const client of clients) client.close()
    clients.clear()
    await runtime.dispose()
  }
  const app = await runtime
    .runPromise(TestApp.use(Effect.succeed))
    .catch(async (error: unknown) => {
      await stop()
      throw error
    })
  const { publishableKey, secretKey, url: baseUrl } = app
  return {
    baseUrl,
    publishableKey,
    secretKey,
    configure: (document) => runtime.runPromise(Effect.asVoid(configure(app, document))),
    client: (more) => {
      const storage = memoryStorage()
      const client = createClient({ baseUrl, key: publishableKey, storage, ...more })
      clients.add(client)
      return client
    },
    stop,
    [Symbol.asyncDispose]: stop
  }
}
