/**
 * Threats to stored secrets and to defaults (design section 7): what a stolen database tells, a master
 * key that is replaced, production that starts without a key or with something in it.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { NodeServices } from "@effect/platform-node"
import { Secrets } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"

const newKey = () => randomBytes(32).toString("base64")

/** The secrets of a process with these master keys, the newest first. */
const secretsWith = (key: string, ...older: ReadonlyArray<string>) =>
  Effect.service(Secrets).pipe(
    Effect.provide(
      Secrets.layer.pipe(
        Layer.provide(Settings.layer),
        Layer.provide(Layer.mergeAll(SecureRandom.layerWebCrypto, NodeServices.layer)),
        Layer.provide(
          ConfigProvider.layer(
            ConfigProvider.fromEnv({
              env: { SVC_MASTER_KEY: key, SVC_OLDER_MASTER_KEYS: older.join(",") }
            })
          )
        )
      )
    )
  )

const purpose = "the client of google"
const text = "GOCSPX-the-secret-of-a-client"

describe("a sealed secret", () => {
  it.effect("names its master key, has a key of its own, and never looks the same twice", () =>
    Effect.gen(function* () {
      const secrets = yield* secretsWith(newKey())
      const other = yield* secretsWith(newKey())
      const sealed = yield* Effect.all(
        Array.from({ length: 100 }, () => secrets.seal(text, purpose))
      )
      assert.strictEqual(new Set(sealed).size, 100)
      const parts = sealed.map((one) => one.split("."))
      assert.strictEqual(new Set(parts.map(([id]) => id)).size, 1)
      assert.strictEqual(new Set(parts.map(([, wrapped]) => wrapped)).size, 100)
      const [id] = (yield* other.seal(text, purpose)).split(".")
      assert.notStrictEqual(id, parts[0]?.[0])
      for (const one of sealed) {
        assert.match(one, /^[\w-]{8}\.[\w-]{80}\.[\w-]+$/)
        assert.notInclude(
          Buffer.from(one.split(".")[2] ?? "", "base64url").toString("latin1"),
          text
        )
        assert.strictEqual(yield* secrets.open(one, purpose), text)
      }
    })
  )

  it.effect("opens for its purpose only, whole, and under its own master key", () =>
    Effect.gen(function* () {
      const key = newKey()
      const secrets = yield* secretsWith(key)
      const stranger = yield* secretsWith(newKey())
      const sealed = yield* secrets.seal(text, purpose)
      const another = yield* secrets.seal(text, purpose)
      const [id = "", wrapped = "", body = ""] = sealed.split(".")
      const [otherId] = (yield* stranger.seal(text, purpose)).split(".")
      const changed = Array.from(body).map(
        (character, index) =>
          `${body.slice(0, index)}${character === "A" ? "B" : "A"}${body.slice(index + 1)}`
      )
      const wrong = [
        ...changed.slice(0, -1).map((one) => `${id}.${wrapped}.${one}`),
        `${id}.${wrapped}.${another.split(".")[2]}`,
        `${otherId}.${wrapped}.${body}`,
        `${id}.${body}.${wrapped}`,
        `${id}.${wrapped}`,
        `${wrapped}.${body}`,
        `${id}..`,
        "..",
        "",
        body
      ]
      for (const one of wrong) {
        const error = yield* Effect.flip(secrets.open(one, purpose))
        assert.strictEqual(error._tag, "SecretError", one)
        assert.notInclude(error.message, text)
      }
      assert.include((yield* Effect.flip(secrets.open(sealed, "another"))).message, "another")
      yield* Effect.flip(stranger.open(sealed, purpose))
      assert.strictEqual(yield* secrets.open(sealed, purpose), text)
    })
  )

  it.effect(
    "of before opens when the master key was replaced, and is sealed under the new one",
    () =>
      Effect.gen(function* () {
        const [old, fresh] = [newKey(), newKey()]
        const before = yield* secretsWith(old)
        const after = yield* secretsWith(fresh, newKey(), old)
        const sealed = yield* before.seal(text, purpose)
        assert.strictEqual(yield* after.open(sealed, purpose), text)
        const again = yield* after.seal(text, purpose)
        assert.strictEqual(yield* (yield* secretsWith(fresh)).open(again, purpose), text)
        yield* Effect.flip(before.open(again, purpose))
        const mark = before.mark("token")
        assert.isTrue(after.isMark("token", mark))
        assert.isFalse(after.isMark("tokens", mark))
        assert.notStrictEqual(after.mark("token"), mark)
      })
  )
})

const main = fileURLToPath(new URL("../../src/server/main.ts", import.meta.url))

describe("a process in production without a master key", () => {
  it.live("does not start, says why, and tells nothing else", () =>
    Effect.gen(function* () {
      const { code, output } = yield* Effect.callback<{ code: number | null; output: string }>(
        (resume) => {
          let output = ""
          const child = spawn(process.execPath, [main], {
            env: {
              NODE_ENV: "production",
              PORT: "0",
              DATABASE_URL: "postgres://svc:hunter2@127.0.0.1:1/none"
            }
          })
          const hear = (chunk: Buffer) => (output += chunk.toString())
          child.stdout.on("data", hear)
          child.stderr.on("data", hear)
          child.once("close", (code) => resume(Effect.succeed({ code, output })))
        }
      )
      assert.notStrictEqual(code, 0)
      assert.include(output, "SVC_MASTER_KEY: is required in production")
      assert.notInclude(output, "hunter2")
    })
  )
})
