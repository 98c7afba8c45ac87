/** The service for tests of this repository, on the Postgres that the global setup started. */
import { Layer, Redacted } from "effect"
import { inject } from "vitest"
import { TestApp, TestDatabase } from "#testing/app"

/** An empty database for the test file. */
export const DatabaseLive = Layer.suspend(() =>
  TestDatabase.layerOn(Redacted.make(inject("postgres")))
)

/** The service on its own database. */
export const AppLive = TestApp.layerWith().pipe(Layer.provide(DatabaseLive))
