/**
 * The whole service in a test's process, on its own database: real Postgres, real HTTP, real sockets,
 * on a free port. It starts in milliseconds and stops with the layer.
 */
import { NodeServices } from "@effect/platform-node"
import {
  Clock,
  ConfigProvider,
  Context,
  Effect,
  type Exit,
  FileSystem,
  Layer,
  Path,
  Redacted,
  Schema,
  Scope
} from "effect"
import { HttpServer } from "effect/http"
import { TestClock } from "effect/testing"
import { ServiceLive } from "#server/app"
import { cloneDatabase, testServer } from "./database.ts"
import { authenticate, type OnlinePlayer, type TestPlayer, type TestTarget } from "./players.ts"
import { pause } from "./socket-client.ts"

/** A fresh, migrated database. */
export class TestDatabase extends Context.Service<TestDatabase, { readonly url: string }>()(
  "testing/app/TestDatabase"
) {
  /** Layer on a running Postgres (see `testServer`). */
  static readonly layerOn = (server: Redacted.Redacted) =>
    Layer.effect(
      TestDatabase,
      Effect.map(cloneDatabase(server), (url) => TestDatabase.of({ url: Redacted.value(url) }))
    )
  /** Layer on its own Postgres. */
  static readonly layer = Layer.unwrap(Effect.map(testServer, TestDatabase.layerOn))
}

const Keys = Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
const DevKeys = Schema.fromJsonString(
  Schema.Struct({
    project: Schema.String,
    development: Keys,
    production: Keys,
    developer: Schema.Struct({ email: Schema.String, password: Schema.String })
  })
)

/** A running service, with the keys of its seeded development environment. */
export class TestApp extends Context.Service<
  TestApp,
  TestTarget & {
    readonly socketUrl: string
    /** The id of the seeded project, and the credentials of its developer. */
    readonly project: string
    readonly developer: { readonly email: string; readonly password: string }
    /** The other environment of the same project. */
    readonly production: TestTarget
    /** Opens a socket and authenticates a player. Take `welcome` from it next. */
    readonly online: (player: TestPlayer) => Effect.Effect<OnlinePlayer, Error, Scope.Scope>
    /** Repeats an effect until it succeeds with true. */
    readonly eventually: <A, E>(
      effect: Effect.Effect<A, E>,
      what: string
    ) => Effect.Effect<NonNullable<A>>
  }
>()("testing/app/TestApp") {
  /** Layer on a {@link TestDatabase}, with these settings beside the development defaults. */
  static readonly layerWith = (env: Readonly<Record<string, string>> = {}) =>
    Layer.effect(TestApp, startApp(env)).pipe(Layer.provide(NodeServices.layer))
}

/** A minute and more of polling: a busy machine is ten times as slow. */
const attempts = 3000
const pollMillis = 20

const eventually: TestApp["Service"]["eventually"] = (effect, what) =>
  effect.pipe(
    Effect.flatMap((value) =>
      value === undefined || value === null || value === false
        ? Effect.fail("not yet")
        : Effect.succeed(value)
    ),
    Effect.tapError(() => pause(pollMillis)),
    Effect.retry({ times: attempts }),
    Effect.mapError((last) => new Error(`Timed out waiting until ${what}: ${String(last)}`)),
    Effect.orDie
  )

/** Stops the service, which takes time. On a test clock, it advances the clock meanwhile. */
const stopWith = (scope: Scope.Closeable, exit: Exit.Exit<unknown, unknown>) =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const stop = Scope.close(scope, exit)
    if (!("adjust" in clock)) return stop
    const advance = Effect.andThen(pause(pollMillis), TestClock.adjust("100 millis"))
    return Effect.raceFirst(stop, Effect.forever(advance))
  })

const startApp = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const database = yield* TestDatabase
  const dataDir = yield* fs.makeTempDirectoryScoped({ prefix: "svc-app-" })
  // If this is root, users of functions pass through: the service would take a folder that outlives the test.
  yield* fs.chmod(dataDir, 0o711)
  const settings = ConfigProvider.layer(
    ConfigProvider.fromEnv({
      env: {
        PORT: "0",
        HOST: "127.0.0.1",
        DATABASE_URL: database.url,
        SVC_DATA_DIR: dataDir,
        SVC_BASE_URL: "http://localhost:8080",
        SVC_THROTTLES: "off",
        SVC_TURN_PORT: "0",
        SVC_DEMO_GAMES: "off",
        ...env
      }
    })
  )
  const scope = yield* Effect.acquireRelease(Scope.make(), stopWith)
  const service = yield* Layer.buildWithScope(
    Layer.provide(Layer.fresh(ServiceLive), settings),
    scope
  )
  const { address } = Context.get(service, HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  const text = yield* fs.readFileString(path.join(dataDir, "dev-keys.json"))
  const keys = yield* Schema.decodeUnknownEffect(DevKeys)(text)
  const url = `http://127.0.0.1:${port}`
  const target: TestTarget = { url, ...keys.development }
  return TestApp.of({
    ...target,
    socketUrl: `ws://127.0.0.1:${port}/v1/realtime`,
    project: keys.project,
    developer: keys.developer,
    production: { url, ...keys.production },
    online: (player) => authenticate(target, player),
    eventually
  })
}, Effect.orDie)
