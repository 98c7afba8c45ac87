/**
 * Password hashing with argon2id, in the PHC string format. Passwords are normalized to NFKC, since
 * keyboards compose characters differently. Hashing runs off the event loop, a few at a time. Tenants take
 * turns; when the queue of one is full, it gets 503 `unavailable`.
 *
 * A check takes the same time with and without a hash, so response times do not reveal which accounts
 * exist.
 */
import { timingSafeEqual } from "node:crypto"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { Context, Effect, Layer } from "effect"
import { Kdf, SecureRandom } from "effect/crypto"
import { Unavailable } from "#rpc/errors/codes"
import { FairSemaphore } from "./fair-semaphore.ts"
import { currentTenant } from "./tenant.ts"

/** Password hashing. Each hash takes 20 ms of a core and 19 MiB, off the event loop. */
export const passwordHashes = {
  /** Number of concurrent hashes; further ones wait in the queue. */
  concurrency: 2,
  /** Queued hashes of one environment; beyond it 503 `unavailable`. */
  waitingPerTenant: 64
} as const

/** OWASP's minimum: 19 MiB, two passes, one lane. */
const parameters = { memory: 19_456, passes: 2, parallelism: 1 } as const

const saltBytes = 16
const hashBytes = 32

/** A parsed hash with its parameters. */
interface Phc {
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

/** Substitute for a missing hash, so that the check takes as long. No password matches it. */
const dummy: Phc = {
  ...parameters,
  salt: new Uint8Array(saltBytes),
  hash: new Uint8Array(hashBytes)
}

const phcForm = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64").replace(/=+$/, "")

const format = ({ hash, memory, parallelism, passes, salt }: Phc): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(hash)}`

const parse = (text: string): Phc | undefined => {
  const [, memory, passes, parallelism, salt = "", hash = ""] = phcForm.exec(text) ?? []
  if (hash === "") return undefined
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, "base64"),
    hash: Buffer.from(hash, "base64")
  }
}

export class Passwords extends Context.Service<
  Passwords,
  {
    readonly hash: (password: string) => Effect.Effect<string, Unavailable>
    /** Whether the password matches the hash; false after the same time if there is no hash. */
    readonly verify: (password: string, hash: string | null) => Effect.Effect<boolean, Unavailable>
    /** Whether a hash has weaker parameters than today's. */
    readonly isOutdated: (hash: string) => boolean
  }
>()("server/platform/passwords/Passwords") {
  static readonly layer = Layer.effect(
    Passwords,
    Effect.gen(function* () {
      const kdf = yield* Kdf.Kdf
      const random = yield* SecureRandom.SecureRandom
      const working = new FairSemaphore({
        permits: passwordHashes.concurrency,
        waitingPerKey: passwordHashes.waitingPerTenant,
        refuse: Effect.fail(new Unavailable())
      })

      const derive = Effect.fn("Passwords.derive")(function* (
        password: string,
        { memory, parallelism, passes, salt }: Omit<Phc, "hash">
      ) {
        const algorithm = Kdf.argon2id({ memory, passes, parallelism })
        const secret = new TextEncoder().encode(password.normalize("NFKC"))
        const work = Effect.orDie(kdf.derive(algorithm, secret, { salt, length: hashBytes }))
        return yield* working.withPermit(yield* currentTenant)(work)
      })

      return Passwords.of({
        hash: Effect.fn("Passwords.hash")(function* (password) {
          const salt = yield* random.randomBytes(saltBytes)
          const hash = yield* derive(password, { ...parameters, salt })
          return format({ ...parameters, salt, hash })
        }),
        verify: Effect.fn("Passwords.verify")(function* (password, hash) {
          const known = hash === null ? undefined : parse(hash)
          const expected = known ?? dummy
          const actual = yield* derive(password, expected)
          const same =
            actual.length === expected.hash.length && timingSafeEqual(actual, expected.hash)
          return same && known !== undefined
        }),
        isOutdated: (hash) => {
          const { memory, parallelism, passes } = parse(hash) ?? dummy
          return (
            memory < parameters.memory ||
            passes < parameters.passes ||
            parallelism < parameters.parallelism
          )
        }
      })
    })
  ).pipe(Layer.provide(NodeCrypto.layerKdf))
}
