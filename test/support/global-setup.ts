/** Starts one Postgres for all test files. Each file gets its own database. */
import { createRequire } from "node:module"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly postgres: string
    /** How much the simulation, chaos and fuzz tests run. */
    readonly form: "short" | "long"
  }
}

// Loaded by Node itself: the loader that vitest gives to this file lacks `import.meta.resolve`.
const { testServer }: typeof import("#testing/database") = createRequire(import.meta.url)(
  "../../src/testing/database.ts"
)

export default async (project: TestProject): Promise<() => Promise<void>> => {
  const scope = Scope.makeUnsafe()
  const url = await Effect.runPromise(Scope.provide(testServer, scope))
  project.provide("postgres", Redacted.value(url))
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
