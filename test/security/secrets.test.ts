/**
 * Stored secrets: encryption at rest, replacement of the master key, and a production process without a
 * master key.
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

const makeMasterKey = () => randomBytes(32).toString("base64")

/** The secrets service of a process with these master keys, the newest first. */
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
  it.effect("names the master key in a sealed secret, with its own data key and ciphertext", () =>
    Effect.gen(function* () {
      const secrets = yield* secretsWith(makeMasterKey())
      const other = yield* secretsWith(makeMasterKey())
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

  it.effect("opens a sealed secret only unchanged, for its purpose and under its master key", () =>
    Effect.gen(function* () {
      const key = makeMasterKey()
      const secrets = yield* secretsWith(key)
      const stranger = yield* secretsWith(makeMasterKey())
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

  it.effect("opens a sealed secret after a change of the master key, which seals new ones", () =>
    Effect.gen(function* () {
      const [old, fresh] = [makeMasterKey(), makeMasterKey()]
      const before = yield* secretsWith(old)
      const after = yield* secretsWith(fresh, makeMasterKey(), old)
      const sealed = yield* before.seal(text, purpose)
      assert.strictEqual(yield* after.open(sealed, purpose), text)
      const again = yield* after.seal(text, purpose)
      assert.strictEqual(yield* (yield* secretsWith(fresh)).open(again, purpose), text)
      yield* Effect.flip(before.open(again, purpose))
      const mac = before.mac("token")
      assert.isTrue(after.hasValidMac("token", mac))
      assert.isFalse(after.hasValidMac("tokens", mac))
      assert.notStrictEqual(after.mac("token"), mac)
    })
  )
})

const main = fileURLToPath(new URL("../../src/server/main.ts", import.meta.url))

describe("a process in production without a master key", () => {
  it.live("refuses to start in production without a master key, and prints no password", () =>
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
          const append = (chunk: Buffer) => (output += chunk.toString())
          child.stdout.on("data", append)
          child.stderr.on("data", append)
          child.once("close", (code) => resume(Effect.succeed({ code, output })))
        }
      )
      assert.notStrictEqual(code, 0)
      assert.include(output, "SVC_MASTER_KEY: is required in production")
      assert.notInclude(output, "hunter2")
    })
  )
})
