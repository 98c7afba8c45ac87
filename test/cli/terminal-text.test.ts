/** Text of others in the output of `svc`: no control sequence and no forged line reaches the terminal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeService } from "../support/cli/fake-service.ts"
import { makeFolder } from "../support/cli/svc.ts"

const status = {
  enabled: true,
  suspended: false,
  suspendedReason: null,
  limits: { cpuMs: 50, subRequests: 50 },
  deployed: true,
  version: 1,
  url: "http://127.0.0.1/fn",
  crons: [],
  durableObjects: [],
  resources: { databases: [], kv: [], files: [], queues: [] },
  secrets: []
}

/** Clears the screen, sets the clipboard by C1 and turns the direction; then a line like that of the CLI. */
const hostile =
  "\u001B[2J\u009D52;c;cm0=\u009C\u202Etxt.exe\u2066\u001B[8m\n12:00:00.000 info  v1 all is well"

/** All control characters but line breaks, and those that change the reading direction. */
const control = /[^\P{Cc}\n]|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u

/** The text without the styles that `svc` uses. */
const withoutOwnStyles = (text: string): string =>
  [2, 22, 36, 39].reduce((rest, code) => rest.replaceAll(`\u001B[${code}m`, ""), text)

const setUp = Effect.gen(function* () {
  const entry = { id: "1", at: "2026-01-01T10:00:00.000Z", level: "info", version: 1 }
  const refused = { error: { code: "not_allowed", message: hostile } }
  const { url } = yield* fakeService({
    "GET /v1/admin/functions": { body: status },
    "GET /v1/admin/functions/logs?follow=false": { body: { ...entry, message: hostile } },
    "GET /v1/admin/functions/secrets": {
      body: { secrets: [{ name: hostile, updatedAt: "2026-01-01T10:00:00.000Z" }] }
    },
    "GET /v1/config": { headers: { etag: '"1"' }, body: { note: hostile } },
    "GET /v1/admin/features": { status: 403, body: refused }
  })
  return yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: "sk_1" })
})

describe("svc with text of others", () => {
  it.effect("prints log messages as text, and marks their further lines", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      const { code, stdout } = yield* folder.svc("functions logs")
      assert.strictEqual(code, 0)
      assert.notMatch(stdout, control)
      const [first, second] = stdout.split("\n")
      assert.match(
        first ?? "",
        /^10:00:00\.000 info {2}v1 \\u001b\[2J\\u009d52;c;cm0=\\u009c\\u202e/
      )
      assert.strictEqual(second, "  | 12:00:00.000 info  v1 all is well")
    })
  )

  it.effect("colours its own words on a terminal, and none of a message", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      const { stdout } = yield* folder.svc("functions logs", { env: { FORCE_COLOR: "1" } })
      assert.include(stdout, "\u001B[36minfo")
      assert.notMatch(withoutOwnStyles(stdout), control)
      assert.notInclude(stdout, "\u001B[8m")
    })
  )

  it.effect("prints errors of the service, lists and JSON without control characters", () =>
    Effect.gen(function* () {
      const folder = yield* setUp
      const failed = yield* folder.svc("features")
      assert.notMatch(failed.stdout + failed.stderr, control)
      assert.match(failed.stderr, /\n {2}12:00:00\.000 info/)
      for (const command of ["functions secrets list", "config pull -", "functions logs --json"]) {
        const { code, stderr, stdout } = yield* folder.svc(command)
        assert.deepStrictEqual([code, stderr], [0, ""], command)
        assert.notMatch(stdout, control, command)
      }
      const { stdout } = yield* folder.svc("config pull -")
      assert.deepStrictEqual(JSON.parse(stdout), { note: hostile })
    })
  )
})
